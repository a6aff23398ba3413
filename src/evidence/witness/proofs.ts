/**
 * RFC 6962 proofs from a store's ledger, for any size it has had. Complete blocks are in memory; the few blocks that a
 * proof cuts are read and hashed again.
 */
import type { StateStore } from "../../govern/port/store.ts";
import { EMPTY_ROOT, joinHashes } from "../../ledger/merkle-tree.ts";
import type { HashLevels } from "../chain/levels.ts";
import { splitOf } from "../chain/subtrees.ts";
import { BLOCK_RECORDS, type LedgerSnapshot, type LedgerTree, treeOf } from "../ledger-tree.ts";

export class LedgerProofs {
  readonly snapshot: LedgerSnapshot;
  private readonly tree: LedgerTree;
  private readonly read = new Map<number, Promise<HashLevels>>();

  constructor(tree: LedgerTree, snapshot: LedgerSnapshot) {
    this.tree = tree;
    this.snapshot = snapshot;
  }

  /** Proofs for the current ledger. Throws `corrupt` if verification fails. */
  static async of(store: StateStore): Promise<LedgerProofs> {
    const tree = treeOf(store);
    return new LedgerProofs(tree, await tree.snapshot());
  }

  async root(size: number): Promise<string> {
    return size === 0 ? EMPTY_ROOT : this.hash(0, size);
  }

  leaf(seq: number): Promise<string> {
    return this.hash(seq, seq + 1);
  }

  /** Inclusion proof of a record in the tree of `size` leaves, lowest sibling first. */
  async inclusion(seq: number, size: number): Promise<string[]> {
    const siblings: string[] = [];
    let [from, to] = [0, size];
    while (to - from > 1) {
      const middle = from + splitOf(to - from);
      siblings.push(seq < middle ? await this.hash(middle, to) : await this.hash(from, middle));
      if (seq < middle) to = middle;
      else from = middle;
    }
    return siblings.reverse();
  }

  /** Proof that the tree of `from` leaves is a prefix of the tree of `to`. */
  async consistency(from: number, to: number): Promise<string[]> {
    return from === 0 ? [] : this.subproof(from, 0, to, true);
  }

  private async subproof(count: number, from: number, to: number, isKnown: boolean): Promise<string[]> {
    if (count === to - from) return isKnown ? [] : [await this.hash(from, to)];
    const half = splitOf(to - from);
    const middle = from + half;
    return count <= half
      ? [...(await this.subproof(count, from, middle, isKnown)), await this.hash(middle, to)]
      : [...(await this.subproof(count - half, middle, to, false)), await this.hash(from, middle)];
  }

  private async hash(from: number, to: number): Promise<string> {
    const block = Math.floor(from / BLOCK_RECORDS);
    const start = block * BLOCK_RECORDS;
    if (to - from < BLOCK_RECORDS && to <= start + BLOCK_RECORDS)
      return (await this.leavesOf(block)).range(from - start, to - start);
    const size = to - from;
    if (Number.isInteger(Math.log2(size)))
      return this.tree.blockRange(from / BLOCK_RECORDS, to / BLOCK_RECORDS);
    const middle = from + splitOf(size);
    return joinHashes(await this.hash(from, middle), await this.hash(middle, to));
  }

  private leavesOf(block: number): Promise<HashLevels> {
    const known = this.read.get(block);
    if (known !== undefined) return known;
    const leaves = this.tree.readBlock(this.snapshot, block).then((read) => read.leaves);
    this.read.set(block, leaves);
    return leaves;
  }
}
