/**
 * Telling open pages that something changed, by server-sent events. One watcher of the store serves every page of
 * those who see the same: the whole service, or one tenant. A message says only that there is news, and the page
 * fetches what it shows like any reader would.
 */
import { PassThrough } from "node:stream";
import type { App } from "../app/app.ts";
import { atMost } from "../kernel/deadline.ts";
import { tenantOf, wholeOf } from "../store/confined.ts";
import { glance } from "./glance.ts";

const MOST_STREAMS = 500;
/** Pages are told at most so often, however busy the ledger is. */
const PACE_MS = 400;
/** How often a quiet page is told all the same: alerts come and go with time alone. */
const BEAT_MS = 15_000;

interface Listener {
  stream: PassThrough;
  /** Whether whoever opened the stream may still look. */
  alive(): Promise<boolean>;
}

export class Pulse {
  private readonly app: App;
  private readonly listeners = new Set<Listener>();
  private readonly stopped = new AbortController();
  private watching = false;
  /** How far the ledger was looked through for what concerns the listeners. */
  private looked: number | null = null;

  constructor(app: App) {
    this.app = app;
  }

  /** Null when too many are listening already. */
  open(alive: () => Promise<boolean>): PassThrough | null {
    if (this.listeners.size >= MOST_STREAMS || this.stopped.signal.aborted) return null;
    const stream = new PassThrough();
    const listener = { stream, alive };
    this.listeners.add(listener);
    stream.once("close", () => this.listeners.delete(listener));
    // A reader that vanishes in the middle of a word is none of our troubles.
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
      say(stream, news((await glance(this.app)).pulse));
    } catch {
      // The next beat comes by itself.
    }
  }

  private async watch(): Promise<void> {
    this.watching = true;
    let told = "";
    let beaten = performance.now();
    while (this.listeners.size > 0 && !this.stopped.signal.aborted) {
      const beat = new AbortController();
      // Watch first, then look: a change between the two must not be missed.
      const changed = this.app.core.store
        .changed(AbortSignal.any([beat.signal, this.stopped.signal]))
        // A store that cannot say so is looked at with the next beat.
        .catch(() => pause(BEAT_MS, beat.signal));
      try {
        if (await this.concerns()) {
          const { pulse } = await glance(this.app);
          if (pulse !== told) this.send(news(pulse));
          told = pulse;
        }
      } catch {
        // A store that is away for a moment is looked at again.
      }
      await atMost(changed, BEAT_MS);
      beat.abort();
      // By the clock, since on a busy ledger there is always news and never a quiet moment.
      if (performance.now() - beaten >= BEAT_MS) {
        await this.beat(told);
        beaten = performance.now();
      }
      await pause(PACE_MS, this.stopped.signal);
    }
    this.watching = false;
  }

  /** Whether what was recorded since the last look may concern the listeners; a tenant has its neighbours' passed over. */
  private async concerns(): Promise<boolean> {
    const { store } = this.app.core;
    if (tenantOf(store) === null) return true;
    const { records } = await store.head();
    const from = this.looked;
    this.looked = records;
    if (from === null || from >= records) return true;
    const added = { from, to: records - 1, limit: 1 };
    if ((await store.records(added)).length > 0) return true;
    return (await wholeOf(store).records({ ...added, event: ["halted", "resumed"] })).length > 0;
  }

  /** Ends the streams of those who were logged out meanwhile, and keeps the others awake. */
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

/** Nothing is kept for a reader who does not read: the next word says the same. */
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
