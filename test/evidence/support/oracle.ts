/** The chain and its tree as plainly as they can be said: what the quick ways are compared with. */
import { createHash } from "node:crypto";
import { readRecordLine } from "../../../src/ledger/read-record.ts";
import { GENESIS_HASH } from "../../../src/ledger/record.ts";

const sha = (...parts: (string | Uint8Array)[]): string =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex");

/** One line after the other, up to the first that is wrong. */
export function checkPlainly(lines: readonly string[]) {
  const runs = new Map<string, number>();
  let hash = GENESIS_HASH;
  for (const [seq, line] of lines.entries()) {
    const bad = (problem: string) => ({ hash, bad: { seq, problem } });
    const record = readRecordLine(line);
    if (typeof record === "string") return bad(record);
    if (record.seq !== seq) return bad(`it says seq ${record.seq}`);
    if (record.prev !== hash) return bad("it does not link to the one before");
    if (sha(record.body) !== record.hash) return bad("its hash does not match");
    if (record.run_id !== undefined) {
      const due = runs.get(record.run_id) ?? 0;
      if (record.run_seq !== due) return bad(`its run_seq is not ${due}`);
      runs.set(record.run_id, due + 1);
    }
    hash = record.hash;
  }
  return { hash, bad: null };
}

export const plainLeaf = (body: string): string => sha(Buffer.from([0]), body);

/** The root over these leaves, by the RFC's own recursive definition. */
export function plainRoot(leaves: readonly string[]): string {
  if (leaves.length === 0) return sha("");
  if (leaves.length === 1) return leaves[0]!;
  const [left, right] = halves(leaves);
  return sha(Buffer.from([1]), Buffer.from(plainRoot(left), "hex"), Buffer.from(plainRoot(right), "hex"));
}

/** The inclusion proof of a leaf, by the same. */
export function plainPath(index: number, leaves: readonly string[]): string[] {
  if (leaves.length <= 1) return [];
  const [left, right] = halves(leaves);
  return index < left.length
    ? [...plainPath(index, left), plainRoot(right)]
    : [...plainPath(index - left.length, right), plainRoot(left)];
}

function halves(leaves: readonly string[]): [string[], string[]] {
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return [leaves.slice(0, k), leaves.slice(k)];
}

/** The leaf of a line that reads. */
export function leafOf(line: string): string {
  const record = readRecordLine(line);
  if (typeof record === "string") throw new Error(record);
  return plainLeaf(record.body);
}
