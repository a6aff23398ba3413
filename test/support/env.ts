/**
 * An Env with a frozen clock that the test moves. Its ids and randomness follow from
 * a seed: the same test gives the same bytes every time.
 */
import { type RuntimeEnv, uuidv7From } from "../../src/kernel/env.ts";

export interface FakeEnv extends RuntimeEnv {
  /** Moves time on and wakes, in order, everybody who sleeps until then. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock alone, as somebody with a watch would; sleepers and `elapsed` do not notice. */
  setNow(ms: number): void;
  /** How many are asleep. */
  readonly sleepers: number;
  /** Every requested sleep, in milliseconds, for tests of backoff. */
  readonly slept: readonly number[];
}

export interface FakeEnvOptions {
  /** The wall clock at the start; 2026-01-01 by default. */
  now?: number;
  seed?: number;
  /** Sleeping moves time on at once instead of waiting for `advance`. */
  autoSleep?: boolean;
}

interface Sleeper {
  readonly at: number;
  wake(): void;
}

const DEFAULT_NOW = Date.UTC(2026, 0, 1);

export function fakeEnv(options: FakeEnvOptions = {}): FakeEnv {
  const random = seeded(options.seed ?? 1);
  const sleepers: Sleeper[] = [];
  const slept: number[] = [];
  let elapsed = 0;
  let offset = options.now ?? DEFAULT_NOW;

  const bytes = (length: number): Uint8Array => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const now = (): number => offset + elapsed;

  const advance = async (ms: number): Promise<void> => {
    const until = elapsed + ms;
    for (;;) {
      // Let what runs now reach its next sleep before deciding who is due.
      await settle();
      const next = sleepers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      elapsed = Math.max(elapsed, next.at);
      next.wake();
    }
    elapsed = until;
  };

  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    slept.push(ms);
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (options.autoSleep) {
      elapsed += ms;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        sleepers.splice(sleepers.indexOf(sleeper), 1);
        signal?.removeEventListener("abort", onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(signal?.reason);
      };
      const sleeper: Sleeper = {
        at: elapsed + ms,
        wake: () => {
          leave();
          resolve();
        },
      };
      sleepers.push(sleeper);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  };

  return {
    now,
    elapsed: () => elapsed,
    uuid: () => uuidv4From(bytes(16)),
    uuidv7: () => uuidv7From(now(), bytes(16)),
    bytes,
    random,
    sleep,
    advance,
    setNow: (ms) => {
      offset = ms - elapsed;
    },
    get sleepers() {
      return sleepers.length;
    },
    slept,
  };
}

/** Numbers in [0, 1) from a seed (sfc32: small, fast, passes the usual batteries). */
export function seeded(seed: number): () => number {
  let a = 0x9e3779b9;
  let b = 0x243f6a88;
  let c = 0xb7e15162;
  let d = seed | 0;
  const next = (): number => {
    const t = (a + b + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + t;
    return (t >>> 0) / 0x1_0000_0000;
  };
  // Adjacent seeds start alike; a few rounds separate them.
  for (let i = 0; i < 15; i++) next();
  return next;
}

function uuidv4From(random: Uint8Array): string {
  const bytes = Buffer.from(random);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** A turn of the event loop, in which every promise that can settle does. */
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
