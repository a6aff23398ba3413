/**
 * Guards against stale key indexes. Deleting a key shifts the indexes after it, so an index from an earlier listing may
 * now name a different key. A request without a fingerprint is accepted only if the index still names the key this
 * caller last saw, or has never named another.
 */
import { LruMap } from "../kernel/lru.ts";

/** The number of callers to remember. Few people manage keys; a forgotten caller has to list them again. */
const READERS = 50;

interface Entry {
  readonly index: number;
  readonly fingerprint: string;
}

export class KeyIndexHistory {
  private readonly lists = new LruMap<string, Map<number, string>>(READERS);
  /** The first key that this process saw at each index. */
  private readonly first: string[] = [];
  /** The lowest index that has named two keys. */
  private moved_from = Number.POSITIVE_INFINITY;

  /** Records the entries of the file, including edits by others. */
  look(entries: readonly Entry[]): void {
    for (const { index, fingerprint } of entries) {
      this.first[index] ??= fingerprint;
      if (this.first[index] !== fingerprint) this.moved(index);
    }
  }

  /** Marks the entries from this index on as moved, or their indexes as free for other keys. */
  moved(index: number): void {
    this.moved_from = Math.min(this.moved_from, index);
  }

  listed(reader: string, entries: readonly Entry[]): void {
    this.lists.set(reader, new Map(entries.map(({ index, fingerprint }) => [index, fingerprint])));
  }

  /** Records that a response showed this entry to the caller. */
  noteShown(reader: string, { index, fingerprint }: Entry): void {
    const list = this.lists.get(reader) ?? new Map<number, string>();
    this.lists.set(reader, list.set(index, fingerprint));
  }

  /** Returns the fingerprint of the key that the caller must mean, or undefined if that is unknown. */
  meant(reader: string, { index, fingerprint }: Entry): string | undefined {
    return this.lists.get(reader)?.get(index) ?? (index < this.moved_from ? fingerprint : undefined);
  }
}
