/**
 * The tree of a store's ledger, kept in memory as the roots of its full blocks so that a bundle or an anchor
 * need not read the whole ledger again. A block enters only after each of its records was read from the
 * store, hashed and found in its place in the chain; the open end, and every block that something is taken
 * from, is read and hashed anew each time.
 */
import { SvcError } from "../kernel/errors.ts";
import { GENESIS } from "../ledger/record.ts";
import { EMPTY_ROOT } from "../ledger/tree.ts";
import type { Store } from "../port/store.ts";
import { asLines, StretchChecker } from "./chain/chunk.ts";
import { LedgerJoin } from "./chain/join.ts";
import { HashLevels } from "./chain/levels.ts";
import { checkAndJoin, openCheckers } from "./chain/pool.ts";
import { Frontier, type Node } from "./chain/subtrees.ts";
import { storeTasks } from "./verify-ledger.ts";

export const BLOCK = 1_024;
/** From here on another thread does the hashing. */
const THREAD_RECORDS = 20_000;

/** Where the ledger stood at one moment. */
export interface Snapshot {
  records: number;
  head: string;
  tree: { size: number; root: string };
  /** The hash over the records behind the last full block; undefined where there are none. */
  rest: string | undefined;
}

export class LedgerTree {
  private readonly store: Store;
  private readonly blocks = new HashLevels();
  /** The chain's hash behind each full block. */
  private readonly ends: string[] = [];
  private work: Promise<unknown> = Promise.resolve();

  constructor(store: Store) {
    this.store = store;
  }

  /** Takes in what the ledger gained; throws `corrupt` where it does not verify. One at a time. */
  snapshot(): Promise<Snapshot> {
    const next = this.work.then(() => this.catchUp());
    this.work = next.catch(() => undefined);
    return next;
  }

  /**
   * The records of one block as they are in the store now, with the leaf hash of each. Throws where they
   * are no longer what the snapshot was made of.
   */
  async readBlock(snapshot: Snapshot, block: number): Promise<{ lines: string[]; leaves: HashLevels }> {
    const from = block * BLOCK;
    const to = Math.min(from + BLOCK, snapshot.records);
    const lines = await this.store.records({ from, to: to - 1, limit: BLOCK });
    const checker = new StretchChecker({ seed: null, tree: { cuts: [], largest: 1 }, in_bundle: false });
    const { first, bad, records, nodes } = checker.check(asLines(`${lines.join("\n")}\n`));
    const leaves = new HashLevels();
    for (const node of nodes ?? []) leaves.push(node.hash);
    const isSame =
      bad === null &&
      records === to - from &&
      first?.seq === from &&
      first.prev === (block === 0 ? GENESIS : this.ends[block - 1]) &&
      leaves.root(records) === (to - from === BLOCK ? this.blocks.at(block) : snapshot.rest);
    if (!isSame)
      throw corrupt(
        bad === null ? from : from + bad.index,
        bad?.problem ?? "it changed after it was checked",
      );
    return { lines, leaves };
  }

  /** The inclusion proof of a record, from the leaves of its block. */
  proof(snapshot: Snapshot, seq: number, leaves: HashLevels): string[] {
    const block = Math.floor(seq / BLOCK);
    const blocks = Math.ceil(snapshot.records / BLOCK);
    const inside = leaves.path(seq - block * BLOCK, leaves.count);
    return [...inside, ...this.blockPath(block, blocks, snapshot.rest)];
  }

  /** The hash over whole blocks `[from, to)`, a subtree as RFC 6962 cuts them. */
  blockRange(from: number, to: number): string {
    return this.blocks.range(from, to);
  }

  private blockPath(block: number, blocks: number, rest: string | undefined): string[] {
    // Blocks that were completed after the snapshot must not stand for its open end.
    if (rest === undefined || this.blocks.count < blocks) return this.blocks.path(block, blocks, rest);
    const known = new HashLevels();
    for (let i = 0; i < blocks - 1; i++) known.push(this.blocks.at(i)!);
    return known.path(block, blocks, rest);
  }

  private async catchUp(): Promise<Snapshot> {
    const { records, hash } = await this.store.head();
    const full = this.ends.length;
    const start = { records: full * BLOCK, head: this.ends[full - 1] ?? GENESIS };
    if (records < start.records) {
      throw new SvcError(
        "corrupt",
        `the ledger has ${records} records but had ${start.records}: it has been truncated`,
      );
    }
    let open = new Frontier();
    const onNode = (node: Node) => {
      open.push(node.size, node.hash);
      if (open.size < BLOCK) return;
      this.blocks.push(open.root());
      this.ends.push(node.end);
      open = new Frontier();
    };
    const join = new LedgerJoin({ seed: null, tree: false, onNode }, start);
    const threads = records - start.records >= THREAD_RECORDS ? 1 : 0;
    const options = { seed: null, tree: { cuts: [], largest: BLOCK }, in_bundle: false };
    const checkers = openCheckers({ path: null, options }, threads);
    try {
      await checkAndJoin(storeTasks(this.store, start.records, records), checkers, join);
    } finally {
      await checkers.close();
    }
    if (join.bad !== null) throw corrupt(join.bad.seq, join.bad.problem);
    if (join.records !== records) throw corrupt(join.records, "it is not there, though the store counts it");
    if (join.head !== hash)
      throw corrupt(Math.max(0, records - 1), "its hash is not the head that the store keeps");
    const rest = open.size === 0 ? undefined : open.root();
    const root = records === 0 ? EMPTY_ROOT : this.blocks.root(Math.ceil(records / BLOCK), rest);
    return { records, head: hash, tree: { size: records, root }, rest };
  }
}

const TREES = new WeakMap<Store, LedgerTree>();

/** The one tree of a store in this process. */
export function treeOf(store: Store): LedgerTree {
  const known = TREES.get(store);
  if (known !== undefined) return known;
  const tree = new LedgerTree(store);
  TREES.set(store, tree);
  return tree;
}

/** What does not verify is never signed. */
export function corrupt(seq: number, problem: string): SvcError {
  return new SvcError(
    "corrupt",
    `the ledger does not verify at record ${seq}: ${problem}; nothing was signed`,
  );
}
