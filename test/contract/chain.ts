/** Compares the whole ledger of a store with itself, with a check of the chain that was written separately. */
import { expect } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { firstBad, type Linked, START } from "../support/first-bad.ts";

export { firstBad };

/** Reads the whole ledger and holds it, the head and the event counts to each other. */
export async function expectWhole(store: StateStore): Promise<Linked[]> {
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
