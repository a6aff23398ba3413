/**
 * The time of a store that several servers share. Every server uses the store's clock, so a request, a grant or a key
 * expires for all of them at the same moment, however wrong a server's own clock is.
 */
import type { StateStore } from "../govern/port/store.ts";
import { type RuntimeEnv, uuidv7From } from "../kernel/env.ts";
import type { ServiceLogger } from "../telemetry/log.ts";

export const CLOCK_MEASURE_MS = 10_000;
/** A larger offset is reported. Certificates, logs and traces still use the server's own clock. */
const MAX_OFFSET_MS = 5_000;
/** A slower answer does not replace an earlier measurement, because it says too little about the time. */
const MAX_ROUND_TRIP_MS = 1_000;

export class SharedClock {
  /** The environment with the store's time. */
  readonly env: RuntimeEnv;
  private readonly own: RuntimeEnv;
  private readonly time: () => Promise<number>;
  private readonly log: ServiceLogger;
  /** The store's time at a moment of the monotonic clock. A change of the server's own clock does not affect it. */
  private measured: { time: number; elapsed: number } | undefined;
  private is_off = false;

  constructor(own: RuntimeEnv, time: () => Promise<number>, log: ServiceLogger) {
    this.own = own;
    this.time = time;
    this.log = log;
    const now = () => this.now();
    this.env = { ...own, now, uuidv7: () => uuidv7From(now(), own.bytes(16)) };
  }

  async measure(): Promise<void> {
    const { own } = this;
    const start = own.elapsed();
    const time = await this.time();
    const end = own.elapsed();
    if (this.measured !== undefined && end - start > MAX_ROUND_TRIP_MS) return;
    this.measured = { time, elapsed: (start + end) / 2 };
    const { warning } = this;
    if (warning !== null && !this.is_off) this.log.warn(warning);
    this.is_off = warning !== null;
  }

  /** How far the server's own clock is ahead of the store's; negative if it is behind. */
  get offset_ms(): number {
    return this.own.now() - this.now();
  }

  get warning(): string | null {
    const { offset_ms } = this;
    if (Math.abs(offset_ms) <= MAX_OFFSET_MS) return null;
    const seconds = (Math.abs(offset_ms) / 1_000).toFixed(1);
    const where = offset_ms > 0 ? "ahead of" : "behind";
    return `this server's clock is ${seconds} s ${where} the database's; synchronise both with NTP`;
  }

  private now(): number {
    if (this.measured === undefined) return this.own.now();
    const { time, elapsed } = this.measured;
    return Math.floor(time + this.own.elapsed() - elapsed);
  }
}

/** Null for a store that only this machine uses. */
export async function openSharedClock(
  store: StateStore,
  env: RuntimeEnv,
  log: ServiceLogger,
): Promise<SharedClock | null> {
  if (store.time === undefined) return null;
  const clock = new SharedClock(env, () => store.time!(), log);
  await clock.measure();
  return clock;
}
