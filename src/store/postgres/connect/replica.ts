/**
 * A read replica and its lag. The lag is the age of the newest primary state that the replica is known to have. This
 * process reads both heads, the primary's first. A replica with that head or a later one has everything committed
 * before. Only this process's clock counts, and an unknown lag is not fresh.
 */
import type { ReadReplica } from "../../../govern/port/store.ts";
import { type HeadVersion, PgReader } from "../reader.ts";
import { idlePause } from "./time-limit.ts";

const LOOK_EVERY_MS = 1_000;
/** Primary states that the replica has not reached yet. Holds about a minute of them, then drops every other one. */
const MAX_STATES = 64;

interface State extends HeadVersion {
  at: number;
}

export class PostgresReplica implements ReadReplica {
  readonly max_lag_ms: number;
  readonly reads: PgReader;
  private readonly primary: Pick<PgReader, "version">;
  /** States of the primary, oldest first. */
  private states: State[] = [];
  /** When the primary was last seen in a state that the replica has. */
  private known_at: number | undefined;
  private looking: Promise<void> | undefined;
  private closed = false;

  constructor(url: string, max_lag_ms: number, primary: Pick<PgReader, "version">) {
    this.max_lag_ms = max_lag_ms;
    this.reads = new PgReader(url);
    this.primary = primary;
    void this.keepLooking();
  }

  get lag_ms(): number | null {
    return this.known_at === undefined ? null : performance.now() - this.known_at;
  }

  async isFresh(): Promise<boolean> {
    if (!this.isWithin()) await this.look();
    return this.isWithin();
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.reads.close();
  }

  private isWithin(): boolean {
    const { lag_ms } = this;
    return lag_ms !== null && lag_ms <= this.max_lag_ms;
  }

  private async keepLooking(): Promise<void> {
    while (!this.closed) {
      await this.look();
      await idlePause(Math.min(LOOK_EVERY_MS, this.max_lag_ms / 2));
    }
  }

  /**
   * Runs one comparison at a time, which concurrent callers share. Without a response, the known state stays the same.
   */
  private look(): Promise<void> {
    this.looking ??= this.compare()
      .catch(() => {})
      .finally(() => {
        this.looking = undefined;
      });
    return this.looking;
  }

  /** A replica with a different ledger never counts as ahead, however long that ledger is. */
  private async compare(): Promise<void> {
    const at = performance.now();
    const now = await this.primary.version();
    this.states.push({ ...now, at });
    const oldest = this.states[0]!;
    const there = await this.reads.version(oldest.records - 1);
    if (there.records >= oldest.records && oldest.records > 0 && there.hash_there !== oldest.hash) return;
    const reached = this.states.findLastIndex((state) => hasState(there, state));
    if (reached >= 0) {
      this.known_at = this.states[reached]!.at;
      this.states = this.states.slice(reached + 1);
    }
    if (this.states.length > MAX_STATES) this.states = this.states.filter((_state, i) => i % 2 === 0);
  }
}

/** With the same number of records and another version, the order is unknown, so that proves nothing. */
function hasState(there: HeadVersion, state: HeadVersion): boolean {
  return there.records > state.records || there.version === state.version;
}
