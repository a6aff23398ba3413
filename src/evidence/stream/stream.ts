/**
 * The ledger as a stream to where an organisation keeps its logs. Each sink follows the ledger by itself from the
 * position that the store keeps for it: what could not be delivered is read again, so that nothing is dropped, and
 * nothing that decides waits for it. Of several processes on one store, one at a time serves a sink.
 */
import type { ExportSink } from "../../config/sections/operations.ts";
import type { Egress } from "../../egress/egress.ts";
import {
  assertHeld,
  type Heartbeat,
  keepLease,
  type Lease,
  type LeaseParts,
  type LeaseSubject,
  LostLease,
  needOfLease,
  releaseLease,
  tryLease,
} from "../../engine/lease.ts";
import { atMost, within } from "../../kernel/deadline.ts";
import { messageOf } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Tx } from "../../port/store.ts";
import type { Logger } from "../../telemetry/log.ts";
import { deliverBatch, type FormattedRecord, sinkName } from "./deliver.ts";
import { writeRecord } from "./formats.ts";

interface StreamParts extends LeaseParts {
  egress: Egress;
  log: Logger;
  version: string;
}

/** What the store keeps for a sink: the record that is sent next. */
interface Position {
  next: number;
}

/** A sink as this process serves it. */
interface Serving {
  lease: Lease;
  heartbeat: Heartbeat;
  next: number;
}

const BATCH = 100;
const MAX_BACKOFF_MS = 60_000;
/** A batch under way at a stop gets this long to arrive, before the sink is left to the next process. */
const LAST_BATCH_MS = 1_000;

/** Runs until the signal aborts. Then each sink is given back, so that the next process continues at once. */
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
    await atMost(ended, LAST_BATCH_MS, this.parts);
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
          log.info("an export sink takes records again", { sink: sinkName(this.sink) });
          this.failures = 0;
        }
        if (pause === "others") await env.sleep(LIMITS.lease_heartbeat_ms, this.signal);
        else if (pause === "empty") await this.untilChanged();
      } catch (error) {
        if (this.signal.aborted) return;
        if (this.failures++ === 0)
          log.warn("an export sink did not take records; it is tried again until it does", {
            sink: sinkName(this.sink),
            error: messageOf(error),
          });
        const wait = Math.min(MAX_BACKOFF_MS, LIMITS.look_again_ms * 2 ** Math.min(this.failures, 10));
        await env.sleep(wait, this.signal).catch(() => undefined);
      }
    }
  }

  /** Sends one batch. What is sent twice was not known to have arrived; nothing is ever skipped. */
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

  /** The sink with the position to continue at; null while another process serves it. */
  private async serve(): Promise<Serving | null> {
    if (this.serving?.heartbeat.lost.aborted === true) await this.leave();
    if (this.serving !== null) return this.serving;
    const { parts, key, subject, holder } = this;
    const taken = await parts.store.transact({
      needs: [["meta", key], needOfLease(subject)],
      run(tx: Tx) {
        const known = tx.get("meta", key) as unknown as Position | undefined;
        const lease = tryLease(parts, tx, subject, holder);
        return lease && { lease, next: known?.next ?? 0 };
      },
    });
    if (taken === null) return null;
    this.serving = { ...taken, heartbeat: keepLease(parts, taken.lease) };
    return this.serving;
  }

  /** False where another process took over: it reads from the position that it found. */
  private async move(serving: Serving, next: number): Promise<boolean> {
    const { key, subject } = this;
    const position: Position = { next };
    try {
      await this.parts.store.transact({
        needs: [["meta", key], needOfLease(subject)],
        run(tx: Tx) {
          assertHeld(tx, serving.lease);
          tx.put("meta", key, position as unknown as Json);
        },
      });
    } catch (error) {
      if (!(error instanceof LostLease)) throw error;
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
      await within(changed, LIMITS.look_again_ms, () => undefined, { env });
    } finally {
      done.abort();
    }
  }
}
