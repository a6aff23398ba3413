/** One seeded workload over all four stores: the same answers, the same documents, the same head hash. */
import { afterAll, expect, it } from "vitest";
import type { ListQuery, RecordQuery, StateStore, UnitOfWork } from "../../src/govern/port/store.ts";
import { EVENT_NAMES } from "../../src/ledger/events.ts";
import { seeded } from "../support/env.ts";
import { filesPlace, type MakePlace, memoryPlace, type Place, postgresPlace, sqlitePlace } from "./place.ts";
import { approvalDoc, draft, increment, stepDoc, T0 } from "./samples.ts";

const MAKERS: Record<string, MakePlace> = {
  memory: memoryPlace,
  files: filesPlace,
  sqlite: sqlitePlace,
  postgres: postgresPlace,
};
const STEPS = 600;

const places: Place[] = [];
afterAll(async () => {
  for (const place of places) await place.dispose();
});

/** A random unit; everything random about it is decided before it runs, since it may run more than once. */
function randomUnit(random: () => number): UnitOfWork<unknown> {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const n = Math.floor(random() * 40);
  const run_id = `run_${n % 7}`;
  const event = pick(EVENT_NAMES);
  const reason = pick([undefined, "plain", "ümlaut 🦊", 'with "quotes"', "line\nbreak"]);
  const ts_ms = T0 + Math.floor(random() * 10_000_000);
  const status = pick(["pending", "approved", "consumed"] as const);
  const kind = Math.floor(random() * 6);
  return {
    ...(random() < 0.5
      ? {
          needs: [
            ["meta", "count"],
            ["approvals", `a${n}`],
          ] as const,
        }
      : {}),
    run(tx) {
      if (kind === 0) tx.delete("approvals", `a${n}`);
      else tx.put("approvals", `a${n}`, approvalDoc({ id: `a${n}`, run_id, status, requested_ms: ts_ms }));
      if (kind <= 3)
        tx.append(draft({ event, run_id, run_seq: increment(tx, run_id), reason, ts_ms, tool: `t.${n}` }));
      if (kind === 1) tx.put("steps", `${run_id}/${n}`, stepDoc({ run_id, step: n, error: reason ?? null }));
      if (kind === 2) throw new Error("thrown on purpose");
      if (kind === 3)
        tx.append(draft({ event: "succeeded", run_id, actor: tx.get("approvals", `a${n + 1}`)?.id ?? "-" }));
      return [increment(tx, "count"), tx.head];
    },
  };
}

/** Runs the workload, some of it concurrently, and returns the result of each unit. */
async function workload(store: StateStore): Promise<unknown[]> {
  const random = seeded(2026);
  const outcomes: unknown[] = [];
  for (let done = 0; done < STEPS; ) {
    const together = 1 + Math.floor(random() * 20);
    const units = Array.from({ length: together }, () => randomUnit(random));
    const settled = await Promise.allSettled(units.map((unit) => store.transact(unit)));
    outcomes.push(...settled.map((s) => (s.status === "fulfilled" ? s.value : String(s.reason))));
    done += together;
  }
  return outcomes;
}

const LISTS: ListQuery[] = [
  { limit: 1_000 },
  { owner: "run_3", limit: 1_000 },
  { tag: ["approved", "consumed"], order: "desc", limit: 7 },
  { from: T0 + 2_000_000, to: T0 + 7_000_000, limit: 1_000 },
  { after: { sort: T0 + 5_000_000, key: "a20" }, limit: 5 },
];
const RECORDS: RecordQuery[] = [
  { limit: 10_000 },
  { order: "desc", limit: 20 },
  { run_id: "run_2", limit: 10_000 },
  { event: ["succeeded", "blocked"], limit: 50 },
  { tool: "t.5", since_ms: T0 + 1_000_000, limit: 10_000 },
  { until_ms: T0 + 3_000_000, order: "desc", limit: 30 },
  { q: "Ümlaut", limit: 40 },
];

async function everything(store: StateStore): Promise<unknown> {
  const lists = [];
  for (const table of ["approvals", "steps"] as const) {
    for (const query of LISTS) lists.push(await store.list(table, query));
  }
  const records = [];
  for (const query of RECORDS) records.push(await store.records(query));
  return { head: await store.head(), lists, records, meta: await store.list("meta", { limit: 1_000 }) };
}

it("gives the same head hash, answers and documents in every store", async () => {
  const results: Record<string, { outcomes: unknown[]; state: unknown }> = {};
  for (const [name, make] of Object.entries(MAKERS)) {
    const place = await make();
    places.push(place);
    const store = await place.open();
    const outcomes = await workload(store);
    const state = await everything(store);
    results[name] = { outcomes, state };
    if (place.settings === undefined) continue;
    await store.close();
    expect(await everything(await place.open()), `${name}, opened again`).toEqual(state);
  }
  const { memory, ...others } = results;
  expect(JSON.stringify(memory)).toContain("thrown on purpose");
  for (const [name, result] of Object.entries(others)) expect(result, name).toEqual(memory);
});
