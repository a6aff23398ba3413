/**
 * Counts decided calls per hour and decision. Reads each ledger record once, newest first, a bounded number per call,
 * and reports whether older hours are still incomplete.
 */

import { waitsForApproval } from "../govern/decide/approval-stage.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { LedgerReader } from "../operations/ledger-reader.ts";

export const COUNTED_DECISIONS = ["allowed", "would_block", "waiting", "refused"] as const;
export type DecisionName = (typeof COUNTED_DECISIONS)[number];
export type DecisionCounts = Record<DecisionName, number>;

export interface HourDecisions extends DecisionCounts {
  from_ms: number;
}

const HOUR_MS = 3_600_000;
const PAGE = 2_000;
/** Maximum pages of records read per call. The next call continues. */
const PAGES_A_LOOK = 15;
const KEEP_HOURS = 24;
const EVENTS = ["intended", "would_block", "blocked"];

export class HourCounts {
  private readonly ledger: Pick<LedgerReader, "head" | "records">;
  private readonly page: number;
  private readonly hours = new Map<number, DecisionCounts>();
  private readonly tools = new Map<number, Map<string, number>>();
  /** Records from `low` up to but not including `high` are counted. */
  private low: number | null = null;
  private high = 0;
  private whole = false;
  private looking: Promise<void> = Promise.resolve();

  constructor(ledger: Pick<LedgerReader, "head" | "records">, page = PAGE) {
    this.ledger = ledger;
    this.page = page;
  }

  /** Returns the last 24 hours, oldest first, and whether all of their records are counted. */
  async lastDay(
    now: number,
  ): Promise<{ hours: HourDecisions[]; whole: boolean; calls: ReadonlyMap<string, number> }> {
    // Run one scan at a time: two would count the same records twice.
    const look = this.looking.then(() => this.look(now));
    this.looking = look.catch(() => {});
    await look;
    const current = Math.floor(now / HOUR_MS);
    const hours = Array.from({ length: KEEP_HOURS }, (_, i) => {
      const hour = current - KEEP_HOURS + 1 + i;
      return { from_ms: hour * HOUR_MS, ...(this.hours.get(hour) ?? noCalls()) };
    });
    const calls = new Map<string, number>();
    for (const tools of this.tools.values())
      for (const [tool, n] of tools) calls.set(tool, (calls.get(tool) ?? 0) + n);
    return { hours, whole: this.whole, calls };
  }

  private async look(now: number): Promise<void> {
    const first = (Math.floor(now / HOUR_MS) - KEEP_HOURS + 1) * HOUR_MS;
    this.forgetBefore(first / HOUR_MS);
    const { records } = await this.ledger.head();
    let left = PAGES_A_LOOK;
    if (this.low !== null) {
      while (this.high < records && left-- > 0) {
        const read = await this.read({ from: this.high, to: records - 1, order: "asc" }, first);
        this.high = read.length < this.page ? records : read.at(-1)!.seq + 1;
      }
    } else {
      this.low = records;
      this.high = records;
    }
    while (!this.whole && left-- > 0) {
      const read = await this.read({ to: this.low - 1, since_ms: first, order: "desc" }, first);
      this.low = read.at(-1)?.seq ?? this.low;
      this.whole = read.length < this.page;
    }
  }

  private async read(
    bounds: { from?: number; to: number; since_ms?: number; order: "asc" | "desc" },
    first: number,
  ): Promise<LedgerRecord[]> {
    if (bounds.to < (bounds.from ?? 0)) return [];
    const lines = await this.ledger.records({ ...bounds, event: EVENTS, limit: this.page });
    const records = lines.map((line) => JSON.parse(line) as LedgerRecord);
    for (const record of records) if (record.ts_ms >= first) this.count(record);
    return records;
  }

  private count({ ts_ms, event, detail, tool }: LedgerRecord): void {
    const hour = Math.floor(ts_ms / HOUR_MS);
    const counts = this.hours.get(hour) ?? noCalls();
    this.hours.set(hour, counts);
    if (event === "blocked") counts[waitsForApproval(detail) ? "waiting" : "refused"]++;
    else if (event === "would_block") {
      // Such a call has two records: that it would be blocked, and that it was allowed.
      counts.would_block++;
      counts.allowed--;
    } else counts.allowed++;
    if (event === "would_block" || tool === undefined) return;
    const tools = this.tools.get(hour) ?? new Map<string, number>();
    this.tools.set(hour, tools);
    tools.set(tool, (tools.get(tool) ?? 0) + 1);
  }

  private forgetBefore(hour: number): void {
    for (const map of [this.hours, this.tools])
      for (const known of map.keys()) if (known < hour) map.delete(known);
  }
}

function noCalls(): DecisionCounts {
  return { allowed: 0, would_block: 0, waiting: 0, refused: 0 };
}
