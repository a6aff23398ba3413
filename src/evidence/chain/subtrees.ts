/**
 * Builds the RFC 6962 tree from parts. A part is the root of a complete subtree that starts at a multiple of its size,
 * so separately computed parts fit together.
 */
import { EMPTY_ROOT, joinHashes } from "../../ledger/merkle-tree.ts";

export interface SubtreeNode {
  /** Number of leaves, a power of two. */
  size: number;
  hash: string;
  /** Hash of the ledger chain at the last leaf. */
  end: string;
}

/** Collects leaves into the largest possible parts, ending a part at each cut. */
export class NodeBuilder {
  private readonly cuts: readonly number[];
  private readonly largest: number;
  private readonly open: SubtreeNode[] = [];
  private readonly nodes: SubtreeNode[] = [];
  private next: number;
  private cut = 0;

  /** `cuts`: ascending tree sizes at which a part must end. No part exceeds `largest`. */
  constructor(first: number, cuts: readonly number[] = [], largest = Number.POSITIVE_INFINITY) {
    this.next = first;
    this.cuts = cuts;
    this.largest = largest;
    while (this.cut < cuts.length && cuts[this.cut]! <= first) this.cut++;
  }

  add(hash: string, end: string): void {
    this.next++;
    let node: SubtreeNode = { size: 1, hash, end };
    for (let left = this.open.at(-1); left !== undefined; left = this.open.at(-1)) {
      if (left.size !== node.size || this.next % (2 * node.size) !== 0 || node.size >= this.largest) break;
      this.open.pop();
      node = { size: 2 * node.size, hash: joinHashes(left.hash, node.hash), end };
    }
    this.open.push(node);
    const isCut = this.cuts[this.cut] === this.next;
    if (isCut) this.cut++;
    if (isCut || node.size >= this.largest) this.flush();
  }

  /** All parts, including the last ones. */
  finish(): SubtreeNode[] {
    this.flush();
    return this.nodes;
  }

  private flush(): void {
    this.nodes.push(...this.open);
    this.open.length = 0;
  }
}

/** A tree that grows by parts and stores only the roots of its complete subtrees. */
export class TreeFrontier {
  private readonly peaks: { size: number; hash: string }[] = [];
  size = 0;

  push(size: number, hash: string): void {
    if (this.size % size !== 0) throw new Error("a part of the tree is in the wrong position");
    this.size += size;
    let peak = { size, hash };
    for (
      let left = this.peaks.at(-1);
      left !== undefined && left.size === peak.size;
      left = this.peaks.at(-1)
    ) {
      this.peaks.pop();
      peak = { size: 2 * peak.size, hash: joinHashes(left.hash, peak.hash) };
    }
    this.peaks.push(peak);
  }

  root(): string {
    const { peaks } = this;
    return peaks.length === 0
      ? EMPTY_ROOT
      : peaks.map(({ hash }) => hash).reduceRight((right, left) => joinHashes(left, right));
  }
}

/** Largest power of two below `n`, where RFC 6962 splits `n` leaves. */
export function splitOf(n: number): number {
  let k = 1;
  while (2 * k < n) k *= 2;
  return k;
}
