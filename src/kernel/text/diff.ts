/**
 * Line diff of two texts with context. The cost is bounded: one pass matches the lines that occur once on each side,
 * and a fixed number of steps compares the lines between them. If the steps run out or the texts are too long, the diff
 * shows both sides in full, one after the other.
 */

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/**
 * Steps left to compare lines between anchors. Each pair of texts gets the same budget, so that a diff depends only on
 * its texts.
 */
export interface DiffBudget {
  steps: number;
}

const MAX_DIFF_STEPS = 200_000;
/** The largest number of lines, of both texts together, that are compared. */
const MAX_COMPARED_LINES = 20_000;
const AROUND = 3;

export const newDiffBudget = (): DiffBudget => ({ steps: MAX_DIFF_STEPS });

export function diffLines(before: string, after: string, budget: DiffBudget = newDiffBudget()): DiffLine[] {
  const a = before.replace(/\n$/, "").split("\n");
  const b = after.replace(/\n$/, "").split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  if (start === a.length && start === b.length) return [];
  let end = 0;
  const room = Math.min(a.length, b.length) - start;
  while (end < room && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const same = (from: number, to: number) =>
    a.slice(from, to).map((text): DiffLine => ({ kind: "same", text }));
  const around = same(Math.max(0, start - AROUND), start);
  const behind = same(a.length - end, a.length - end + AROUND);
  const writer = new DiffWriter(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const { a: removed, b: added } = writer;
  if (removed.length + added.length > MAX_COMPARED_LINES) return around.concat(writer.end(), behind);
  for (const [at, to] of matchesOf(numbered(removed, added), budget)) writer.same(at, to);
  return folded(around.concat(writer.end(), behind));
}

/** Writes the removed and added lines before each pair of equal lines. */
class DiffWriter {
  readonly a: readonly string[];
  readonly b: readonly string[];
  private readonly out: DiffLine[] = [];
  private fromA = 0;
  private fromB = 0;

  constructor(a: readonly string[], b: readonly string[]) {
    this.a = a;
    this.b = b;
  }

  same(at: number, to: number): void {
    this.differing(at, to);
    this.out.push({ kind: "same", text: this.a[at]! });
    this.fromA = at + 1;
    this.fromB = to + 1;
  }

  end(): DiffLine[] {
    this.differing(this.a.length, this.b.length);
    return this.out;
  }

  private differing(at: number, to: number): void {
    for (let i = this.fromA; i < at; i++) this.out.push({ kind: "removed", text: this.a[i]! });
    for (let i = this.fromB; i < to; i++) this.out.push({ kind: "added", text: this.b[i]! });
  }
}

/** The lines of both sides as numbers. Equal lines have equal numbers. */
interface Numbered {
  a: Int32Array;
  b: Int32Array;
  kinds: number;
}

function numbered(a: readonly string[], b: readonly string[]): Numbered {
  const known = new Map<string, number>();
  const numberOf = (line: string): number => {
    let number = known.get(line);
    if (number === undefined) {
      number = known.size;
      known.set(line, number);
    }
    return number;
  };
  return { a: Int32Array.from(a, numberOf), b: Int32Array.from(b, numberOf), kinds: known.size };
}

type Match = readonly [a: number, b: number];
/** A range of lines on each side, ends excluded. */
type Part = readonly [a: number, aEnd: number, b: number, bEnd: number];

/** Finds pairs of equal lines, in order on both sides. */
function matchesOf(lines: Numbered, budget: DiffBudget): Match[] {
  const out: Match[] = [];
  const last: Match = [lines.a.length, lines.b.length];
  let [atA, atB] = [0, 0];
  for (const [toA, toB] of [...anchorsOf(lines), last]) {
    between(lines, [atA, toA, atB, toB], budget, out);
    if (toA < last[0]) out.push([toA, toB]);
    [atA, atB] = [toA + 1, toB + 1];
  }
  return out;
}

/** Finds the lines that occur once on each side, as many as are in the same order on both. */
function anchorsOf({ a, b, kinds }: Numbered): Match[] {
  const inA = placesOf(a, kinds);
  const inB = placesOf(b, kinds);
  const pairs: Match[] = [];
  for (const [i, kind] of a.entries()) if (inA[kind] === i && inB[kind]! >= 0) pairs.push([i, inB[kind]!]);
  return longestRising(pairs);
}

const NOWHERE = -1;
const SEVERAL = -2;

/** Maps each kind of line to its index, if it occurs exactly once. */
function placesOf(lines: Int32Array, kinds: number): Int32Array {
  const places = new Int32Array(kinds).fill(NOWHERE);
  for (const [i, kind] of lines.entries()) places[kind] = places[kind] === NOWHERE ? i : SEVERAL;
  return places;
}

/** Finds the longest subsequence that also rises on the second side. The pairs rise on the first side. */
function longestRising(pairs: readonly Match[]): Match[] {
  const ends: number[] = [];
  const before = new Int32Array(pairs.length);
  for (const [i, [, to]] of pairs.entries()) {
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]!]![1] < to) low = middle + 1;
      else high = middle;
    }
    before[i] = low === 0 ? NOWHERE : ends[low - 1]!;
    ends[low] = i;
  }
  const out: Match[] = [];
  for (let i = ends.at(-1) ?? NOWHERE; i !== NOWHERE; i = before[i]!) out.push(pairs[i]!);
  return out.reverse();
}

/** Matches the lines between two anchors: first equal ends, then the shortest edit within the budget. */
function between({ a, b }: Numbered, part: Part, budget: DiffBudget, out: Match[]): void {
  let [fromA, toA, fromB, toB] = part;
  while (fromA < toA && fromB < toB && a[fromA] === b[fromB]) out.push([fromA++, fromB++]);
  let end = 0;
  while (toA > fromA && toB > fromB && a[toA - 1] === b[toB - 1]) {
    toA--;
    toB--;
    end++;
  }
  if (fromA < toA && fromB < toB) shortestEdit({ a, b }, [fromA, toA, fromB, toB], budget, out);
  for (let i = 0; i < end; i++) out.push([toA + i, toB + i]);
}

/**
 * Myers' greedy algorithm: after `d` rounds, `reached` holds how far `d` edits get on each diagonal. Finds nothing if
 * the steps run out before the end.
 */
function shortestEdit(
  { a, b }: Pick<Numbered, "a" | "b">,
  [fromA, toA, fromB, toB]: Part,
  budget: DiffBudget,
  out: Match[],
): void {
  const [n, m] = [toA - fromA, toB - fromB];
  // The rounds need at least one step per diagonal.
  if (Math.abs(n - m) ** 2 / 2 > budget.steps) return;
  const rounds: Int32Array[] = [];
  let reached = new Int32Array(3);
  for (let d = 0; d <= n + m; d++) {
    const next = new Int32Array(2 * d + 3);
    for (let k = -d; k <= d; k += 2) {
      if (--budget.steps < 0) return;
      let x = d === 0 ? 0 : furthest(reached, d, k);
      for (let y = x - k; x < n && y < m && a[fromA + x] === b[fromB + y]; y++) {
        budget.steps--;
        x++;
      }
      next[k + d + 1] = x;
      if (x >= n && x - k >= m) {
        rounds.push(next);
        out.push(...retraced(rounds, n, m).map(([x, y]): Match => [fromA + x, fromB + y]));
        return;
      }
    }
    rounds.push(next);
    reached = next;
  }
}

/**
 * Checks whether the path reaches diagonal `k` from the one above, by adding a line. Otherwise it removes a line.
 * `reached` belongs to the previous round; its diagonals start at `1 - d`.
 */
function isByAdding(reached: Int32Array, d: number, k: number): boolean {
  return k === -d || (k !== d && reached[k - 1 + d]! < reached[k + 1 + d]!);
}

/** Returns how far one more edit gets on diagonal `k`. */
function furthest(reached: Int32Array, d: number, k: number): number {
  return isByAdding(reached, d, k) ? reached[k + 1 + d]! : reached[k - 1 + d]! + 1;
}

/** Collects the equal lines along the shortest path, from the end back. */
function retraced(rounds: readonly Int32Array[], n: number, m: number): Match[] {
  const out: Match[] = [];
  let [x, y] = [n, m];
  for (let d = rounds.length - 1; d > 0; d--) {
    const reached = rounds[d - 1]!;
    const start = furthest(reached, d, x - y);
    const adding = isByAdding(reached, d, x - y);
    while (x > start) out.push([--x, --y]);
    if (adding) y--;
    else x--;
  }
  while (x > 0) out.push([--x, --y]);
  return out.reverse();
}

/** Replaces equal lines far from every change with a gap. */
function folded(lines: readonly DiffLine[]): DiffLine[] {
  const near = new Uint8Array(lines.length);
  for (const [i, { kind }] of lines.entries())
    if (kind !== "same") near.fill(1, Math.max(0, i - AROUND), Math.min(lines.length, i + AROUND + 1));
  const shown: DiffLine[] = [];
  for (const [i, line] of lines.entries()) {
    if (near[i] === 1) shown.push(line);
    else if (shown.length > 0 && shown.at(-1)!.kind !== "gap") shown.push({ kind: "gap", text: "" });
  }
  if (shown.at(-1)?.kind === "gap") shown.pop();
  return shown;
}
