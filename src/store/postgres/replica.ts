/**
 * A replica that is read from, and how far it is behind. Its lag is the age of the newest state of the primary that it
 * is known to have: both heads are looked at, the primary's first, and a replica that has that head, or a later one, has
 * everything that was committed before. No clock but our own is asked, and what is not known is not fresh.
 */
import type { Replica } from "../../port/store.ts";
import { type HeadVersion, PgReader } from "./reader.ts";
import { idlePause } from "./time-limit.ts";

const LOOK_EVERY_MS = 1_000;
/** States of the primary that the replica has not reached yet: a minute of them, then every other one goes. */
const MAX_STATES = 64;

interface State extends HeadVersion {
  at: number;
}

export class PostgresReplica implements Replica {
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

  /** However many ask, it is looked once at a time. A replica that does not answer is as old as it was. */
  private look(): Promise<void> {
    this.looking ??= this.compare()
      .catch(() => {})
      .finally(() => {
        this.looking = undefined;
      });
    return this.looking;
  }

  /** Another ledger than ours is never ahead of it, however long it is. */
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

/** With as many records and another version it may be on either side; that proves nothing. */
function hasState(there: HeadVersion, state: HeadVersion): boolean {
  return there.records > state.records || there.version === state.version;
}
