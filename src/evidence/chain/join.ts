/**
 * Joins stretches that were checked apart into one ledger, in order. The first thing wrong with the whole is
 * kept; nothing behind it counts.
 */
import { GENESIS } from "../../ledger/record.ts";
import { BROKEN_LINK, type StretchFacts, wrongNumber, wrongPlace } from "./chunk.ts";
import { type RunSeed, RunTable } from "./runs.ts";
import { Frontier, type Node } from "./subtrees.ts";

export interface FirstBad {
  seq: number;
  problem: string;
}

/** The ledger at one of its sizes. */
export interface LedgerMoment {
  head: string;
  root: string;
}

export class LedgerJoin {
  private readonly runs: RunTable | null;
  private readonly frontier: Frontier | null;
  private readonly onNode: ((node: Node) => void) | undefined;
  private readonly wanted: ReadonlySet<number>;
  readonly moments = new Map<number, LedgerMoment>();
  records: number;
  head: string;
  bad: FirstBad | null = null;
  /** The line that is bad could not even be read. */
  isUnreadable = false;

  constructor(
    options: { seed: RunSeed | null; tree: boolean; sizes?: Iterable<number>; onNode?: (node: Node) => void },
    start: { records: number; head: string } = { records: 0, head: GENESIS },
  ) {
    this.runs = options.seed === null ? null : new RunTable(options.seed);
    this.frontier = options.tree ? new Frontier() : null;
    this.onNode = options.onNode;
    this.wanted = new Set(options.sizes);
    this.records = start.records;
    this.head = start.head;
    if (this.wanted.has(0) && this.frontier !== null) this.note();
  }

  /** False once something is wrong. */
  add(stretch: StretchFacts): boolean {
    if (this.bad !== null) return false;
    const { first, bad } = stretch;
    if (first === null) return bad === null || this.fail(this.records, bad.problem, bad.unreadable);
    const start = this.records;
    if (first.seq !== start) return this.fail(start, bad?.index === 0 ? bad.problem : wrongPlace(first.seq));
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
        return this.fail(wrong.seq, wrongNumber(wrong.run_seq, wrong.due));
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

  private pushNode(node: Node): void {
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
