/**
 * The Merkle tree of a store's ledger, in memory as the roots of its complete blocks. With it, a bundle or an anchor
 * need not read the entire ledger again. A block is added only after all its records were read from the store, hashed
 * and found in chain order. The incomplete last block, and every block used for a proof, is read and hashed again each
 * time.
 */
import type { StateStore } from "../govern/port/store.ts";
import { SvcError } from "../kernel/errors.ts";
import { EMPTY_ROOT } from "../ledger/merkle-tree.ts";
import { GENESIS_HASH } from "../ledger/record.ts";
import { ChunkVerifier, toLineChunk } from "./chain/chunk.ts";
import { LedgerJoin } from "./chain/join.ts";
import { HashLevels } from "./chain/levels.ts";
import { checkAndJoin, openCheckers } from "./chain/pool.ts";
import { type SubtreeNode, TreeFrontier } from "./chain/subtrees.ts";
import { storeTasks } from "./verify-ledger.ts";

export const BLOCK_RECORDS = 1_024;
/** From this number of records on, another thread does the hashing. */
const THREAD_RECORDS = 20_000;

/** The ledger at one moment. */
export interface LedgerSnapshot {
  records: number;
  head: string;
  tree: { size: number; root: string };
  /** Hash over the records after the last complete block; undefined if there are none. */
  rest: string | undefined;
}

export class LedgerTree {
  private readonly store: StateStore;
  private readonly blocks = new HashLevels();
  /** Hash of the ledger chain at the end of each complete block. */
  private readonly ends: string[] = [];
  private work: Promise<unknown> = Promise.resolve();

  constructor(store: StateStore) {
    this.store = store;
  }

  /**
   * Adds the ledger's new records and returns its state. Throws `corrupt` if verification fails. Calls run one at a
   * time.
   */
  snapshot(): Promise<LedgerSnapshot> {
    const next = this.work.then(() => this.catchUp());
    this.work = next.catch(() => undefined);
    return next;
  }

  /**
   * Records of one block as currently stored, with the leaf hash of each. Throws if they differ from those in the
   * snapshot.
   */
  async readBlock(snapshot: LedgerSnapshot, block: number): Promise<{ lines: string[]; leaves: HashLevels }> {
    const from = block * BLOCK_RECORDS;
    const to = Math.min(from + BLOCK_RECORDS, snapshot.records);
    const lines = await this.store.records({ from, to: to - 1, limit: BLOCK_RECORDS });
    const checker = new ChunkVerifier({ seed: null, tree: { cuts: [], largest: 1 }, in_bundle: false });
    const { first, bad, records, nodes } = checker.check(toLineChunk(`${lines.join("\n")}\n`));
    const leaves = new HashLevels();
    for (const node of nodes ?? []) leaves.push(node.hash);
    const isSame =
      bad === null &&
      records === to - from &&
      first?.seq === from &&
      first.prev === (block === 0 ? GENESIS_HASH : this.ends[block - 1]) &&
      leaves.root(records) === (to - from === BLOCK_RECORDS ? this.blocks.at(block) : snapshot.rest);
    if (!isSame)
      throw corruptLedgerError(
        bad === null ? from : from + bad.index,
        bad?.problem ?? "it changed after it was checked",
      );
    return { lines, leaves };
  }

  /** Inclusion proof of a record, from the leaves of its block. */
  proof(snapshot: LedgerSnapshot, seq: number, leaves: HashLevels): string[] {
    const block = Math.floor(seq / BLOCK_RECORDS);
    const blocks = Math.ceil(snapshot.records / BLOCK_RECORDS);
    const inside = leaves.path(seq - block * BLOCK_RECORDS, leaves.count);
    return [...inside, ...this.blockPath(block, blocks, snapshot.rest)];
  }

  /** Hash over complete blocks `[from, to)`, which must be a subtree of RFC 6962. */
  blockRange(from: number, to: number): string {
    return this.blocks.range(from, to);
  }

  private blockPath(block: number, blocks: number, rest: string | undefined): string[] {
    // A block completed after the snapshot must not replace the snapshot's incomplete last block.
    if (rest === undefined || this.blocks.count < blocks) return this.blocks.path(block, blocks, rest);
    const known = new HashLevels();
    for (let i = 0; i < blocks - 1; i++) known.push(this.blocks.at(i)!);
    return known.path(block, blocks, rest);
  }

  private async catchUp(): Promise<LedgerSnapshot> {
    const { records, hash } = await this.store.head();
    const full = this.ends.length;
    const start = { records: full * BLOCK_RECORDS, head: this.ends[full - 1] ?? GENESIS_HASH };
    if (records < start.records) {
      throw new SvcError(
        "corrupt",
        `the ledger has ${records} records but had ${start.records}: it has been truncated`,
      );
    }
    let open = new TreeFrontier();
    const onNode = (node: SubtreeNode) => {
      open.push(node.size, node.hash);
      if (open.size < BLOCK_RECORDS) return;
      this.blocks.push(open.root());
      this.ends.push(node.end);
      open = new TreeFrontier();
    };
    const join = new LedgerJoin({ seed: null, tree: false, onNode }, start);
    const threads = records - start.records >= THREAD_RECORDS ? 1 : 0;
    const options = { seed: null, tree: { cuts: [], largest: BLOCK_RECORDS }, in_bundle: false };
    const checkers = openCheckers({ path: null, options }, threads);
    try {
      await checkAndJoin(storeTasks(this.store, start.records, records), checkers, join);
    } finally {
      await checkers.close();
    }
    if (join.bad !== null) throw corruptLedgerError(join.bad.seq, join.bad.problem);
    if (join.records !== records)
      throw corruptLedgerError(join.records, "it is not there, though the store counts it");
    if (join.head !== hash)
      throw corruptLedgerError(Math.max(0, records - 1), "its hash is not the head that the store keeps");
    const rest = open.size === 0 ? undefined : open.root();
    const root = records === 0 ? EMPTY_ROOT : this.blocks.root(Math.ceil(records / BLOCK_RECORDS), rest);
    return { records, head: hash, tree: { size: records, root }, rest };
  }
}

const TREES = new WeakMap<StateStore, LedgerTree>();

/** The tree of a store, one per process. */
export function treeOf(store: StateStore): LedgerTree {
  const known = TREES.get(store);
  if (known !== undefined) return known;
  const tree = new LedgerTree(store);
  TREES.set(store, tree);
  return tree;
}

/** Error for a ledger that fails verification: it is never signed. */
export function corruptLedgerError(seq: number, problem: string): SvcError {
  return new SvcError(
    "corrupt",
    `the ledger does not verify at record ${seq}: ${problem}; nothing was signed`,
  );
}
