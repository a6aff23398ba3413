/**
 * The difference of two texts, line by line, with a little of what surrounds it. Its cost is bounded by construction:
 * lines that occur once on either side are matched first, in one pass, and what lies between them is compared by a
 * fixed number of steps at most. Where those are used up, or the texts are too long, the two sides are shown one after
 * the other, in full.
 */

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/** Steps left for comparing what has no line to hold on to. The same for each pair of texts, so that a diff depends on them alone. */
export interface DiffBudget {
  steps: number;
}

const MOST_STEPS = 200_000;
/** More lines than these, of both texts, are not compared. */
const MOST_COMPARED = 20_000;
const AROUND = 3;

export const newDiffBudget = (): DiffBudget => ({ steps: MOST_STEPS });

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
  if (removed.length + added.length > MOST_COMPARED) return around.concat(writer.end(), behind);
  for (const [at, to] of matchesOf(numbered(removed, added), budget)) writer.same(at, to);
  return folded(around.concat(writer.end(), behind));
}

/** Writes what is on one side alone before each pair of lines that both have. */
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

/** The lines of both sides as numbers: equal lines have equal ones. */
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
/** A part of either side, ends excluded. */
type Part = readonly [a: number, aEnd: number, b: number, bEnd: number];

/** Pairs of equal lines, both in order. */
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

/** Lines that occur once on either side, as many of them as are in the same order on both. */
function anchorsOf({ a, b, kinds }: Numbered): Match[] {
  const inA = placesOf(a, kinds);
  const inB = placesOf(b, kinds);
  const pairs: Match[] = [];
  for (const [i, kind] of a.entries()) if (inA[kind] === i && inB[kind]! >= 0) pairs.push([i, inB[kind]!]);
  return longestRising(pairs);
}

const NOWHERE = -1;
const SEVERAL = -2;

/** Where each kind of line is, where it is there once. */
function placesOf(lines: Int32Array, kinds: number): Int32Array {
  const places = new Int32Array(kinds).fill(NOWHERE);
  for (const [i, kind] of lines.entries()) places[kind] = places[kind] === NOWHERE ? i : SEVERAL;
  return places;
}

/** Of pairs that rise on one side, the most that rise on the other, too. */
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

/** What has no line to hold on to: equal ends first, then the shortest edit, as far as the steps reach. */
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
 * The greedy algorithm of Myers: after `d` rounds it knows how far `d` edits reach on each diagonal. Nothing is found
 * where the steps run out before the end.
 */
function shortestEdit(
  { a, b }: Pick<Numbered, "a" | "b">,
  [fromA, toA, fromB, toB]: Part,
  budget: DiffBudget,
  out: Match[],
): void {
  const [n, m] = [toA - fromA, toB - fromB];
  // The rounds need one step a diagonal at least.
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
 * Whether diagonal `k` is reached from the one above it, by adding a line; else by removing one. `reached` is of the
 * round before, its diagonals from `1 - d` on.
 */
function isByAdding(reached: Int32Array, d: number, k: number): boolean {
  return k === -d || (k !== d && reached[k - 1 + d]! < reached[k + 1 + d]!);
}

/** How far one more edit reaches on diagonal `k`. */
function furthest(reached: Int32Array, d: number, k: number): number {
  return isByAdding(reached, d, k) ? reached[k + 1 + d]! : reached[k - 1 + d]! + 1;
}

/** The equal lines on the way that was found, from the end back. */
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

/** Leaves out what is far from every change. */
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
