/**
 * A check of the chain, separate from the code that makes it: another implementation of RFC 8785 and nothing
 * of `src/ledger`.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";

export interface Linked {
  seq: number;
  prev: string;
  hash: string;
  event: string;
  [field: string]: unknown;
}

export const START = "0".repeat(64);

/** The first record that is not what it should be, or -1. */
export function firstBad(lines: readonly string[]): number {
  let prev = START;
  for (const [seq, line] of lines.entries()) {
    const record = tryParse(line);
    if (record === undefined || record.seq !== seq || record.prev !== prev) return seq;
    const { hash, ...rest } = record;
    if (canonicalize(record) !== line) return seq;
    if (createHash("sha256").update(canonicalize(rest)!).digest("hex") !== hash) return seq;
    prev = hash;
  }
  return -1;
}

function tryParse(line: string): Linked | undefined {
  try {
    return JSON.parse(line) as Linked;
  } catch {
    return undefined;
  }
}
