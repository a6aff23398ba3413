/**
 * Which key an index means to whoever names it without a fingerprint. Deleting an entry moves those behind it, so
 * an index out of an older list may be the neighbour's by now. It is taken at its word only where it still means
 * the key that its caller last saw there, or where it never meant another one.
 */
import { Lru } from "../kernel/lru.ts";

/** People who manage keys are few; who is forgotten has to list them again. */
const READERS = 50;

interface Entry {
  readonly index: number;
  readonly fingerprint: string;
}

export class KeySights {
  private readonly lists = new Lru<string, Map<number, string>>(READERS);
  /** The first key that this process knew at each index. */
  private readonly first: string[] = [];
  /** From here on some index has meant two keys. */
  private moved_from = Number.POSITIVE_INFINITY;

  /** What stands in the file now, whoever wrote it there. */
  look(entries: readonly Entry[]): void {
    for (const { index, fingerprint } of entries) {
      this.first[index] ??= fingerprint;
      if (this.first[index] !== fingerprint) this.moved(index);
    }
  }

  /** Entries from this index on have moved, or their places are free for others. */
  moved(index: number): void {
    this.moved_from = Math.min(this.moved_from, index);
  }

  listed(reader: string, entries: readonly Entry[]): void {
    this.lists.set(reader, new Map(entries.map(({ index, fingerprint }) => [index, fingerprint])));
  }

  /** An answer told the reader of this one entry. */
  told(reader: string, { index, fingerprint }: Entry): void {
    const list = this.lists.get(reader) ?? new Map<number, string>();
    this.lists.set(reader, list.set(index, fingerprint));
  }

  /** The key that the reader must mean; undefined where it cannot be told. */
  meant(reader: string, { index, fingerprint }: Entry): string | undefined {
    return this.lists.get(reader)?.get(index) ?? (index < this.moved_from ? fingerprint : undefined);
  }
}
