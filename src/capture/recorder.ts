/**
 * Writes captured calls, behind the decisions and in batches of its own. It hears of a call after it was
 * decided and recorded, takes note of it, and does the work later; whatever goes wrong is a warning.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Core, type DecidedCall, ENGINE, type FinishedCall, type Listeners } from "../engine/core.ts";
import { captureKey } from "../engine/keys.ts";
import { within } from "../kernel/deadline.ts";
import { messageOf } from "../kernel/errors.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Unit } from "../port/store.ts";
import type { PastCall } from "../sandbox/past-call.ts";
import type { Logger } from "../telemetry/log.ts";
import { BoundedQueue, weightOf } from "./queue.ts";
import { type CaptureRules, capturedCall, type Finish, finishOf, type RecordedCall } from "./record.ts";

type Item =
  | { kind: "decided"; weight: number; decided: RecordedCall }
  | { kind: "finished"; weight: number; call: FinishedCall; tries: number };

type Write =
  | { kind: "call"; key: string; call: PastCall }
  | { kind: "finish"; key: string; finish: Finish; item: Extract<Item, { kind: "finished" }> };

interface CaptureStats {
  queued: number;
  ok: number;
  failed: number;
  dropped: number;
}

const BATCH = { items: 64, weight: 256 * 1_024 };
const WORK_MS = 5;
/** The call and its outcome may come through different processes, the outcome a little ahead. */
const RETRY = { tries: 4, wait_ms: 250, while_ms: 30_000 };
const WARN_EVERY_MS = 10_000;

export class CaptureRecorder implements Pick<Listeners, "recorded" | "intentDecided" | "outcomeReported"> {
  private readonly core: Core;
  private readonly rules: CaptureRules;
  private readonly log: Logger;
  private readonly queue = new BoundedQueue<Item>();
  private early: Item[] = [];
  private latest: { record: LedgerRecord; approval_used: boolean } | undefined;
  private working: Promise<void> | undefined;
  private since = 0;
  private readonly counts = { ok: 0, failed: 0, dropped: 0 };
  private untold: { n: number; why: string } | undefined;
  private told_at = Number.NEGATIVE_INFINITY;

  constructor(core: Core, rules: CaptureRules, log: Logger) {
    this.core = core;
    this.rules = { ...rules, pause: this.pause };
    this.log = log;
  }

  /** An intent's records are told right before the intent itself. */
  readonly recorded = (records: readonly LedgerRecord[]): void => {
    const record = records.findLast(({ event }) => event === "intended" || event === "blocked");
    if (record === undefined) return;
    const approval_used = records.some(({ event, actor }) => event === "approved" && actor === ENGINE);
    this.latest = { record, approval_used };
  };

  readonly intentDecided = (call: DecidedCall): void => {
    const { latest } = this;
    this.latest = undefined;
    if (latest?.record.run_id !== call.run.run_id || latest.record.run_seq !== call.run.next_run_seq - 1) {
      this.warn("a decision came without its record", 1);
    } else this.push({ kind: "decided", weight: weightOf(call.args), decided: { call, ...latest } });
  };

  readonly outcomeReported = (call: FinishedCall): void => {
    this.push({ kind: "finished", weight: weightOf(call.result ?? null), call, tries: 0 });
  };

  stats(): CaptureStats {
    return { queued: this.queue.length + this.early.length, ...this.counts };
  }

  /** Resolves once all that was told so far is written, as far as that goes within the time. */
  async settle(ms: number): Promise<void> {
    this.retryEarly();
    if (this.working !== undefined) await within(this.idle(), ms, () => undefined);
  }

  private async idle(): Promise<void> {
    while (this.working !== undefined) await this.working;
  }

  /** The last chance to write, before the service stops. */
  async drain(ms: number): Promise<void> {
    await this.settle(ms);
    if (this.queue.length > 0) this.warn("the service stops", this.queue.length);
    this.tell();
  }

  private push(item: Item): void {
    if (!this.queue.push(item)) {
      this.counts.dropped++;
      this.warn("too many calls wait to be captured", 1);
    } else this.working ??= this.work();
  }

  private async work(): Promise<void> {
    // The answer that is being given goes first.
    await nextTurn();
    while (this.queue.length > 0) {
      const batch = this.queue.take(BATCH.items, BATCH.weight);
      try {
        await this.write(await this.prepare(batch));
      } catch (error) {
        this.counts.failed += batch.length;
        this.warn(messageOf(error), batch.length);
      }
    }
    this.working = undefined;
  }

  private async prepare(batch: readonly Item[]): Promise<Write[]> {
    const writes: Write[] = [];
    this.since = performance.now();
    for (const item of batch) writes.push(await this.prepared(item));
    return writes;
  }

  private async prepared(item: Item): Promise<Write> {
    if (item.kind === "decided") {
      const call = await capturedCall(this.core, item.decided, this.rules);
      return { kind: "call", key: captureKey(item.decided.record.seq), call };
    }
    const key = captureKey(item.call.step.intended_seq);
    return { kind: "finish", key, finish: await finishOf(item.call, this.rules), item };
  }

  /** Redaction gives way to requests every few milliseconds. */
  private readonly pause = (): Promise<void> | undefined => {
    if (performance.now() - this.since < WORK_MS) return undefined;
    return nextTurn().then(() => {
      this.since = performance.now();
    });
  };

  private async write(writes: readonly Write[]): Promise<void> {
    const missing = await this.core.store.transact(writeUnit(writes));
    this.counts.ok += writes.length - missing.length;
    for (const item of missing) this.keepEarly(item);
  }

  /** An outcome whose call is not there: written shortly by another process, or never captured. */
  private keepEarly(item: Extract<Item, { kind: "finished" }>): void {
    const age = this.core.env.now() - item.call.step.intended_ms;
    if (item.tries + 1 >= RETRY.tries || age > RETRY.while_ms) return;
    if (this.early.length === 0) setTimeout(() => this.retryEarly(), RETRY.wait_ms).unref();
    this.early.push({ ...item, tries: item.tries + 1 });
  }

  private retryEarly(): void {
    for (const item of this.early.splice(0)) this.push(item);
  }

  private warn(why: string, n: number): void {
    this.untold = { n: (this.untold?.n ?? 0) + n, why };
    if (performance.now() - this.told_at >= WARN_EVERY_MS) this.tell();
  }

  private tell(): void {
    if (this.untold === undefined) return;
    const { n, why } = this.untold;
    this.log.warn("calls were not captured", { calls: n, error: why });
    this.untold = undefined;
    this.told_at = performance.now();
  }
}

/** Answers the outcomes whose calls are not there. */
function writeUnit(writes: readonly Write[]): Unit<Extract<Item, { kind: "finished" }>[]> {
  return {
    needs: writes.flatMap(({ kind, key }) => (kind === "finish" ? [["captures", key] as const] : [])),
    run(tx) {
      const missing: Extract<Item, { kind: "finished" }>[] = [];
      for (const write of writes) {
        if (write.kind === "call") {
          tx.put("captures", write.key, write.call);
          continue;
        }
        const call = tx.get("captures", write.key);
        const { redacted, ...finish } = write.finish;
        if (call === undefined) missing.push(write.item);
        else tx.put("captures", write.key, { ...call, ...finish, redacted: call.redacted || redacted });
      }
      return missing;
    },
  };
}
