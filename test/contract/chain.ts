/**
 * The chain, checked apart from the code that makes it: another implementation of RFC 8785 and nothing
 * of `src/ledger`.
 */
import { createHash } from "node:crypto";
import canonicalize from "canonicalize";
import { expect } from "vitest";
import type { Store } from "../../src/store/port.ts";

interface Linked {
  seq: number;
  prev: string;
  hash: string;
  event: string;
  [field: string]: unknown;
}

const START = "0".repeat(64);

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

/** Reads the whole ledger and holds it, the head and the event counts to each other. */
export async function expectWhole(store: Store): Promise<Linked[]> {
  const lines = await store.records({ limit: Number.MAX_SAFE_INTEGER });
  expect(firstBad(lines)).toBe(-1);
  const records = lines.map((line) => JSON.parse(line) as Linked);
  const events: Record<string, number> = {};
  for (const { event } of records) events[event] = (events[event] ?? 0) + 1;
  expect(await store.head()).toEqual({
    records: records.length,
    hash: records.at(-1)?.hash ?? START,
    events,
  });
  return records;
}
