/**
 * A workload whose state follows from its ledger: unit `name` writes its records and the documents that
 * name them, together. The state after a fault can then be checked without knowing what happened.
 */
import { expect } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import type { RunToolDoc } from "../../src/govern/runs/run.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { GENESIS_HASH } from "../../src/ledger/record.ts";
import { verifyLine } from "../../src/store/journal/lines/verify-line.ts";

/** A count of all records that journals tell by what changed of it. */
export const counted = (calls: number): RunToolDoc => ({ run_id: "all", tool: "any", calls, standing: 0 });

/** One unit: `count` records, a document that lists them, a separate one, and a counter that all share, stored in two ways. */
export function work(store: StateStore, name: string, count = 1): Promise<number[]> {
  return store.transact({
    run: (tx) => {
      const seqs = Array.from({ length: count }, (_, i) => {
        const at = {
          ts_ms: 1_700_000_000_000 + tx.head.records,
          event: "intended",
          actor: "tester",
        } as const;
        return tx.append({ ...at, run_id: name, run_seq: i, tool: `tool.${i % 2}`, reason: 'ü, "quoted"\n' })
          .seq;
      });
      const all = (tx.get("meta", "total") as number | undefined) ?? 0;
      tx.put("meta", "total", all + count);
      tx.put("run_tools", "counted", counted(all + count));
      tx.put("idempotency", name, { run_id: name, step: seqs[0] ?? -1 });
      if (seqs.length > 0) tx.put("meta", `last/${name}`, seqs);
      return seqs;
    },
  });
}

export async function allRecords(store: StateStore): Promise<LedgerRecord[]> {
  const lines = await store.records({ limit: Number.MAX_SAFE_INTEGER });
  let prev = GENESIS_HASH;
  return lines.map((line, seq) => {
    expect(verifyLine(line, prev, seq), `record ${seq}`).toBeDefined();
    const record = JSON.parse(line) as LedgerRecord;
    prev = record.hash;
    return record;
  });
}

/** The chain is whole, and every document says what the ledger says: each unit is there whole or not at all. */
export async function expectConsistent(store: StateStore): Promise<Map<string, number[]>> {
  const records = await allRecords(store);
  const head = await store.head();
  expect(head.records).toBe(records.length);
  expect(head.hash).toBe(records.at(-1)?.hash ?? GENESIS_HASH);
  expect(head.events.intended ?? 0).toBe(records.length);
  const units = new Map<string, number[]>();
  for (const { run_id, seq } of records) units.set(run_id!, [...(units.get(run_id!) ?? []), seq]);
  const docs = await store.list("meta", { limit: Number.MAX_SAFE_INTEGER });
  const found = new Map(docs.map(({ key, doc }) => [key, doc]));
  expect(found.get("total") ?? 0).toBe(records.length);
  found.delete("total");
  expect((await store.get("run_tools", "counted"))?.calls ?? 0).toBe(records.length);
  expect(found).toEqual(new Map([...units].map(([name, seqs]) => [`last/${name}`, seqs])));
  expect(await store.count("idempotency")).toBe(units.size);
  for (const [name, seqs] of units) {
    expect(await store.get("idempotency", name)).toEqual({ run_id: name, step: seqs[0] });
    const own = await store.records({ run_id: name, limit: 1_000 });
    expect(own.map((line) => (JSON.parse(line) as LedgerRecord).seq)).toEqual(seqs);
  }
  return units;
}
