/**
 * All complete nodes of an RFC 6962 tree over a growing list of hashes. It computes any range and any path without the
 * list.
 */
import { joinHashes } from "../../ledger/merkle-tree.ts";
import { splitOf } from "./subtrees.ts";

export class HashLevels {
  /** `levels[j][i]` covers `2^j` entries from `i * 2^j` on. */
  private readonly levels: string[][] = [[]];

  get count(): number {
    return this.levels[0]!.length;
  }

  at(index: number): string | undefined {
    return this.levels[0]![index];
  }

  push(hash: string): void {
    let node = hash;
    for (let j = 0; ; j++) {
      this.levels[j] ??= [];
      const level = this.levels[j]!;
      level.push(node);
      if (level.length % 2 === 1) return;
      node = joinHashes(level[level.length - 2]!, node);
    }
  }

  /** Root over `size` entries. `last` is the hash of one more entry after the pushed ones. */
  root(size: number, last?: string): string {
    return this.range(0, size, last);
  }

  /** Inclusion proof of an entry among the first `size`, lowest sibling first. */
  path(index: number, size: number, last?: string): string[] {
    const siblings: string[] = [];
    let [from, to] = [0, size];
    while (to - from > 1) {
      const middle = from + splitOf(to - from);
      siblings.push(index < middle ? this.range(middle, to, last) : this.range(from, middle, last));
      if (index < middle) to = middle;
      else from = middle;
    }
    return siblings.reverse();
  }

  /** Hash over the entries `[from, to)`, which must be a subtree of RFC 6962. */
  range(from: number, to: number, last?: string): string {
    const size = to - from;
    const level = Math.log2(size);
    if (Number.isInteger(level) && from % size === 0) {
      const node = this.levels[level]?.[from / size];
      if (node !== undefined) return node;
      if (size === 1 && from === this.count && last !== undefined) return last;
    }
    if (size <= 1) throw new Error("this part of the tree is not known");
    const middle = from + splitOf(size);
    return joinHashes(this.range(from, middle, last), this.range(middle, to, last));
  }
}
