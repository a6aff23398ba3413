/** Which alerts stand now. Event-based kinds look at the last minutes of the ledger and clear by themselves. */
import { standingFloods } from "../engine/approvals/flood.ts";
import type { Core } from "../engine/core.ts";
import { waitsForApproval } from "../engine/decide/approval-stage.ts";
import { HALTS_KEY } from "../engine/keys.ts";
import { LIMITS } from "../kernel/limits.ts";
import { plural } from "../kernel/words.ts";
import type { LedgerEvent } from "../ledger/events.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { PROBE_ACTOR } from "../model/roles.ts";
import type { StepDoc } from "../model/run.ts";
import { type ClosingDoc, type PinDoc, PROBE_KEY, type ProbeState } from "../port/docs.ts";
import { rowPages } from "../port/pages.ts";
import { tenantOf } from "../store/confined.ts";
import { recentAuthFailures } from "./auth-failures.ts";
import { type Alert, alert } from "./kinds.ts";

/** More than this of one kind in the window is told as a round number. */
const MOST = 10_000;
/** Runs are read in pages; beyond this many with something amiss, one more makes no difference to a person. */
const RUN_PAGE = 500;
const MOST_STEPS = 500;

interface AlertSettings {
  denial_spike: number;
  /** The most time before an undo stops working at which the alert is raised. */
  undo_closing_ms: number;
}

export async function evaluateAlerts(core: Core, settings: AlertSettings): Promise<Alert[]> {
  const since = core.env.now() - LIMITS.alert_window_ms;
  const found = await Promise.all([
    denialSpike(core, since, settings.denial_spike),
    eachEvent(
      core,
      since,
      "approval_expired",
      (n) => `${plural(n, "approval request")} expired undecided or unused`,
    ),
    eachEvent(
      core,
      since,
      "verification_failed",
      (n) => `${plural(n, "undo")} did not show the expected state`,
    ),
    approvalFloods(core),
    breakGlass(core, since),
    unmanifested(core, since),
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
  core: Core,
  since_ms: number,
  event: LedgerEvent,
  limit: number,
): Promise<LedgerRecord[]> {
  const lines = await core.store.records({ event, since_ms, order: "desc", limit });
  return lines.map((line) => JSON.parse(line) as LedgerRecord);
}

const oldest = (records: readonly LedgerRecord[]): number => records[records.length - 1]!.ts_ms;

async function denialSpike(core: Core, since: number, threshold: number): Promise<Alert[]> {
  const blocked = (await recent(core, since, "blocked", MOST)).filter(({ actor }) => actor !== PROBE_ACTOR);
  const refused = blocked.filter(({ detail }) => !waitsForApproval(detail));
  // A full page may hide refusals behind calls that are repeated while they wait, so those count there.
  const full = blocked.length === MOST;
  const counted = full ? blocked : refused;
  if (counted.length < threshold) return [];
  const what = full ? "calls blocked or waiting for approval" : "calls blocked";
  return [alert("denial_spike", `${counted.length} ${what}: ${countsByActor(counted)}`, oldest(counted))];
}

const NAMED_ACTORS = 5;

/** The actors with the most records first, each with its count. */
function countsByActor(records: readonly LedgerRecord[]): string {
  const counts = new Map<string, number>();
  for (const { actor } of records) counts.set(actor, (counts.get(actor) ?? 0) + 1);
  const most = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const named = most.slice(0, NAMED_ACTORS).map(([actor, n]) => `${actor} (${n})`);
  const rest = most.length - named.length;
  return [...named, ...(rest > 0 ? [plural(rest, "other agent")] : [])].join(", ");
}

async function eachEvent(
  core: Core,
  since: number,
  event: "approval_expired" | "verification_failed",
  message: (n: number) => string,
): Promise<Alert[]> {
  const records = (await recent(core, since, event, MOST)).filter((record) => !endedEarly(record));
  if (records.length === 0) return [];
  const { run_id, step, tool } = records[0]!;
  const only = records.length === 1 ? { run_id: run_id ?? null, step: step ?? null, tool: tool ?? null } : {};
  // One alert a kind, so that twenty of them do not page twenty times.
  return [{ ...alert(event, message(records.length), oldest(records)), ...only }];
}

/**
 * Where the time was over, the record names the request or the plan and nothing more. What was withdrawn, revoked,
 * covered by something else or asked again did not expire, and no person let it lie.
 */
const endedEarly = ({ event, detail }: LedgerRecord): boolean =>
  event === "approval_expired" && detail !== undefined && !/^(?:request|plan) \S+$/.test(detail);

/** One alert an actor, without numbers: they would tell one tenant how much another asks for. */
async function approvalFloods({ store, env, rules }: Core): Promise<Alert[]> {
  const { flood } = rules().policy.approvals;
  if (flood === null) return [];
  const standing = await standingFloods(store, flood, env.now(), tenantOf(store));
  const others = standing.filter(({ actor }) => actor !== PROBE_ACTOR);
  return others.map(({ actor, since_ms }) => ({
    ...alert(
      "approval_flood",
      `${actor} opened more than ${plural(flood.max, "approval request")} in ${flood.window}`,
      since_ms,
    ),
    id: `approval_flood:${actor}`,
  }));
}

async function breakGlass(core: Core, since: number): Promise<Alert[]> {
  const approved = await recent(core, since, "approved", MOST);
  return approved
    .filter((record) => record.detail?.startsWith("break-glass: "))
    .map((record) => {
      const at = { run_id: record.run_id ?? null, tool: record.tool ?? null };
      const made = alert(
        "break_glass",
        `${record.actor} approved ${record.tool} alone (${record.detail})`,
        record.ts_ms,
        at,
      );
      return { ...made, id: `break_glass:${record.seq}` };
    });
}

/** A call that ran without a manifest has no manifest version on its record. */
async function unmanifested(core: Core, since: number): Promise<Alert[]> {
  const calls = (await recent(core, since, "intended", MOST)).filter(
    (record) => record.manifest_version === undefined,
  );
  if (calls.length === 0) return [];
  const tools = [...new Set(calls.map((record) => record.tool ?? ""))].sort();
  return [
    alert(
      "unmanifested_call",
      `${plural(calls.length, "call")} without a manifest: ${tools.slice(0, 10).join(", ")}`,
      oldest(calls),
    ),
  ];
}

async function toolsChanged(core: Core, since: number): Promise<Alert[]> {
  const pins = await core.store.list("pins", { limit: MOST });
  return pins.flatMap(({ doc }) => {
    const found = pinTrouble(doc).filter(({ at_ms }) => at_ms >= since);
    if (found.length === 0) return [];
    const began_ms = Math.min(...found.map(({ at_ms }) => at_ms));
    return alert("tool_changed", found.map(({ text }) => text).join("; "), began_ms, { tool: doc.tool });
  });
}

/** What is other than it was when the tool was pinned. */
function pinTrouble(pin: PinDoc): { text: string; at_ms: number }[] {
  const { tool, upstream, changed_ms, changed_upstream, claimed } = pin;
  const found: { text: string; at_ms: number }[] = [];
  if (changed_ms !== null) {
    const text =
      changed_upstream === undefined
        ? `The definition of ${tool} is not the one first seen`
        : `${tool} comes from upstream ${changed_upstream}, and was first seen at ${upstream}`;
    found.push({ text, at_ms: changed_ms });
  }
  if (claimed !== undefined) {
    const text = `${tool} is offered by upstream ${claimed.by.join(", ")} too, which is refused`;
    found.push({
      text: upstream === undefined ? text : `${text}: upstream ${upstream} has the name`,
      at_ms: claimed.since_ms,
    });
  }
  return found;
}

/** Refused credentials are the whole service's: whose they would have been is not known. */
async function authFailures(core: Core): Promise<Alert[]> {
  if (tenantOf(core.store) !== null) return [];
  const { count, since_ms } = await recentAuthFailures(core);
  if (count < LIMITS.auth_failures) return [];
  return [alert("auth_failures", `${count} credentials refused`, since_ms)];
}

/** Steps that a person has to look at, found through the runs that are marked for it. */
async function troubledSteps(core: Core): Promise<Alert[]> {
  const now = core.env.now();
  const alerts: Alert[] = [];
  for await (const run_id of troubledRuns(core, now)) {
    const steps = await core.store.list("steps", {
      owner: run_id,
      tag: ["intended", "uncertain", "compensation_failed"],
      limit: MOST_STEPS,
    });
    for (const { doc } of steps) {
      const found =
        doc.status === "compensation_failed" ? await failedUndo(core, doc) : unknownOutcome(doc, now);
      if (found !== null) alerts.push(found);
    }
    if (alerts.length >= MOST) break;
  }
  return alerts;
}

/** What is known to be amiss first; then runs old enough to have a step that was not reported for too long. */
async function* troubledRuns(core: Core, now: number): AsyncGenerator<string> {
  yield* pagesOf(core, { tag: "attention" });
  yield* pagesOf(core, { tag: "open", to: now - LIMITS.unresolved_after_ms });
}

async function* pagesOf(core: Core, query: { tag: string; to?: number }): AsyncGenerator<string> {
  let seen = 0;
  for await (const rows of rowPages(core.store, "runs", { ...query, page: RUN_PAGE })) {
    for (const { key } of rows) yield key;
    seen += rows.length;
    if (seen >= MOST) return;
  }
}

/** Since when the undo failed, which the step does not keep and the ledger does. */
async function failedUndo({ store }: Core, { run_id, step, tool, intended_ms }: StepDoc): Promise<Alert> {
  const lines = await store.records({
    run_id,
    event: "compensation_failed",
    order: "desc",
    limit: MOST_STEPS,
  });
  const record = lines.map((line) => JSON.parse(line) as LedgerRecord).find((one) => one.step === step);
  const at = { run_id, step, tool };
  return alert(
    "compensation_failed",
    `Could not undo ${tool} in ${run_id}`,
    record?.ts_ms ?? intended_ms,
    at,
  );
}

function unknownOutcome(step: StepDoc, now: number): Alert | null {
  const at = { run_id: step.run_id, step: step.step, tool: step.tool };
  const since = step.status === "uncertain" ? (step.finished_ms ?? step.intended_ms) : step.intended_ms;
  if (now - since <= LIMITS.unresolved_after_ms) return null;
  return alert("unresolved_outcome", `Outcome still unknown: ${step.tool} in ${step.run_id}`, since, at);
}

async function undosClosing({ store, env }: Core, lead_ms: number): Promise<Alert[]> {
  const now = env.now();
  const alerts: Alert[] = [];
  let seen = 0;
  // A long window can be due before shorter ones that close earlier: every row of the lead is looked at.
  for await (const rows of rowPages(store, "closings", { from: now + 1, to: now + lead_ms, order: "asc" })) {
    for (const { doc } of rows) {
      const { run_id, step, tool, closes_ms } = doc;
      const since_ms = closingSince(doc, lead_ms);
      if (since_ms > now) continue;
      const text = `${tool} in ${run_id} can be undone only until ${new Date(closes_ms).toISOString()}`;
      alerts.push(alert("undo_closing", text, since_ms, { run_id, step, tool }));
    }
    seen += rows.length;
    if (alerts.length >= MOST_STEPS || seen >= MOST) break;
  }
  return alerts.slice(0, MOST_STEPS);
}

/** The later of two moments: the lead before the end, and when a tenth of the window is left. */
function closingSince({ closes_ms, succeeded_ms }: ClosingDoc, lead_ms: number): number {
  if (succeeded_ms === undefined) return closes_ms - lead_ms;
  const tenth_ms = Math.max(0, Math.round((closes_ms - succeeded_ms) / 10));
  return closes_ms - Math.min(lead_ms, tenth_ms);
}

async function halted(core: Core): Promise<Alert[]> {
  const all = (await core.store.get("halts", HALTS_KEY))?.active ?? [];
  const halts = all.filter(({ scope }) => scope.actor !== PROBE_ACTOR);
  const file = core.killSwitch();
  if (halts.length === 0 && file === null) return [];
  const reasons = [...(file === null ? [] : [file]), ...halts.map((halt) => halt.reason)];
  const since = halts.length === 0 ? core.env.now() : Math.min(...halts.map((halt) => halt.created_ms));
  return [alert("halted", reasons.join("; "), since)];
}

/** The last probe found a guarantee that does not hold; the next good one clears it. */
async function probeFailed(core: Core): Promise<Alert[]> {
  const last = (await core.store.get("meta", PROBE_KEY)) as ProbeState | undefined;
  if (last === undefined || last.broken.length === 0) return [];
  return [alert("probe_failed", `the probe found BROKEN: ${last.broken.join("; ")}`, last.at_ms)];
}
