/** Facts of a period report: calls, decisions, outcomes and undos since a point in time. */
import type { ApprovalDoc } from "../../../govern/approvals/approval.ts";
import type { CounterDoc } from "../../../govern/port/docs.ts";
import type { StateStore } from "../../../govern/port/store.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { type BudgetUse, budgetUse } from "../../../rules/policy/checks/limits.ts";
import type { CompiledPolicy } from "../../../rules/policy/compile.ts";
import { countVisibleRecords, tenantOf } from "../../../store/tenant-store.ts";
import { toIsoDay } from "../external-text.ts";
import type { UndoTotals } from "../undo-counts.ts";
import { type IrreversibleAction, PeriodCounts, type StopRecord } from "./period-counts.ts";

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
  policy: CompiledPolicy;
  /** Runs that currently need attention, and whether there are more of them. */
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
  /** By declared reversibility; `no manifest` for undeclared tools. */
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
  /** Counts steps by their final state, even if an undo was attempted several times. */
  rollbacks: UndoTotals & {
    /** Share of the undos with a declared read-back whose read-back matched. */
    verification_rate: number | null;
  };
  irreversible: { ran: number; latest: IrreversibleAction[] };
  /** Halts, resumptions and containments, newest first. */
  stops: { halted: number; resumed: number; contained: number; latest: StopRecord[] };
  attention: { runs: AttentionRun[]; more: boolean };
  budgets: Omit<BudgetUse, "near">[];
  per_day: { day: string; accepted: number; blocked: number }[];
}

const PAGE = 1_000;
const MAX_TABLE_ROWS = 1_000;
const MAX_LISTED_REASONS = 50;
const MAX_REPORT_DAYS = 3_700;
const DAY_MS = 86_400_000;
/** A decision in the period may be on an older request. */
const DECISION_LOOKBACK_MS = 90 * DAY_MS;

export async function collectPeriodReport(store: StateStore, context: PeriodContext): Promise<PeriodReport> {
  const { since_ms, until_ms } = context;
  const head = await store.head();
  const counts = await countRecords(store, since_ms, until_ms, head.records);
  const decisions = await approvalTimes(store, since_ms, until_ms, counts.requests);
  const { events } = counts;
  const n = (event: keyof typeof events): number => events[event] ?? 0;
  const undos = counts.undos.totals;
  const readBacks = undos.verified + undos.verification_failed + undos.unverified;
  const tenant = tenantOf(store);
  // A budget per actor or for all is shared by several tenants, so a tenant's report omits it.
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
      records: await countVisibleRecords(store),
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
    by_tool: counts.tools.list().slice(0, MAX_TABLE_ROWS),
    by_actor: counts.actors.list().slice(0, MAX_TABLE_ROWS),
    by_effect: counts.effects.list(),
    blocked_reasons: counts.reasons
      .list()
      .slice(0, MAX_LISTED_REASONS)
      .map(({ name, count }) => ({ reason: name, count })),
    unmanifested: counts.unmanifested.list().slice(0, MAX_TABLE_ROWS),
    approvals: {
      requested: counts.requests.size,
      ...counts.approvals,
      median_decision_ms: medianValue(decisions),
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
  store: StateStore,
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

/** Requests that were open during the period or shortly before. A call approved in advance is not a request. */
export async function* requestsAround(
  store: StateStore,
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

/** Waiting times of the requests decided in the period. Adds the requests opened in it to `requests`. */
async function approvalTimes(
  store: StateStore,
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

export function medianValue(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : Math.round((sorted[middle - 1]! + sorted[middle]!) / 2);
}

async function openedRuns(store: StateStore, since_ms: number, until_ms: number): Promise<number> {
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

async function budgetCounters(store: StateStore): Promise<[string, CounterDoc][]> {
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

/** Every day from first to last, including days without calls. */
function everyDay(counts: PeriodCounts, since_ms: number, until_ms: number): PeriodReport["per_day"] {
  const known = new Map(
    counts.days.list().map(({ name, accepted, blocked }) => [name, { accepted, blocked }]),
  );
  const first = [...known.keys()].sort()[0];
  // Skip the empty days before the first call.
  const begin = first === undefined ? until_ms : Math.max(since_ms, Date.parse(first));
  const days: PeriodReport["per_day"] = [];
  const last = toIsoDay(until_ms);
  for (let ms = begin; days.length < MAX_REPORT_DAYS; ms += DAY_MS) {
    const name = toIsoDay(Math.min(ms, until_ms));
    days.push({ day: name, ...(known.get(name) ?? { accepted: 0, blocked: 0 }) });
    if (name >= last) break;
  }
  return days;
}
