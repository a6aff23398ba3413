/**
 * How long something was seen unchanged, by the monotonic clock of the process that sees it. It is the one rule by
 * which a process may declare another dead: clocks of other machines, and the time of day, do not count.
 */
import { Lru } from "./lru.ts";

interface Sighting {
  mark: string;
  since: number;
}

/** Forgetting a sighting is safe: the process only waits longer. */
const MAX_SIGHTINGS = 20_000;

export class SilenceWatch {
  private readonly seen = new Lru<string, Sighting>(MAX_SIGHTINGS);

  /** Notes what is there now, read before `elapsed`; returns for how long it was seen unchanged. */
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
