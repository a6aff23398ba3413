/**
 * The environment that a decision can depend on: time, ids, randomness and waiting. Core code receives an Env and uses
 * no other source, so tests can freeze time and seed randomness.
 */
export interface RuntimeEnv {
  /** Wall-clock time in milliseconds. */
  now(): number;
  /** A monotonic clock in milliseconds, for measurements and deadlines. */
  elapsed(): number;
  uuid(): string;
  /** A time-ordered id (RFC 9562, version 7). */
  uuidv7(): string;
  bytes(length: number): Uint8Array;
  /** A number in [0, 1), for jitter. */
  random(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export function uuidv7From(now: number, random: Uint8Array): string {
  const bytes = new Uint8Array(16);
  bytes.set(random.subarray(0, 16));
  let rest = now;
  for (let i = 5; i >= 0; i--) {
    bytes[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Calls `fire` once after `ms`. The returned function cancels the timer. */
export function startTimer(ms: number, fire: () => void): () => void {
  const timer = setTimeout(fire, ms);
  return () => clearTimeout(timer);
}

/** Loaded with the first id, so that commands that make no ids start faster. */
let crypto: typeof import("node:crypto") | undefined;
const randomness = () => {
  crypto ??= process.getBuiltinModule("node:crypto");
  return crypto;
};

export const systemEnv: RuntimeEnv = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  uuid: () => randomness().randomUUID(),
  uuidv7: () => uuidv7From(Date.now(), randomness().randomBytes(16)),
  bytes: (length) => randomness().randomBytes(length),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      }, ms);
      signal?.addEventListener("abort", onAbort, { once: true });
    }),
};
