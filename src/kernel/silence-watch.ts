/**
 * Tracks how long a value has not changed, by the monotonic clock of this process. Only this rule lets a process
 * declare another one dead: clocks of other machines and wall-clock time do not count.
 */
import { LruMap } from "./lru.ts";

interface Sighting {
  mark: string;
  since: number;
}

/** Dropping a sighting is safe: this process only waits longer. */
const MAX_SIGHTINGS = 20_000;

export class SilenceWatch {
  private readonly seen = new LruMap<string, Sighting>(MAX_SIGHTINGS);

  /** Records the current value, read before `elapsed`. Returns how long it has been unchanged. */
  silentFor(key: string, mark: string, elapsed: number): number {
    const known = this.seen.get(key);
    if (known?.mark === mark) return elapsed - known.since;
    this.seen.set(key, { mark, since: elapsed });
    return 0;
  }

  forget(key: string): void {
    this.seen.delete(key);
  }
}
