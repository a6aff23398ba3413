/** The kinds of alerts, and how to create an active alert. */

const AFTER_WINDOW = "15 minutes after the last such event";
const BELOW_LIMIT = "fewer were refused within the last 15 minutes";

/**
 * All kinds of alerts: the severity, whether a kind is based on recent events or on state, and for the reference, when
 * it fires and clears and how to respond.
 */
export const ALERT_KINDS = {
  denial_spike: {
    severity: "warning",
    basis: "events",
    title: "Many calls blocked",
    fires:
      "`alerts.denial_spike` or more calls are refused within 15 minutes; calls that wait for approval do not count",
    clears: BELOW_LIMIT,
    to_do: "Open the blocked calls. Correct the policy or halt the agent.",
  },
  approval_expired: {
    severity: "warning",
    basis: "events",
    title: "Approval requests expired",
    fires: "a request or a plan expires undecided or unused",
    clears: AFTER_WINDOW,
    to_do: "Notify your approvers. Set `escalate_after`, or a longer `ttl`.",
  },
  verification_failed: {
    severity: "error",
    basis: "events",
    title: "An undo could not be confirmed",
    fires: "the read after an undo does not show the expected state",
    clears: AFTER_WINDOW,
    to_do: "Check the resource by hand. Correct the undo in the manifest.",
  },
  break_glass: {
    severity: "critical",
    basis: "events",
    title: "Break-glass approval",
    fires: "an admin approves a request alone",
    clears: AFTER_WINDOW,
    to_do: "Review the reason with the admin.",
  },
  unmanifested_call: {
    severity: "warning",
    basis: "events",
    title: "Tools called without a manifest",
    fires: "a tool without a manifest is called, which only observe and advise mode allow",
    clears: AFTER_WINDOW,
    to_do: "Write a manifest for the tool.",
  },
  ungoverned_calls: {
    severity: "error",
    basis: "events",
    title: "Calls without a decision",
    fires:
      "a comparison with a client's transcript finds calls without a decision, or decided calls that never ran",
    clears: AFTER_WINDOW,
    to_do: "Run `svc reconcile` for the run. Check that the client starts the hook.",
  },
  effect_missing: {
    severity: "error",
    basis: "events",
    title: "A call reported success without its effect",
    fires: "the read after a successful call does not show what the call reported",
    clears: AFTER_WINDOW,
    to_do:
      "Check the resource, then record the outcome with `svc resolve`. Halt calls of the tool if it lies.",
  },
  tool_changed: {
    severity: "error",
    basis: "events",
    title: "A tool's definition changed",
    fires: "the definition of a gateway tool changes, or another upstream offers its name",
    clears: AFTER_WINDOW,
    to_do: "Compare the definitions. Accept the new one or stop the upstream.",
  },
  auth_failures: {
    severity: "warning",
    basis: "events",
    title: "Many refused credentials",
    fires: "20 or more credentials are refused within 15 minutes",
    clears: BELOW_LIMIT,
    to_do: "Find the client in the log. Rotate a key that leaked.",
  },
  approval_flood: {
    severity: "warning",
    basis: "state",
    title: "Many approval requests by one agent",
    fires: "an agent opens more requests than `approvals.flood` in the policy",
    clears: "the agent stays below the limit for one window",
    to_do: "Deny or halt the agent, or give a grant for similar calls.",
  },
  compensation_failed: {
    severity: "error",
    basis: "state",
    title: "A compensation failed",
    fires: "the undo of a step fails",
    clears: "the undo succeeds",
    to_do: "Correct the cause and repeat `svc rollback`.",
  },
  unresolved_outcome: {
    severity: "warning",
    basis: "state",
    title: "An outcome is unknown",
    fires: "the outcome of a step is unknown for more than an hour",
    clears: "the outcome is recorded",
    to_do: "Check the resource, then record the outcome with `svc resolve`.",
  },
  probe_failed: {
    severity: "critical",
    basis: "state",
    title: "A guarantee does not hold",
    fires: "the last probe finds a guarantee that does not hold",
    clears: "the next probe succeeds",
    to_do: "Halt your agents. Run `svc probe` and correct the cause.",
  },
  undo_closing: {
    severity: "warning",
    basis: "state",
    title: "An undo is about to close",
    fires: "an undo expires within `alerts.undo_closing`, with at most a tenth of its time left",
    clears: "the step is undone, or its deadline has passed",
    to_do: "Decide if you need the undo: `svc horizon` lists the deadlines.",
  },
  halted: {
    severity: "critical",
    basis: "state",
    title: "Calls are halted",
    fires: "a halt is active, or the kill-switch file exists",
    clears: "the last halt is lifted and the file is removed",
    to_do: "Lift the halt when it is safe: `svc halt lift`, or remove the file.",
  },
} as const;

type AlertKind = keyof typeof ALERT_KINDS;

export interface ActiveAlert {
  /** The same for an alert, its reminders and its resolution. */
  id: string;
  /** The same for alerts of one kind, agent, and tool. People see one line for them. */
  group: string;
  /** The agent, or the person of a break-glass approval. Null for the whole service. */
  actor: string | null;
  kind: AlertKind;
  severity: (typeof ALERT_KINDS)[AlertKind]["severity"];
  title: string;
  message: string;
  since_ms: number;
  run_id: string | null;
  step: number | null;
  tool: string | null;
}

export function createAlert(
  kind: AlertKind,
  message: string,
  since_ms: number,
  at: Partial<Pick<ActiveAlert, "run_id" | "step" | "tool" | "actor">> = {},
): ActiveAlert {
  const { severity, title } = ALERT_KINDS[kind];
  const { run_id = null, step = null, tool = null, actor = null } = at;
  const id = [kind, run_id, step, run_id === null ? tool : null].filter((part) => part !== null).join(":");
  const group = [kind, actor, tool].filter((part) => part !== null).join(":");
  return { id, group, actor, kind, severity, title, message, since_ms, run_id, step, tool };
}
