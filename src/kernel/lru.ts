/**
 * A map that drops entries not used recently. It keeps two generations: a lookup moves an old entry to the young
 * generation. When the young generation is full, it replaces the old one. Looking up a young entry, the common case,
 * changes nothing.
 */
export class LruMap<K, V> {
  private young = new Map<K, V>();
  private old = new Map<K, V>();
  private readonly half: number;

  /** Holds at most `capacity` entries, and at least the `capacity / 2` most recently used ones. */
  constructor(capacity: number) {
    this.half = Math.max(1, Math.floor(capacity / 2));
  }

  get(key: K): V | undefined {
    const value = this.young.get(key);
    if (value !== undefined) return value;
    const aging = this.old.get(key);
    if (aging !== undefined) this.set(key, aging);
    return aging;
  }

  set(key: K, value: V): void {
    if (this.young.size >= this.half && !this.young.has(key)) {
      this.old = this.young;
      this.young = new Map();
    }
    this.young.set(key, value);
  }

  delete(key: K): void {
    this.young.delete(key);
    this.old.delete(key);
  }

  clear(): void {
    this.young.clear();
    this.old.clear();
  }
}
