/**
 * Live updates for open pages, by server-sent events. One watcher of the store serves all pages with the same view: the
 * entire service, or one tenant. A message only signals a change; the page then fetches its content as usual.
 */

import { PassThrough } from "node:stream";
import { settleWithin } from "../kernel/timeout.ts";
import type { ServiceApp } from "../operations/app.ts";
import { hasTenantNews, isTenantView, ledgerOf } from "../operations/ledger-reader.ts";
import { loadHeaderStatus } from "./header-status.ts";

const MAX_STREAMS = 500;
/** Minimum time between two messages, however busy the ledger is. */
const PACE_MS = 400;
/** Time between heartbeats. Quiet pages refresh on them, because alerts can also change with time alone. */
const BEAT_MS = 15_000;

interface Listener {
  stream: PassThrough;
  /** Whether the session that opened the stream is still valid. */
  alive(): Promise<boolean>;
}

export class LiveUpdates {
  private readonly app: ServiceApp;
  private readonly listeners = new Set<Listener>();
  private readonly stopped = new AbortController();
  private watching = false;
  /** Ledger length up to which records were checked for relevance to the listeners. */
  private looked: number | null = null;

  constructor(app: ServiceApp) {
    this.app = app;
  }

  /** Returns null if too many streams are open. */
  open(alive: () => Promise<boolean>): PassThrough | null {
    if (this.listeners.size >= MAX_STREAMS || this.stopped.signal.aborted) return null;
    const stream = new PassThrough();
    const listener = { stream, alive };
    this.listeners.add(listener);
    stream.once("close", () => this.listeners.delete(listener));
    // Ignore write errors of a reader that disconnected.
    stream.on("error", () => {});
    say(stream, "retry: 3000\n\n");
    if (!this.watching) void this.watch();
    else void this.tellOne(listener);
    return stream;
  }

  close(): void {
    this.stopped.abort();
    for (const { stream } of this.listeners) stream.end();
  }

  private async tellOne({ stream }: Listener): Promise<void> {
    try {
      say(stream, news((await loadHeaderStatus(this.app)).pulse));
    } catch {
      // Ignore: the next heartbeat updates this page.
    }
  }

  private async watch(): Promise<void> {
    this.watching = true;
    let sent = "";
    let beaten = performance.now();
    while (this.listeners.size > 0 && !this.stopped.signal.aborted) {
      const beat = new AbortController();
      // Start watching before reading, so that no change between the two is missed.
      const changed = ledgerOf(this.app)
        .changed(AbortSignal.any([beat.signal, this.stopped.signal]))
        // If the store cannot watch for changes, poll it with each heartbeat.
        .catch(() => pause(BEAT_MS, beat.signal));
      try {
        if (await this.concerns()) {
          const { pulse } = await loadHeaderStatus(this.app);
          if (pulse !== sent) this.send(news(pulse));
          sent = pulse;
        }
      } catch {
        // Ignore: the store may be unavailable for a moment, and the next round reads it again.
      }
      await settleWithin(changed, BEAT_MS);
      beat.abort();
      // Heartbeats go by the clock: a busy ledger never has a quiet moment.
      if (performance.now() - beaten >= BEAT_MS) {
        await this.beat(sent);
        beaten = performance.now();
      }
      await pause(PACE_MS, this.stopped.signal);
    }
    this.watching = false;
  }

  /**
   * Whether the records since the last check can matter to the listeners. For a tenant, records of other tenants do
   * not.
   */
  private async concerns(): Promise<boolean> {
    if (!isTenantView(this.app)) return true;
    const { records } = await ledgerOf(this.app).head();
    const from = this.looked;
    this.looked = records;
    if (from === null || from >= records) return true;
    return hasTenantNews(this.app, from, records - 1);
  }

  /** Sends a heartbeat to each stream and ends the streams whose session has ended. */
  private async beat(pulse: string): Promise<void> {
    for (const listener of [...this.listeners]) {
      const alive = await listener.alive().catch(() => true);
      if (alive) say(listener.stream, `event: beat\n${news(pulse)}`);
      else listener.stream.end("event: end\ndata: over\n\n");
    }
  }

  private send(text: string): void {
    for (const { stream } of this.listeners) say(stream, text);
  }
}

/** Drops the message if the reader is not keeping up: the next one carries the same information. */
function say(stream: PassThrough, text: string): void {
  if (stream.writable && !stream.writableNeedDrain) stream.write(text);
}

const news = (pulse: string): string => `data: ${pulse}\n\n`;

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms);
    timer.unref();
    signal.addEventListener("abort", done, { once: true });
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}
