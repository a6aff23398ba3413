/**
 * The ledger as a stream to where an organisation keeps its logs. Each sink follows the ledger by itself from the
 * position that the store keeps for it: what could not be delivered is read again, so that nothing is dropped, and
 * nothing that decides waits for it. Of several processes on one store, one at a time serves a sink.
 */
import type { ExportSink } from "../../config/sections/operations.ts";
import type { Egress } from "../../egress/egress.ts";
import { within } from "../../kernel/deadline.ts";
import type { Env } from "../../kernel/env.ts";
import { messageOf } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Store } from "../../port/store.ts";
import type { Logger } from "../../telemetry/log.ts";
import { deliverBatch, type FormattedRecord, sinkName } from "./deliver.ts";
import { writeRecord } from "./formats.ts";

interface StreamParts {
  store: Store;
  env: Env;
  egress: Egress;
  log: Logger;
  version: string;
}

interface Position {
  /** The record that is sent next. */
  next: number;
  holder: string;
  expires_ms: number;
}

const BATCH = 100;
const MAX_BACKOFF_MS = 60_000;

/** Runs until the signal aborts. */
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
  private failures = 0;
  private renewed = Number.NEGATIVE_INFINITY;

  constructor(parts: StreamParts, sink: ExportSink, signal: AbortSignal) {
    this.parts = parts;
    this.sink = sink;
    this.signal = signal;
    this.holder = parts.env.uuid();
    this.key = `export:${sha256Hex(`${sink.type}\n${sink.type === "webhook" ? sink.url : sinkName(sink)}\n${sink.format}`).slice(0, 32)}`;
  }

  async run(): Promise<void> {
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
    const from = await this.claim();
    if (from === null) return "others";
    const lines = await store.records({ from, limit: BATCH });
    if (lines.length === 0) return "empty";
    const batch = lines.map((line): FormattedRecord => {
      const one = { line, record: JSON.parse(line) as LedgerRecord };
      return { ...one, text: writeRecord(one, this.sink.format, version) };
    });
    await deliverBatch(this.sink, batch, egress);
    await this.move(batch.at(-1)!.record.seq + 1);
    return "sent";
  }

  /** Where to go on; null while another process serves the sink. */
  private async claim(): Promise<number | null> {
    const { store, env } = this.parts;
    const known = (await store.get("meta", this.key)) as unknown as Position | undefined;
    const isMine = known?.holder === this.holder && known.expires_ms > env.now();
    if (isMine && env.now() - this.renewed < LIMITS.lease_ms / 2) return known.next;
    if (known !== undefined && known.holder !== this.holder && known.expires_ms > env.now()) return null;
    return this.keep(known?.next ?? 0, false);
  }

  private async move(next: number): Promise<void> {
    await this.keep(next, true);
  }

  private async keep(next: number, mustHold: boolean): Promise<number | null> {
    const { store, env } = this.parts;
    const { key, holder } = this;
    const kept = await store.transact({
      needs: [["meta", key]],
      run(tx): number | null {
        const known = tx.get("meta", key) as unknown as Position | undefined;
        const now = env.now();
        const isOthers = known !== undefined && known.holder !== holder;
        // Whoever took over reads from the position that it found, so this one must not be written over it.
        if (isOthers && (mustHold || known.expires_ms > now)) return null;
        const position = mustHold ? next : (known?.next ?? 0);
        tx.put("meta", key, { next: position, holder, expires_ms: now + LIMITS.lease_ms } as unknown as Json);
        return position;
      },
    });
    if (kept !== null) this.renewed = env.now();
    return kept;
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
