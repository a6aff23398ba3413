/**
 * A queue with one line per share. If a batch has no room for all, it takes one entry of each line in turn, so that a
 * busy tenant only delays itself. A batch with enough room takes everything. Entries of one batch keep their order of
 * arrival.
 */
export class FairQueue<T> {
  private readonly lines = new Map<string, Line<T>>();
  private arrivals = 0;
  private waiting = 0;

  get length(): number {
    return this.waiting;
  }

  push(share: string, item: T): void {
    const arrived = { item, at: this.arrivals++ };
    this.waiting++;
    const line = this.lines.get(share);
    if (line === undefined) this.lines.set(share, { arrived: [arrived], next: 0 });
    else line.arrived.push(arrived);
  }

  take(max: number): T[] {
    const taken: Arrived<T>[] = [];
    while (taken.length < max && this.lines.size > 0) {
      const [share, line] = this.lines.entries().next().value!;
      // A single line needs no rotation.
      const count = this.lines.size === 1 ? max - taken.length : 1;
      const end = Math.min(line.arrived.length, line.next + count);
      for (; line.next < end; line.next++) taken.push(line.arrived[line.next]!);
      this.lines.delete(share);
      if (end < line.arrived.length) this.lines.set(share, shortened(line));
    }
    this.waiting -= taken.length;
    return taken.sort((a, b) => a.at - b.at).map(({ item }) => item);
  }
}

interface Arrived<T> {
  item: T;
  at: number;
}

interface Line<T> {
  arrived: Arrived<T>[];
  /** Index of the first waiting entry. */
  next: number;
}

/** Drops taken entries from time to time. Each entry moves at most once, however long the line is. */
function shortened<T>(line: Line<T>): Line<T> {
  if (line.next * 2 < line.arrived.length) return line;
  return { arrived: line.arrived.slice(line.next), next: 0 };
}
