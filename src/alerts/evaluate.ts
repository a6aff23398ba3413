/** Evaluates the active alerts. Event-based kinds read the last minutes of the ledger and clear on their own. */
import { listActiveFloods } from "../govern/approvals/request-bursts.ts";
import type { EngineCore } from "../govern/core.ts";
import { waitsForApproval } from "../govern/decide/approval-stage.ts";
import { HALTS_KEY } from "../govern/document-keys.ts";
import { type PinDoc, PROBE_KEY, type ProbeState, type UndoDeadlineDoc } from "../govern/port/docs.ts";
import { rowPages } from "../govern/port/pages.ts";
import { PROBE_ACTOR } from "../govern/roles.ts";
import { isDifference } from "../govern/runs/reconcile.ts";
import type { RunDoc, StepDoc } from "../govern/runs/run.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { formatCountOf } from "../kernel/text/phrases.ts";
import type { LedgerEvent } from "../ledger/events.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { tenantOf } from "../store/tenant-store.ts";
import { recentAuthFailures } from "./auth-failures.ts";
import { type ActiveAlert, createAlert } from "./kinds.ts";

/** Limit on counted events per kind and window. */
const MAX_COUNTED_EVENTS = 10_000;
/** Runs per page. */
const RUN_PAGE = 500;
const MAX_LISTED_STEPS = 500;

interface AlertSettings {
  denial_spike: number;
  /** Longest lead time before an undo deadline at which the alert is raised. */
  undo_closing_ms: number;
}

export async function evaluateAlerts(core: EngineCore, settings: AlertSettings): Promise<ActiveAlert[]> {
  const since = core.env.now() - SERVICE_LIMITS.alert_window_ms;
  const found = await Promise.all([
    denialSpike(core, since, settings.denial_spike),
    eachEvent(
      core,
      since,
      "approval_expired",
      (n) => `${formatCountOf(n, "approval request")} expired undecided or unused`,
    ),
    eachEvent(
      core,
      since,
      "verification_failed",
      (n) => `${formatCountOf(n, "undo")} did not show the expected state`,
    ),
    approvalFloods(core),
    breakGlass(core, since),
    unmanifested(core, since),
    ungoverned(core, since),
    effectsMissing(core, since),
    toolsChanged(core, since),
    authFailures(core),
    troubledSteps(core),
    undosClosing(core, settings.undo_closing_ms),
    halted(core),
    probeFailed(core),
  ]);
  return found.flat();
}

async function recent(
  core: EngineCore,
  since_ms: number,
  event: LedgerEvent,
  limit: number,
): Promise<LedgerRecord[]> {
  const lines = await core.store.records({ event, since_ms, order: "desc", limit });
  return lines.map((line) => JSON.parse(line) as LedgerRecord);
}

const oldest = (records: readonly LedgerRecord[]): number => records[records.length - 1]!.ts_ms;

async function denialSpike(core: EngineCore, since: number, threshold: number): Promise<ActiveAlert[]> {
  const blocked = (await recent(core, since, "blocked", MAX_COUNTED_EVENTS)).filter(
    ({ actor }) => actor !== PROBE_ACTOR,
  );
  const refused = blocked.filter(({ detail }) => !waitsForApproval(detail));
  // In a full page, repeated calls that wait for approval may hide refusals, so all of them count.
  const full = blocked.length === MAX_COUNTED_EVENTS;
  const counted = full ? blocked : refused;
  if (counted.length < threshold) return [];
  const what = full ? "calls blocked or waiting for approval" : "calls blocked";
  return [
    createAlert("denial_spike", `${counted.length} ${what}: ${countsByActor(counted)}`, oldest(counted)),
  ];
}

const NAMED_ACTORS = 5;

/** Lists the actors with the most records first, each with its count. */
function countsByActor(records: readonly LedgerRecord[]): string {
  const counts = new Map<string, number>();
  for (const { actor } of records) counts.set(actor, (counts.get(actor) ?? 0) + 1);
  const most = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const named = most.slice(0, NAMED_ACTORS).map(([actor, n]) => `${actor} (${n})`);
  const rest = most.length - named.length;
  return [...named, ...(rest > 0 ? [formatCountOf(rest, "other agent")] : [])].join(", ");
}

async function eachEvent(
  core: EngineCore,
  since: number,
  event: "approval_expired" | "verification_failed",
  message: (n: number) => string,
): Promise<ActiveAlert[]> {
  const records = (await recent(core, since, event, MAX_COUNTED_EVENTS)).filter(
    (record) => !endedEarly(record),
  );
  if (records.length === 0) return [];
  const { run_id, step, tool } = records[0]!;
  const only = records.length === 1 ? { run_id: run_id ?? null, step: step ?? null, tool: tool ?? null } : {};
  // One alert per kind, so that twenty events do not page twenty times.
  return [{ ...createAlert(event, message(records.length), oldest(records)), ...only }];
}

/**
 * Whether the request or plan was withdrawn, revoked, covered or asked again before its time was over. The record of an
 * actual expiry names only the request or the plan.
 */
const endedEarly = ({ event, detail }: LedgerRecord): boolean =>
  event === "approval_expired" && detail !== undefined && !/^(?:request|plan) \S+$/.test(detail);

/** One alert per actor. It shows no numbers, which would reveal other tenants' activity. */
async function approvalFloods({ store, env, rules }: EngineCore): Promise<ActiveAlert[]> {
  const { flood } = rules().policy.approvals;
  if (flood === null) return [];
  const active = await listActiveFloods(store, flood, env.now(), tenantOf(store));
  const others = active.filter(({ actor }) => actor !== PROBE_ACTOR);
  return others.map(({ actor, since_ms }) => ({
    ...createAlert(
      "approval_flood",
      `${actor} opened more than ${formatCountOf(flood.max, "approval request")} in ${flood.window}`,
      since_ms,
      { actor },
    ),
    id: `approval_flood:${actor}`,
  }));
}

async function breakGlass(core: EngineCore, since: number): Promise<ActiveAlert[]> {
  const approved = await recent(core, since, "approved", MAX_COUNTED_EVENTS);
  return approved
    .filter((record) => record.detail?.startsWith("break-glass: "))
    .map((record) => {
      const at = { run_id: record.run_id ?? null, tool: record.tool ?? null, actor: record.actor };
      const made = createAlert(
        "break_glass",
        `${record.actor} approved ${record.tool} alone (${record.detail})`,
        record.ts_ms,
        at,
      );
      return { ...made, id: `break_glass:${record.seq}` };
    });
}

/** A call without a manifest has no manifest version in its record. */
async function unmanifested(core: EngineCore, since: number): Promise<ActiveAlert[]> {
  const calls = (await recent(core, since, "intended", MAX_COUNTED_EVENTS)).filter(
    (record) => record.manifest_version === undefined,
  );
  if (calls.length === 0) return [];
  const tools = [...new Set(calls.map((record) => record.tool ?? ""))].sort();
  return [
    createAlert(
      "unmanifested_call",
      `${formatCountOf(calls.length, "call")} without a manifest: ${tools.slice(0, 10).join(", ")}`,
      oldest(calls),
    ),
  ];
}

/** One alert per run, from its newest differing comparison. An equal one afterwards does not clear it. */
async function ungoverned(core: EngineCore, since: number): Promise<ActiveAlert[]> {
  const found = new Map<string, ActiveAlert>();
  for (const { run_id = null, detail = "", ts_ms } of await recent(
    core,
    since,
    "reconciled",
    MAX_COUNTED_EVENTS,
  )) {
    if (run_id === null || found.has(run_id) || !isDifference(detail)) continue;
    const actor = (await core.store.get("runs", run_id))?.actor ?? null;
    found.set(run_id, createAlert("ungoverned_calls", `${run_id}: ${detail}`, ts_ms, { run_id, actor }));
  }
  return [...found.values()];
}

/** One alert per tool and agent, which names the newest call. */
async function effectsMissing(core: EngineCore, since: number): Promise<ActiveAlert[]> {
  const found = new Map<string, LedgerRecord[]>();
  for (const record of await recent(core, since, "effect_missing", MAX_COUNTED_EVENTS)) {
    const key = JSON.stringify([record.tool, record.actor]);
    found.set(key, [...(found.get(key) ?? []), record]);
  }
  return [...found.values()].map((records) => {
    const { run_id = null, step = null, tool = null, actor } = records[0]!;
    const message = `${formatCountOf(records.length, "call")} of ${tool} reported success, but the effect was not there`;
    return createAlert("effect_missing", message, oldest(records), { run_id, step, tool, actor });
  });
}

async function toolsChanged(core: EngineCore, since: number): Promise<ActiveAlert[]> {
  const pins = await core.store.list("pins", { limit: MAX_COUNTED_EVENTS });
  return pins.flatMap(({ doc }) => {
    const found = pinTrouble(doc).filter(({ at_ms }) => at_ms >= since);
    if (found.length === 0) return [];
    const began_ms = Math.min(...found.map(({ at_ms }) => at_ms));
    return createAlert("tool_changed", found.map(({ text }) => text).join("; "), began_ms, {
      tool: doc.tool,
    });
  });
}

/** Differences from the pinned definition of the tool. */
function pinTrouble(pin: PinDoc): { text: string; at_ms: number }[] {
  const { tool, upstream, changed_ms, changed_upstream, claimed } = pin;
  const found: { text: string; at_ms: number }[] = [];
  if (changed_ms !== null) {
    const text =
      changed_upstream === undefined
        ? `The definition of ${tool} has changed since it was first seen`
        : `${tool} now comes from upstream ${changed_upstream}; it was first seen at ${upstream}`;
    found.push({ text, at_ms: changed_ms });
  }
  if (claimed !== undefined) {
    const text = `${tool} is also offered by upstream ${claimed.by.join(", ")}, which is rejected`;
    found.push({
      text: upstream === undefined ? text : `${text}: upstream ${upstream} has the name`,
      at_ms: claimed.since_ms,
    });
  }
  return found;
}

/** Refused credentials belong to no tenant, so only the entire service has this alert. */
async function authFailures(core: EngineCore): Promise<ActiveAlert[]> {
  if (tenantOf(core.store) !== null) return [];
  const { count, since_ms } = await recentAuthFailures(core);
  if (count < SERVICE_LIMITS.auth_failures) return [];
  return [createAlert("auth_failures", `${count} credentials refused`, since_ms)];
}

/** Steps that need an operator, found through the runs marked for attention. */
async function troubledSteps(core: EngineCore): Promise<ActiveAlert[]> {
  const now = core.env.now();
  const alerts: ActiveAlert[] = [];
  for await (const { run_id, actor } of troubledRuns(core, now)) {
    const steps = await core.store.list("steps", {
      owner: run_id,
      tag: ["intended", "uncertain", "compensation_failed"],
      limit: MAX_LISTED_STEPS,
    });
    for (const { doc } of steps) {
      const found =
        doc.status === "compensation_failed"
          ? await failedUndo(core, doc, actor)
          : unknownOutcome(doc, actor, now);
      if (found !== null) alerts.push(found);
    }
    if (alerts.length >= MAX_COUNTED_EVENTS) break;
  }
  return alerts;
}

/** Runs with known problems first, then runs old enough to have a step with an overdue outcome. */
async function* troubledRuns(core: EngineCore, now: number): AsyncGenerator<RunDoc> {
  yield* pagesOf(core, { tag: "attention" });
  yield* pagesOf(core, { tag: "open", to: now - SERVICE_LIMITS.unresolved_after_ms });
}

async function* pagesOf(core: EngineCore, query: { tag: string; to?: number }): AsyncGenerator<RunDoc> {
  let seen = 0;
  for await (const rows of rowPages(core.store, "runs", { ...query, page: RUN_PAGE })) {
    for (const { doc } of rows) yield doc;
    seen += rows.length;
    if (seen >= MAX_COUNTED_EVENTS) return;
  }
}

/** The step does not store the time of the failure; the ledger does. */
async function failedUndo(
  { store }: EngineCore,
  { run_id, step, tool, intended_ms }: StepDoc,
  actor: string,
): Promise<ActiveAlert> {
  const lines = await store.records({
    run_id,
    event: "compensation_failed",
    order: "desc",
    limit: MAX_LISTED_STEPS,
  });
  const record = lines.map((line) => JSON.parse(line) as LedgerRecord).find((one) => one.step === step);
  const at = { run_id, step, tool, actor };
  return createAlert(
    "compensation_failed",
    `Could not undo ${tool} in ${run_id}`,
    record?.ts_ms ?? intended_ms,
    at,
  );
}

function unknownOutcome(step: StepDoc, actor: string, now: number): ActiveAlert | null {
  const at = { run_id: step.run_id, step: step.step, tool: step.tool, actor };
  const since = step.status === "uncertain" ? (step.finished_ms ?? step.intended_ms) : step.intended_ms;
  if (now - since <= SERVICE_LIMITS.unresolved_after_ms) return null;
  return createAlert(
    "unresolved_outcome",
    `Outcome still unknown: ${step.tool} in ${step.run_id}`,
    since,
    at,
  );
}

async function undosClosing({ store, env }: EngineCore, lead_ms: number): Promise<ActiveAlert[]> {
  const now = env.now();
  const alerts: ActiveAlert[] = [];
  let seen = 0;
  // Read every row within the lead time: a long window can be due before shorter ones that close earlier.
  for await (const rows of rowPages(store, "closings", { from: now + 1, to: now + lead_ms, order: "asc" })) {
    for (const { doc } of rows) {
      const { run_id, step, tool, closes_ms } = doc;
      const since_ms = closingSince(doc, lead_ms);
      if (since_ms > now) continue;
      const text = `${tool} in ${run_id} can be undone only until ${new Date(closes_ms).toISOString()}`;
      const actor = (await store.get("runs", run_id))?.actor ?? null;
      alerts.push(createAlert("undo_closing", text, since_ms, { run_id, step, tool, actor }));
    }
    seen += rows.length;
    if (alerts.length >= MAX_LISTED_STEPS || seen >= MAX_COUNTED_EVENTS) break;
  }
  return alerts.slice(0, MAX_LISTED_STEPS);
}

/** Start of the alert: the lead time before the deadline, or the last tenth of the window if that begins later. */
function closingSince({ closes_ms, succeeded_ms }: UndoDeadlineDoc, lead_ms: number): number {
  if (succeeded_ms === undefined) return closes_ms - lead_ms;
  const tenth_ms = Math.max(0, Math.round((closes_ms - succeeded_ms) / 10));
  return closes_ms - Math.min(lead_ms, tenth_ms);
}

async function halted(core: EngineCore): Promise<ActiveAlert[]> {
  const all = (await core.store.get("halts", HALTS_KEY))?.active ?? [];
  const halts = all.filter(({ scope }) => scope.actor !== PROBE_ACTOR);
  const file = core.killSwitch();
  if (halts.length === 0 && file === null) return [];
  const reasons = [...(file === null ? [] : [file]), ...halts.map((halt) => halt.reason)];
  const since = halts.length === 0 ? core.env.now() : Math.min(...halts.map((halt) => halt.created_ms));
  return [createAlert("halted", reasons.join("; "), since)];
}

/** The last probe found a broken guarantee. The next successful probe clears the alert. */
async function probeFailed(core: EngineCore): Promise<ActiveAlert[]> {
  const last = (await core.store.get("meta", PROBE_KEY)) as ProbeState | undefined;
  if (last === undefined || last.broken.length === 0) return [];
  return [createAlert("probe_failed", `the probe found BROKEN: ${last.broken.join("; ")}`, last.at_ms)];
}
