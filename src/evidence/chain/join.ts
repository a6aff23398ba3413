/**
 * Joins separately verified chunks into one ledger, in order. Keeps the first problem and ignores everything after it.
 */
import { GENESIS_HASH } from "../../ledger/record.ts";
import { BROKEN_LINK, type ChunkSummary, wrongPositionText, wrongRunNumberText } from "./chunk.ts";
import { type RunSeed, RunTable } from "./run-numbering.ts";
import { type SubtreeNode, TreeFrontier } from "./subtrees.ts";

export interface FirstBad {
  seq: number;
  problem: string;
}

/** The ledger's head and root at one size. */
export interface LedgerMoment {
  head: string;
  root: string;
}

export class LedgerJoin {
  private readonly runs: RunTable | null;
  private readonly frontier: TreeFrontier | null;
  private readonly onNode: ((node: SubtreeNode) => void) | undefined;
  private readonly wanted: ReadonlySet<number>;
  readonly moments = new Map<number, LedgerMoment>();
  records: number;
  head: string;
  bad: FirstBad | null = null;
  /** Whether the bad line could not be parsed. */
  isUnreadable = false;

  constructor(
    options: {
      seed: RunSeed | null;
      tree: boolean;
      sizes?: Iterable<number>;
      onNode?: (node: SubtreeNode) => void;
    },
    start: { records: number; head: string } = { records: 0, head: GENESIS_HASH },
  ) {
    this.runs = options.seed === null ? null : new RunTable(options.seed);
    this.frontier = options.tree ? new TreeFrontier() : null;
    this.onNode = options.onNode;
    this.wanted = new Set(options.sizes);
    this.records = start.records;
    this.head = start.head;
    if (this.wanted.has(0) && this.frontier !== null) this.note();
  }

  /** Returns false after the first problem. */
  add(stretch: ChunkSummary): boolean {
    if (this.bad !== null) return false;
    const { first, bad } = stretch;
    if (first === null) return bad === null || this.fail(this.records, bad.problem, bad.unreadable);
    const start = this.records;
    if (first.seq !== start)
      return this.fail(start, bad?.index === 0 ? bad.problem : wrongPositionText(first.seq));
    if (first.prev !== this.head) {
      if (bad?.index === 0) return this.fail(start, bad.problem);
      return this.fail(
        start,
        start === 0 ? "its prev is not 64 zeros, though it is the first record" : BROKEN_LINK,
      );
    }
    if (stretch.runs !== null && this.runs !== null) {
      const wrong = this.runs.join(stretch.runs);
      if (wrong !== undefined && wrong.seq < start + stretch.records) {
        return this.fail(wrong.seq, wrongRunNumberText(wrong.run_seq, wrong.due));
      }
    }
    if (stretch.records > 0) {
      for (const node of stretch.nodes ?? []) this.pushNode(node);
      this.records = start + stretch.records;
      this.head = stretch.hash;
    }
    return bad === null || this.fail(start + bad.index, bad.problem, bad.unreadable);
  }

  root(): string | null {
    return this.frontier?.root() ?? null;
  }

  fail(seq: number, problem: string, isUnreadable = false): false {
    this.bad = { seq, problem };
    this.isUnreadable = isUnreadable;
    return false;
  }

  private pushNode(node: SubtreeNode): void {
    this.onNode?.(node);
    if (this.frontier === null) return;
    this.frontier.push(node.size, node.hash);
    this.records = this.frontier.size;
    this.head = node.end;
    if (this.wanted.has(this.records)) this.note();
  }

  private note(): void {
    this.moments.set(this.records, { head: this.head, root: this.frontier!.root() });
  }
}
