/** The facts of a period report: what was asked, decided, done and undone since a point in time. */
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import type { Policy } from "../../model/policy/compile.ts";
import { type BudgetUse, budgetUse } from "../../model/policy/limits.ts";
import type { CounterDoc } from "../../port/docs.ts";
import type { Store } from "../../port/store.ts";
import { shownRecords, tenantOf } from "../../store/confined.ts";
import { type IrreversibleAction, PeriodCounts, type StopRecord } from "./period-counts.ts";
import { day } from "./text.ts";
import type { UndoTotals } from "./undo-counts.ts";

interface AttentionRun {
  run_id: string;
  actor: string;
  created_ms: number;
  unresolved: number;
}

export interface PeriodContext {
  since_ms: number;
  until_ms: number;
  version: string;
  environment: string | null;
  region: string | null;
  policy: Policy;
  /** Runs that need attention now, and whether there are more than these. */
  attention: { runs: AttentionRun[]; more: boolean };
}

type Named<T> = T & { name: string };
type CallRow = Named<
  Record<"accepted" | "blocked" | "would_block" | "succeeded" | "failed" | "uncertain", number>
>;
type AskRow = Named<Record<"accepted" | "blocked" | "would_block", number>>;

export interface PeriodReport {
  format: "svc-period-report";
  version: 1;
  since_ms: number;
  until_ms: number;
  made_by: string;
  environment: string | null;
  region: string | null;
  ledger: {
    records: number;
    head: string;
    in_period: number;
    first_seq: number | null;
    last_seq: number | null;
  };
  calls: { total: number; accepted: number; blocked: number; would_block: number };
  runs: { active: number; opened: number };
  outcomes: { succeeded: number; failed: number; uncertain: number };
  by_tool: CallRow[];
  by_actor: AskRow[];
  /** By how reversible the tool is declared to be; `no manifest` where it is not declared. */
  by_effect: CallRow[];
  blocked_reasons: { reason: string; count: number }[];
  unmanifested: Named<{ accepted: number; blocked: number }>[];
  approvals: {
    requested: number;
    approved: number;
    denied: number;
    expired: number;
    escalated: number;
    break_glass: number;
    pre_approved: number;
    used: number;
    median_decision_ms: number | null;
  };
  /** Steps, each as it stood at the end, however often its undo was tried. */
  rollbacks: UndoTotals & {
    /** Of the undos with a declared read-back, the share that was read back and matched. */
    verification_rate: number | null;
  };
  irreversible: { ran: number; latest: IrreversibleAction[] };
  /** Who was halted and contained, and when that ended; newest first. */
  stops: { halted: number; resumed: number; contained: number; latest: StopRecord[] };
  attention: { runs: AttentionRun[]; more: boolean };
  budgets: Omit<BudgetUse, "near">[];
  per_day: { day: string; accepted: number; blocked: number }[];
}

const PAGE = 1_000;
const MOST_ROWS = 1_000;
const MOST_REASONS = 50;
const MOST_DAYS = 3_700;
const DAY_MS = 86_400_000;
/** A request may be older than the period in which it is decided. */
const DECISION_LOOKBACK_MS = 90 * DAY_MS;

export async function collectPeriodReport(store: Store, context: PeriodContext): Promise<PeriodReport> {
  const { since_ms, until_ms } = context;
  const head = await store.head();
  const counts = await countRecords(store, since_ms, until_ms, head.records);
  const decisions = await approvalTimes(store, since_ms, until_ms, counts.requests);
  const { events } = counts;
  const n = (event: keyof typeof events): number => events[event] ?? 0;
  const undos = counts.undos.totals;
  const readBacks = undos.verified + undos.verification_failed + undos.unverified;
  const tenant = tenantOf(store);
  // A budget of an actor or of all is counted over every tenant that shares it.
  const seen = ({ per, value }: BudgetUse) => tenant === null || (per === "tenant" && value === tenant);
  const budgets = budgetUse(context.policy, await budgetCounters(store), until_ms).filter(
    (use) => use.near && seen(use),
  );
  return {
    format: "svc-period-report",
    version: 1,
    since_ms,
    until_ms,
    made_by: `svc ${context.version}`,
    environment: context.environment,
    region: context.region,
    ledger: {
      records: await shownRecords(store),
      head: head.hash,
      in_period: counts.records,
      first_seq: counts.first_seq,
      last_seq: counts.last_seq,
    },
    calls: {
      total: n("intended") + n("blocked"),
      accepted: n("intended"),
      blocked: n("blocked"),
      would_block: n("would_block"),
    },
    runs: { active: counts.active_runs, opened: await openedRuns(store, since_ms, until_ms) },
    outcomes: { ...counts.outcomes },
    by_tool: counts.tools.list().slice(0, MOST_ROWS),
    by_actor: counts.actors.list().slice(0, MOST_ROWS),
    by_effect: counts.effects.list(),
    blocked_reasons: counts.reasons
      .list()
      .slice(0, MOST_REASONS)
      .map(({ name, count }) => ({ reason: name, count })),
    unmanifested: counts.unmanifested.list().slice(0, MOST_ROWS),
    approvals: {
      requested: counts.requests.size,
      ...counts.approvals,
      median_decision_ms: median(decisions),
    },
    rollbacks: { ...undos, verification_rate: readBacks === 0 ? null : undos.verified / readBacks },
    irreversible: { ran: counts.irreversible_ran, latest: counts.irreversible.toReversed() },
    stops: {
      halted: n("halted"),
      resumed: n("resumed"),
      contained: n("contained"),
      latest: counts.stops.toReversed(),
    },
    attention: context.attention,
    budgets: budgets.map(({ near: _, ...use }) => use),
    per_day: everyDay(counts, since_ms, until_ms),
  };
}

export async function countRecords(
  store: Store,
  since_ms: number,
  until_ms: number,
  size: number,
): Promise<PeriodCounts> {
  const counts = new PeriodCounts();
  let from = 0;
  while (from < size) {
    const lines = await store.records({ from, to: size - 1, since_ms, until_ms, limit: PAGE });
    for (const line of lines) counts.take(JSON.parse(line) as LedgerRecord);
    if (lines.length < PAGE) break;
    from = counts.last_seq! + 1;
  }
  return counts;
}

/** Each request that was open at some time of the period or not long before; what was approved unasked is none. */
export async function* requestsAround(
  store: Store,
  since_ms: number,
  until_ms: number,
): AsyncGenerator<ApprovalDoc> {
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("approvals", {
      from: since_ms - DECISION_LOOKBACK_MS,
      to: until_ms,
      after,
      limit: PAGE,
    });
    for (const { doc } of rows) {
      const isBornApproved = doc.decided_ms === doc.requested_ms && doc.votes.length === 1;
      if (!isBornApproved) yield doc;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = { sort: last.sort, key: last.key };
  }
}

/** How long the requests decided in the period had waited; those asked for in it join `requests`. */
async function approvalTimes(
  store: Store,
  since_ms: number,
  until_ms: number,
  requests: Set<string>,
): Promise<number[]> {
  const waits: number[] = [];
  for await (const { id, requested_ms, decided_ms } of requestsAround(store, since_ms, until_ms)) {
    if (requested_ms >= since_ms) requests.add(id);
    if (decided_ms === null || decided_ms < since_ms || decided_ms > until_ms) continue;
    waits.push(decided_ms - requested_ms);
  }
  return waits;
}

export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : Math.round((sorted[middle - 1]! + sorted[middle]!) / 2);
}

async function openedRuns(store: Store, since_ms: number, until_ms: number): Promise<number> {
  let count = 0;
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("runs", { from: since_ms, to: until_ms, after, limit: PAGE });
    count += rows.length;
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return count;
    after = { sort: last.sort, key: last.key };
  }
}

async function budgetCounters(store: Store): Promise<[string, CounterDoc][]> {
  const found: [string, CounterDoc][] = [];
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("counters", { after, limit: PAGE });
    for (const { key, doc } of rows) if (key.startsWith("budget:")) found.push([key, doc]);
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return found;
    after = { sort: last.sort, key: last.key };
  }
}

/** Each day from the first to the last, those without a call too. */
function everyDay(counts: PeriodCounts, since_ms: number, until_ms: number): PeriodReport["per_day"] {
  const known = new Map(
    counts.days.list().map(({ name, accepted, blocked }) => [name, { accepted, blocked }]),
  );
  const first = [...known.keys()].sort()[0];
  // A period that began long before the first call would only add empty days.
  const begin = first === undefined ? until_ms : Math.max(since_ms, Date.parse(first));
  const days: PeriodReport["per_day"] = [];
  const last = day(until_ms);
  for (let ms = begin; days.length < MOST_DAYS; ms += DAY_MS) {
    const name = day(Math.min(ms, until_ms));
    days.push({ day: name, ...(known.get(name) ?? { accepted: 0, blocked: 0 }) });
    if (name >= last) break;
  }
  return days;
}
