/** Counts the records of a period report in one pass over the ledger, storing counters only. */
import { isLedgerEvent, type LedgerEvent } from "../../../ledger/events.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { idBytes, newRunSeed, RunTable } from "../../chain/run-numbering.ts";
import { BoundedTally } from "../bounded-tally.ts";
import { toIsoDay } from "../external-text.ts";
import { UndoCounts } from "../undo-counts.ts";

export const CALL_COLUMNS = [
  "accepted",
  "blocked",
  "would_block",
  "succeeded",
  "failed",
  "uncertain",
] as const;
export const APPROVAL_COLUMNS = ["accepted", "blocked", "would_block"] as const;
export const DAY_COLUMNS = ["accepted", "blocked"] as const;
const COUNT = ["count"] as const;

export interface IrreversibleAction {
  ts_ms: number;
  seq: number;
  run_id: string;
  step: number | null;
  tool: string;
  actor: string;
  outcome: "succeeded" | "uncertain";
}

/** Events that stop agents or let them continue. */
const STOP_EVENTS = ["halted", "resumed", "contained"] as const;

export interface StopRecord {
  ts_ms: number;
  seq: number;
  event: (typeof STOP_EVENTS)[number];
  actor: string;
  reason: string | null;
  detail: string | null;
}

type Outcome = "succeeded" | "failed" | "uncertain";

const LATEST_IRREVERSIBLE = 100;
const LATEST_STOPS = 100;
const NO_MANIFEST = "no manifest";
const ENGINE = "engine";
/** Texts that can follow a semicolon within a reason. Other semicolons in the ledger separate reasons. */
const WITHIN_A_REASON = [
  "retry after it is approved",
  "follows (?:step \\d|an earlier step)",
  "could not compare ",
  "it can be repeated once ",
  "wait until some are decided",
  "repeat the call through the gateway",
];
const BETWEEN_REASONS = new RegExp(`; (?!${WITHIN_A_REASON.join("|")})`);
/** Parts of a reason that differ between calls blocked for the same cause: the request id, and the step of a flow. */
const OF_ONE_CALL = / ?\bapr_[0-9a-f-]{36}|; follows (?:step \d|an earlier step).*$/g;

export class PeriodCounts {
  readonly events: Partial<Record<LedgerEvent, number>> = {};
  readonly tools = new BoundedTally(CALL_COLUMNS);
  readonly actors = new BoundedTally(APPROVAL_COLUMNS);
  readonly effects = new BoundedTally(CALL_COLUMNS);
  readonly days = new BoundedTally(DAY_COLUMNS);
  readonly unmanifested = new BoundedTally(DAY_COLUMNS);
  readonly reasons = new BoundedTally(COUNT);
  readonly requests = new Set<string>();
  readonly undos = new UndoCounts();
  readonly outcomes: Record<Outcome, number> = { succeeded: 0, failed: 0, uncertain: 0 };
  /** Steps with an unknown outcome so far. */
  private readonly uncertain = new Set<string>();
  readonly approvals = {
    approved: 0,
    denied: 0,
    expired: 0,
    escalated: 0,
    break_glass: 0,
    pre_approved: 0,
    used: 0,
  };
  readonly irreversible: IrreversibleAction[] = [];
  irreversible_ran = 0;
  /** Halts, resumptions and containments, oldest first. */
  readonly stops: StopRecord[] = [];
  first_seq: number | null = null;
  last_seq: number | null = null;
  private readonly runs = new RunTable(newRunSeed());

  get records(): number {
    return Object.values(this.events).reduce((sum, n) => sum + n, 0);
  }

  get active_runs(): number {
    return this.runs.count;
  }

  take(record: LedgerRecord): void {
    const { event, seq, run_id } = record;
    this.events[event] = (this.events[event] ?? 0) + 1;
    this.first_seq ??= seq;
    this.last_seq = seq;
    if (run_id !== undefined) {
      const id = idBytes(run_id);
      this.runs.countRecord(id, 0, id.byteLength, record.run_seq ?? 0, seq);
    }
    // A newer version may have written events unknown to this one.
    if (isLedgerEvent(event)) HANDLERS[event](this, record);
  }

  stop({ ts_ms, seq, actor, reason, detail }: LedgerRecord, event: StopRecord["event"]): void {
    this.stops.push({ ts_ms, seq, event, actor, reason: reason ?? null, detail: detail ?? null });
    if (this.stops.length > LATEST_STOPS) this.stops.shift();
  }

  call(record: LedgerRecord, column: (typeof APPROVAL_COLUMNS)[number]): void {
    const { tool = "", actor, effect, ts_ms } = record;
    this.tools.add(tool, column);
    this.actors.add(actor, column);
    this.effects.add(effect ?? NO_MANIFEST, column);
    if (column === "would_block") return;
    this.days.add(toIsoDay(ts_ms), column);
    if (effect === undefined) this.unmanifested.add(tool, column);
  }

  /** Counts a step once: a resolved outcome replaces the unknown one. */
  outcome(record: LedgerRecord, column: Outcome): void {
    const key = `${record.run_id} ${record.step}`;
    if (this.uncertain.delete(key)) this.countOutcome(record, "uncertain", -1);
    this.countOutcome(record, column, 1);
    if (column === "uncertain") this.uncertain.add(key);
  }

  private countOutcome(record: LedgerRecord, column: Outcome, by: 1 | -1): void {
    const { tool = "", effect, ts_ms, seq, run_id = "", step = null, actor } = record;
    this.outcomes[column] += by;
    this.tools.add(tool, column, by);
    this.effects.add(effect ?? NO_MANIFEST, column, by);
    if (effect !== "irreversible" || column === "failed") return;
    this.irreversible_ran += by;
    if (by === 1) {
      this.irreversible.push({ ts_ms, seq, run_id, step, tool, actor, outcome: column });
      if (this.irreversible.length > LATEST_IRREVERSIBLE) this.irreversible.shift();
      return;
    }
    const at = this.irreversible.findIndex((one) => one.run_id === run_id && one.step === step);
    if (at >= 0) this.irreversible.splice(at, 1);
  }

  refused(record: LedgerRecord): void {
    const detail = record.detail ?? "";
    const request = /\brequest (apr_[0-9a-f-]{36}) is pending/.exec(detail)?.[1];
    if (request !== undefined) this.requests.add(request);
    for (const reason of detail.split(BETWEEN_REASONS))
      this.reasons.add(reason.replace(OF_ONE_CALL, ""), "count");
  }

  approved({ actor, detail = "" }: LedgerRecord): void {
    if (actor === ENGINE) this.approvals.used++;
    else if (detail.startsWith("break-glass:")) this.approvals.break_glass++;
    else if (detail.startsWith("pre-approved")) this.approvals.pre_approved++;
    // One of several required votes is not yet an approval.
    else if (!/^request \S+ \(\d+ of \d+\)/.test(detail)) this.approvals.approved++;
  }
}

type Handler = (counts: PeriodCounts, record: LedgerRecord) => void;

const undo: Handler = (counts, record) => counts.undos.take(record);

/** For events that appear only in the event counts. */
const countEventAlone: Handler = () => {};

const HANDLERS: Readonly<Record<LedgerEvent, Handler>> = {
  intended: (counts, record) => counts.call(record, "accepted"),
  blocked(counts, record) {
    counts.call(record, "blocked");
    counts.refused(record);
  },
  would_block: (counts, record) => counts.call(record, "would_block"),
  succeeded: (counts, record) => counts.outcome(record, "succeeded"),
  failed: (counts, record) => counts.outcome(record, "failed"),
  uncertain: (counts, record) => counts.outcome(record, "uncertain"),
  approved: (counts, record) => counts.approved(record),
  denied: (counts) => void counts.approvals.denied++,
  approval_expired(counts, { detail }) {
    // The end of a plan is this event too; its requests have their own records.
    if (detail?.startsWith("plan ") !== true) counts.approvals.expired++;
  },
  approval_escalated: (counts) => void counts.approvals.escalated++,
  halted: (counts, record) => counts.stop(record, "halted"),
  resumed: (counts, record) => counts.stop(record, "resumed"),
  contained: (counts, record) => counts.stop(record, "contained"),
  compensating: undo,
  verified: undo,
  unverified: undo,
  verification_failed: undo,
  compensation_failed: undo,
  compensated: undo,
  purged: countEventAlone,
  delegated: countEventAlone,
  delegation_revoked: countEventAlone,
  granted: countEventAlone,
  grant_revoked: countEventAlone,
  plan_proposed: countEventAlone,
  plan_approved: countEventAlone,
  plan_denied: countEventAlone,
  key_created: countEventAlone,
  key_changed: countEventAlone,
  key_deleted: countEventAlone,
  passkey_added: countEventAlone,
  passkey_revoked: countEventAlone,
  upstream_connected: countEventAlone,
  upstream_revoked: countEventAlone,
  manifest_published: countEventAlone,
  manifest_approved: countEventAlone,
  manifest_deprecated: countEventAlone,
  policy_activated: countEventAlone,
  reloaded: countEventAlone,
  witnessed: countEventAlone,
  probed: countEventAlone,
  drill_passed: countEventAlone,
  drill_failed: countEventAlone,
  reconciled: countEventAlone,
  effect_missing: countEventAlone,
};
