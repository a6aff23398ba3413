/** Every kind of alert: how bad it is, and whether it looks at events of the last minutes or at state. */
export const ALERT_KINDS = {
  denial_spike: { severity: "warning", basis: "events", title: "Many calls blocked" },
  approval_expired: { severity: "warning", basis: "events", title: "Approval requests expired" },
  verification_failed: { severity: "error", basis: "events", title: "An undo could not be confirmed" },
  break_glass: { severity: "critical", basis: "events", title: "Break-glass approval" },
  unmanifested_call: { severity: "warning", basis: "events", title: "Tools called without a manifest" },
  tool_changed: { severity: "error", basis: "events", title: "A tool's definition changed" },
  auth_failures: { severity: "warning", basis: "events", title: "Many refused credentials" },
  approval_flood: { severity: "warning", basis: "state", title: "Many approval requests by one agent" },
  compensation_failed: { severity: "error", basis: "state", title: "A compensation failed" },
  unresolved_outcome: { severity: "warning", basis: "state", title: "An outcome is unknown" },
  probe_failed: { severity: "critical", basis: "state", title: "A guarantee does not hold" },
  undo_closing: { severity: "warning", basis: "state", title: "An undo is about to close" },
  halted: { severity: "critical", basis: "state", title: "Calls are halted" },
} as const;

type AlertKind = keyof typeof ALERT_KINDS;

export interface Alert {
  /** The same for an alert, its reminders and its resolution. */
  id: string;
  kind: AlertKind;
  severity: (typeof ALERT_KINDS)[AlertKind]["severity"];
  title: string;
  message: string;
  since_ms: number;
  run_id: string | null;
  step: number | null;
  tool: string | null;
}

export function alert(
  kind: AlertKind,
  message: string,
  since_ms: number,
  at: Partial<Pick<Alert, "run_id" | "step" | "tool">> = {},
): Alert {
  const { severity, title } = ALERT_KINDS[kind];
  const { run_id = null, step = null, tool = null } = at;
  const id = [kind, run_id, step, run_id === null ? tool : null].filter((part) => part !== null).join(":");
  return { id, kind, severity, title, message, since_ms, run_id, step, tool };
}
