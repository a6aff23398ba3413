/**
 * Streams the ledger to external log systems. Each sink follows the ledger from its stored position. Undelivered
 * records are read again, so none is dropped, and no decision waits for a sink. Of several processes on one store, one
 * at a time serves a sink.
 */

import type { ExportSink } from "../../config/sections/operations.ts";
import type { EgressClient } from "../../egress/egress.ts";
import {
  assertLeaseHeld,
  type LeaseDeps,
  type LeaseHeartbeat,
  LeaseLostError,
  type LeaseSubject,
  leaseKey,
  releaseLease,
  startHeartbeat,
  tryLease,
  type WorkLease,
} from "../../govern/lease.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import { messageOf } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { settleWithin, withTimeout } from "../../kernel/timeout.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { deliverBatch, type FormattedRecord, sinkName } from "./deliver.ts";
import { writeRecord } from "./formats.ts";

interface StreamParts extends LeaseDeps {
  egress: EgressClient;
  log: ServiceLogger;
  version: string;
}

/** Stored position of a sink: the next record to send. */
interface Position {
  next: number;
}

/** A sink that this process serves. */
interface Serving {
  lease: WorkLease;
  heartbeat: LeaseHeartbeat;
  next: number;
}

const BATCH = 100;
const MAX_BACKOFF_MS = 60_000;
/** At a shutdown, the time for a batch in flight to arrive before another process takes the sink over. */
const LAST_BATCH_MS = 1_000;

/** Runs until the signal aborts. Then releases each sink, so that another process continues at once. */
export async function startStreams(
  parts: StreamParts,
  sinks: readonly ExportSink[],
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(sinks.map((sink) => new Stream(parts, sink, signal).run()));
}

class Stream {
  private readonly parts: StreamParts;
  private readonly sink: ExportSink;
  private readonly signal: AbortSignal;
  private readonly holder: string;
  private readonly key: string;
  private readonly subject: LeaseSubject;
  private serving: Serving | null = null;
  private failures = 0;

  constructor(parts: StreamParts, sink: ExportSink, signal: AbortSignal) {
    this.parts = parts;
    this.sink = sink;
    this.signal = signal;
    this.holder = `export/${parts.env.uuid()}`;
    const id = sha256Hex(
      `${sink.type}\n${sink.type === "webhook" ? sink.url : sinkName(sink)}\n${sink.format}`,
    ).slice(0, 32);
    this.key = `export:${id}`;
    this.subject = { key: `export/${id}`, what: `export to ${sinkName(sink)}` };
  }

  async run(): Promise<void> {
    const ended = this.work().finally(() => this.leave());
    await Promise.race([ended, this.stopped()]);
    await settleWithin(ended, LAST_BATCH_MS, this.parts);
    await this.leave();
  }

  private stopped(): Promise<void> {
    const { signal } = this;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  }

  private async work(): Promise<void> {
    const { env, log } = this.parts;
    while (!this.signal.aborted) {
      try {
        const pause = await this.step();
        if (this.failures > 0 && pause !== "others") {
          log.info("an export sink accepts records again", { sink: sinkName(this.sink) });
          this.failures = 0;
        }
        if (pause === "others") await env.sleep(SERVICE_LIMITS.lease_heartbeat_ms, this.signal);
        else if (pause === "empty") await this.untilChanged();
      } catch (error) {
        if (this.signal.aborted) return;
        if (this.failures++ === 0)
          log.warn("an export sink did not accept records; delivery is retried until it does", {
            sink: sinkName(this.sink),
            error: messageOf(error),
          });
        const wait = Math.min(
          MAX_BACKOFF_MS,
          SERVICE_LIMITS.look_again_ms * 2 ** Math.min(this.failures, 10),
        );
        await env.sleep(wait, this.signal).catch(() => undefined);
      }
    }
  }

  /** Sends one batch. A batch without confirmation is sent again; no record is skipped. */
  private async step(): Promise<"sent" | "empty" | "others"> {
    const { store, version, egress } = this.parts;
    const serving = await this.serve();
    if (serving === null) return "others";
    const lines = await store.records({ from: serving.next, limit: BATCH });
    if (lines.length === 0) return "empty";
    const batch = lines.map((line): FormattedRecord => {
      const one = { line, record: JSON.parse(line) as LedgerRecord };
      return { ...one, text: writeRecord(one, this.sink.format, version) };
    });
    await deliverBatch(this.sink, batch, egress);
    return (await this.move(serving, batch.at(-1)!.record.seq + 1)) ? "sent" : "others";
  }

  /** Takes the sink's lease and position; null while another process serves the sink. */
  private async serve(): Promise<Serving | null> {
    if (this.serving?.heartbeat.lost.aborted === true) await this.leave();
    if (this.serving !== null) return this.serving;
    const { parts, key, subject, holder } = this;
    const taken = await parts.store.transact({
      needs: [["meta", key], leaseKey(subject)],
      run(tx: StoreTx) {
        const known = fromJson<Position | undefined>(tx.get("meta", key));
        const lease = tryLease(parts, tx, subject, holder);
        return lease && { lease, next: known?.next ?? 0 };
      },
    });
    if (taken === null) return null;
    this.serving = { ...taken, heartbeat: startHeartbeat(parts, taken.lease) };
    return this.serving;
  }

  /**
   * Stores the new position. Returns false if another process has taken over; that one continues from its own position.
   */
  private async move(serving: Serving, next: number): Promise<boolean> {
    const { key, subject } = this;
    const position: Position = { next };
    try {
      await this.parts.store.transact({
        needs: [["meta", key], leaseKey(subject)],
        run(tx: StoreTx) {
          assertLeaseHeld(tx, serving.lease);
          tx.put("meta", key, asJson(position));
        },
      });
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      await this.leave();
      return false;
    }
    serving.next = next;
    return true;
  }

  private async leave(): Promise<void> {
    const { serving } = this;
    this.serving = null;
    if (serving === null) return;
    await serving.heartbeat.stop();
    await releaseLease(this.parts, serving.lease);
  }

  private async untilChanged(): Promise<void> {
    const done = new AbortController();
    const { store, env } = this.parts;
    const changed = store.changed(AbortSignal.any([done.signal, this.signal]));
    try {
      await withTimeout(changed, SERVICE_LIMITS.look_again_ms, () => undefined, { env });
    } finally {
      done.abort();
    }
  }
}
