/** The difference of two texts, line by line, with a little of what surrounds it. */
export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/** Beyond this, two middles are told as wholly different: a person does not read such a diff line by line. */
const MOST_CELLS = 4_000_000;
const AROUND = 3;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.replace(/\n$/, "").split("\n");
  const b = after.replace(/\n$/, "").split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return folded([
    ...a.slice(0, start).map(same),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...a.slice(a.length - end).map(same),
  ]);
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ kind: "removed", text });
  const added = (text: string): DiffLine => ({ kind: "added", text });
  if (a.length * b.length > MOST_CELLS) return [...a.map(removed), ...b.map(added)];
  const width = b.length + 1;
  // Cell (i, j): how many lines the rests of a from i and of b from j have in common, in order.
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!);
    }
  }
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      i++;
      j++;
    } else if (common[(i + 1) * width + j]! >= common[i * width + j + 1]!) lines.push(removed(a[i++]!));
    else lines.push(added(b[j++]!));
  }
  return [...lines, ...a.slice(i).map(removed), ...b.slice(j).map(added)];
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
