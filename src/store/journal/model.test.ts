/**
 * The files and sqlite stores against the one in memory, over the same seeded history: with journals so
 * short that checkpoints happen all the time, with reopening, and read through a second handle as well.
 */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { approvalDoc, stepDoc } from "../../../test/contract/samples.ts";
import { seeded } from "../../../test/support/env.ts";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import type { ListQuery, RecordQuery, StateStore, StoreTx } from "../../govern/port/store.ts";
import { filesJobs } from "../files/jobs.ts";
import { openFilesStore } from "../files/store.ts";
import { MemoryStore } from "../memory/store.ts";
import { sqliteJobs } from "../sqlite/jobs.ts";
import { openSqliteStore } from "../sqlite/store.ts";

const bounds = { changes: 40, records: 30, bytes: 1_000_000 };
const KINDS = {
  files: (folder: string) =>
    openFilesStore(folder, () => {}, { bounds, helper: inlineHelper(() => filesJobs(folder)) }),
  sqlite: (folder: string) =>
    openSqliteStore(folder, () => {}, { bounds, helper: inlineHelper(() => sqliteJobs(folder, 0)) }),
};

class Chance {
  readonly random: () => number;
  constructor(seed: number) {
    this.random = seeded(seed);
  }
  below(n: number): number {
    return Math.floor(this.random() * n);
  }
  pick<T>(of: readonly T[]): T {
    return of[this.below(of.length)]!;
  }
  maybe<T>(value: () => T): T | undefined {
    return this.random() < 0.4 ? value() : undefined;
  }
}

const SEEDS = Array.from({ length: Number(process.env.SVC_TEST_SEEDS ?? 3) }, (_, i) => i + 1);

const RUNS = ["r1", "r2", "r\0x", "r\u0001", "r\u{1f600}", "r\uffee"];
const TENANTS = [null, "acme", 'a "quoted" \\ one', "日本\u{1f600}"];
const STATUSES = ["intended", "succeeded", "failed"] as const;

/** One random unit, the same for every store: what it does depends on the seed and on what it reads. */
function unit(seed: number): (tx: StoreTx) => void {
  return (tx) => {
    const chance = new Chance(seed);
    for (let i = chance.below(4); i >= 0; i--) {
      const run_id = chance.pick(RUNS);
      const step = chance.below(25);
      const key = `${run_id}/${step}`;
      const kind = chance.below(7);
      if (kind === 0) tx.delete("steps", key);
      if (kind === 1) tx.put("steps", key, stepDoc({ run_id, step, status: chance.pick(STATUSES) }));
      if (kind === 2)
        tx.put("meta", key, { seen: tx.get("steps", key)?.status ?? null, at: tx.head.records });
      if (kind === 3)
        tx.put(
          "approvals",
          key,
          approvalDoc({
            ...{ id: key, run_id, requested_ms: chance.below(9) },
            tenant: (tx.get("approvals", key) ?? { tenant: chance.pick(TENANTS) }).tenant,
          }),
        );
      if (kind === 4) {
        tx.delete("meta", key);
        tx.delete("approvals", key);
      }
      if (kind === 5) tx.put("idempotency", key, { run_id, step });
      if (kind === 6) {
        const others = Array.from({ length: 6 }, () => `${run_id}/${chance.below(25)}`);
        tx.expect(others.map((other) => ["steps", other]));
        tx.put("meta", key, { seen: others.map((other) => tx.get("steps", other)?.status ?? null) });
      }
    }
    for (let i = chance.below(3); i > 0; i--) {
      const event = chance.pick(["intended", "blocked", "halted"] as const);
      const tool = chance.maybe(() => `tool.${chance.below(3)}`);
      const ts_ms = tx.head.records + chance.below(20);
      tx.append({
        ts_ms,
        event,
        actor: `a${chance.below(3)}`,
        run_id: chance.maybe(() => chance.pick(RUNS)),
        tool,
      });
    }
  };
}

function listQuery(chance: Chance): ListQuery {
  return {
    owner: chance.maybe(() => chance.pick(RUNS)),
    tag: chance.maybe(() =>
      chance.below(2) === 0 ? chance.pick(STATUSES) : ["failed", "intended", "pending"],
    ),
    from: chance.maybe(() => chance.below(12)),
    to: chance.maybe(() => chance.below(25)),
    after: chance.maybe(() => ({ sort: chance.below(20), key: `${chance.pick(RUNS)}/${chance.below(25)}` })),
    order: chance.maybe(() => chance.pick(["asc", "desc"] as const)),
    limit: 1 + chance.below(12),
  };
}

function recordQuery(chance: Chance, records: number): RecordQuery {
  return {
    from: chance.maybe(() => chance.below(records + 1)),
    to: chance.maybe(() => chance.below(records + 5)),
    run_id: chance.maybe(() => chance.pick(RUNS)),
    event: chance.maybe(() => chance.pick(["intended", ["blocked", "halted"], "succeeded"])),
    actor: chance.maybe(() => `a${chance.below(3)}`),
    tool: chance.maybe(() => `tool.${chance.below(3)}`),
    since_ms: chance.maybe(() => chance.below(records + 1)),
    until_ms: chance.maybe(() => chance.below(records + 20)),
    q: chance.maybe(() => chance.pick(["TOOL.1", "zzz", "a2"])),
    order: chance.maybe(() => chance.pick(["asc", "desc"] as const)),
    limit: 1 + chance.below(20),
  };
}

async function compare(model: StateStore, store: StateStore, chance: Chance): Promise<void> {
  const head = await model.head();
  expect(await store.head()).toEqual(head);
  for (let i = 0; i < 6; i++) {
    const table = chance.pick(["steps", "meta", "approvals", "idempotency"] as const);
    const tenant = table === "approvals" ? chance.maybe(() => chance.pick(TENANTS) ?? "none") : undefined;
    const query = { ...listQuery(chance), tenant };
    expect(await store.list(table, query), `${table} ${JSON.stringify(query)}`).toEqual(
      await model.list(table, query),
    );
    const tag = typeof query.tag === "string" ? query.tag : undefined;
    const narrow = { owner: query.owner, tag, tenant };
    expect(await store.count(table, narrow)).toBe(await model.count(table, narrow));
    const records = recordQuery(chance, head.records);
    expect(await store.records(records), JSON.stringify(records)).toEqual(await model.records(records));
    const key = `${chance.pick(RUNS)}/${chance.below(25)}`;
    expect(await store.get(table, key)).toEqual(await model.get(table, key));
  }
}

describe.each(Object.entries(KINDS))("%s", (kind, open) => {
  it.each(SEEDS)("agrees with memory over a random history (seed %i)", async (seed) => {
    const chance = new Chance(seed);
    const folder = join(tempDir(kind), "data");
    const model = new MemoryStore();
    let store = await open(folder);
    const beside = await open(folder);
    for (let turn = 0; turn < 60; turn++) {
      const seeds = Array.from({ length: 1 + chance.below(8) }, () => chance.below(1_000_000));
      const writer = chance.below(4) === 0 ? beside : store;
      await Promise.all(seeds.map((one) => writer.transact({ run: unit(one) })));
      for (const one of seeds) await model.transact({ run: unit(one) });
      await compare(model, store, chance);
      if (chance.below(3) === 0) await compare(model, beside, chance);
      if (chance.below(12) === 0) await chance.pick([store, beside]).scrub();
      if (chance.below(12) === 0) {
        await store.close();
        store = await open(folder);
        await compare(model, store, chance);
      }
    }
    await store.close();
    await beside.close();
  });
});
