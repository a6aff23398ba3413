/**
 * Writes captured calls in batches, after their decisions. It queues a call once its decision is recorded and does the
 * work later. A failure is only a warning.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type DecidedCall,
  ENGINE_ACTOR,
  type EngineCore,
  type EngineListeners,
  type FinishedCall,
} from "../govern/core.ts";
import { captureKey } from "../govern/document-keys.ts";
import type { UnitOfWork } from "../govern/port/store.ts";
import { messageOf } from "../kernel/errors.ts";
import { withTimeout } from "../kernel/timeout.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { HistoricCall } from "../simulate/recorded-call.ts";
import type { ServiceLogger } from "../telemetry/log.ts";
import { BoundedQueue, weightOf } from "./queue.ts";
import {
  type CapturedOutcome,
  type CaptureRules,
  capturedCall,
  type RecordedCall,
  toCapturedOutcome,
} from "./record.ts";

type Item =
  | { kind: "decided"; weight: number; decided: RecordedCall }
  | { kind: "finished"; weight: number; call: FinishedCall; tries: number };

type Write =
  | { kind: "call"; key: string; call: HistoricCall }
  | { kind: "finish"; key: string; finish: CapturedOutcome; item: Extract<Item, { kind: "finished" }> };

interface CaptureStats {
  queued: number;
  ok: number;
  failed: number;
  dropped: number;
}

const BATCH = { items: 64, weight: 256 * 1_024 };
const WORK_MS = 5;
/** Retries of an outcome that arrives before its call, as can happen across processes. */
const RETRY = { tries: 4, wait_ms: 250, while_ms: 30_000 };
const WARN_EVERY_MS = 10_000;

export class CaptureRecorder
  implements Pick<EngineListeners, "recorded" | "intentDecided" | "outcomeReported">
{
  private readonly core: EngineCore;
  private readonly rules: CaptureRules;
  private readonly log: ServiceLogger;
  private readonly queue = new BoundedQueue<Item>();
  private early: Item[] = [];
  private latest: { record: LedgerRecord; approval_used: boolean } | undefined;
  private working: Promise<void> | undefined;
  private since = 0;
  private readonly counts = { ok: 0, failed: 0, dropped: 0 };
  private untold: { n: number; why: string } | undefined;
  private told_at = Number.NEGATIVE_INFINITY;

  constructor(core: EngineCore, rules: CaptureRules, log: ServiceLogger) {
    this.core = core;
    this.rules = { ...rules, pause: this.pause };
    this.log = log;
  }

  /** The engine announces an intent's records just before the intent itself. */
  readonly recorded = (records: readonly LedgerRecord[]): void => {
    const record = records.findLast(({ event }) => event === "intended" || event === "blocked");
    if (record === undefined) return;
    const approval_used = records.some(({ event, actor }) => event === "approved" && actor === ENGINE_ACTOR);
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

  /** Resolves once all calls so far are written, or after `ms`. */
  async settle(ms: number): Promise<void> {
    this.retryEarly();
    if (this.working !== undefined) await withTimeout(this.idle(), ms, () => undefined);
  }

  private async idle(): Promise<void> {
    while (this.working !== undefined) await this.working;
  }

  /** Writes the rest before the service stops, as far as the time allows. */
  async drain(ms: number): Promise<void> {
    await this.settle(ms);
    if (this.queue.length > 0) this.warn("the service stops", this.queue.length);
    this.tell();
  }

  private push(item: Item): void {
    if (!this.queue.push(item)) {
      this.counts.dropped++;
      this.warn("too many calls are waiting to be captured", 1);
    } else this.working ??= this.work();
  }

  private async work(): Promise<void> {
    // Let the current response go first.
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
    return { kind: "finish", key, finish: await toCapturedOutcome(item.call, this.rules), item };
  }

  /** Pauses redaction every few milliseconds for requests. */
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

  /** Keeps an outcome without a stored call. Another process may write the call soon, or it was never captured. */
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

/** Writes the batch and returns the outcomes without a stored call. */
function writeUnit(writes: readonly Write[]): UnitOfWork<Extract<Item, { kind: "finished" }>[]> {
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
