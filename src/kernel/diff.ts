/** The difference of two texts, line by line, with a little of what surrounds it. */
import { diffArrays } from "diff";

export interface DiffLine {
  kind: "same" | "added" | "removed" | "gap";
  text: string;
}

/** Beyond this, two middles are told as wholly different: a person does not read such a diff line by line. */
const MOST_EDITS = 2_000;
const AROUND = 3;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.replace(/\n$/, "").split("\n");
  const b = after.replace(/\n$/, "").split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const as = (kind: DiffLine["kind"], lines: readonly string[]) => lines.map((text) => ({ kind, text }));
  const [removed, added] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const changes = diffArrays(removed, added, { maxEditLength: MOST_EDITS });
  return folded([
    ...as("same", a.slice(0, start)),
    ...(changes?.flatMap((one) => as(one.added ? "added" : one.removed ? "removed" : "same", one.value)) ?? [
      ...as("removed", removed),
      ...as("added", added),
    ]),
    ...as("same", a.slice(a.length - end)),
  ]);
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
