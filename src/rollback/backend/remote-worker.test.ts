import { describe, expect, it } from "vitest";
import { rollbackBench } from "../../../test/sim/rollback-fixture.ts";
import { verifies } from "../../../test/support/verifies.ts";
import type { EngineCore } from "../../govern/core.ts";
import { compensationKey } from "../../govern/document-keys.ts";
import { watchLeases } from "../../govern/lease.ts";
import type { StateStore, StoreTx } from "../../govern/port/store.ts";
import { WORKER_LEASE_MS } from "../lease.ts";
import { beginCompensation, completeCompensation, type WorkerOutcome } from "./remote-worker.ts";

const PETE = { id: "key:pete", name: "pete" };

async function bench(tools: string[] = []) {
  const b = rollbackBench();
  await b.openRun();
  for (const tool of tools) await b.act(tool);
  return {
    ...b,
    begin: (n: number, who = b.operator) => beginCompensation(b.core, who, "r1", n),
    complete: (n: number, outcome: WorkerOutcome = { status: "succeeded" }, who = b.operator) =>
      completeCompensation(b.core, who, "r1", n, outcome),
  };
}

describe("a remote worker", () => {
  it(`begins a compensation with all it needs, and completes it ${verifies("contract.http.compensation-begin", "contract.http.compensation-outcome")}`, async () => {
    const b = await bench(["crm.add", "db.create"]);
    expect(await b.begin(1)).toEqual({
      run_id: "r1",
      step: 1,
      tool: "db.delete",
      original_tool: "db.create",
      args: { id: "id-1", name: "n" },
      idempotency_key: compensationKey("r1", 1),
      verification: null,
    });
    expect(await b.complete(1)).toEqual({ step: 1, status: "compensated" });
    expect(await b.begin(0)).toMatchObject({
      verification: { tool: "crm.get", arguments: { id: "id-0" }, expect: { deleted: true } },
    });
    expect(await b.complete(0, { status: "succeeded", observed: { deleted: true, at: 1 } })).toEqual({
      step: 0,
      status: "compensated",
    });
    expect(await b.undoTrail()).toEqual([
      "compensating 1",
      "compensated 1",
      "compensating 0",
      "verified 0",
      "compensated 0",
    ]);
    expect(b.recorded).toEqual(["compensating", "compensated", "compensating", "verified", "compensated"]);
  });

  it(`has what it observed compared ${verifies("contract.http.compensation-observed")}`, async () => {
    const b = await bench(["crm.add", "crm.add", "crm.note"]);
    await b.begin(2);
    expect(await b.complete(2)).toEqual({ step: 2, status: "compensation_failed" });
    expect((await b.step(2)).error).toBe("cannot verify: arguments unavailable");
    await b.begin(1);
    expect(await b.complete(1, { status: "succeeded", observed: { deleted: false } })).toEqual({
      step: 1,
      status: "compensation_failed",
    });
    expect((await b.step(1)).error).toBe(
      "verification failed: crm.get did not show the expected state after the undo",
    );
    await b.begin(0);
    expect(await b.complete(0)).toEqual({ step: 0, status: "compensated" });
    expect((await b.undoTrail()).slice(-3)).toEqual(["compensating 0", "unverified 0", "compensated 0"]);
  });

  it("has its failure recorded with its attempts, without the values of the call", async () => {
    const b = await bench(["db.create"]);
    await b.begin(0);
    expect(await b.complete(0, { status: "failed", error: "no id-0 there", attempts: 3 })).toEqual({
      step: 0,
      status: "compensation_failed",
    });
    expect((await b.step(0)).error).toBe("after 3 attempts: no [argument] there");
    await b.begin(0);
    await b.complete(0, { status: "failed" });
    expect((await b.step(0)).error).toBe("after 1 attempt: no reason given");
    expect((await b.run()).compensation_failed).toBe(1);
  });

  it(`waits for its turn ${verifies("contract.http.compensation-turn-409")}`, async () => {
    const b = await bench(["db.create", "db.fill", "db.peek", "db.create"]);
    await expect(b.begin(0)).rejects.toMatchObject({
      code: "conflict",
      message: "step 0 cannot be undone yet: step 1 depends on it and is not undone",
    });
    await b.begin(1);
    await b.complete(1);
    expect(await b.begin(0)).toMatchObject({ step: 0 });
  });

  it(`cannot begin a step that is undone, not undoable or missing ${verifies("contract.http.compensation-done-409")}`, async () => {
    const b = await bench(["db.create", "mail.send", "db.read"]);
    await b.act("db.create", { status: "uncertain" });
    await b.act("db.create", { status: "failed" });
    await b.begin(0);
    await b.complete(0);
    for (const [n, why] of [
      [0, "already compensated"],
      [1, "irreversible"],
      [2, "needs no undo"],
      [3, "outcome is unknown"],
      [4, "nothing to undo"],
    ] as const) {
      await expect(b.begin(n)).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining(why),
      });
    }
    await expect(b.begin(5)).rejects.toMatchObject({ code: "not_found" });
    await expect(beginCompensation(b.core, b.operator, "r9", 0)).rejects.toMatchObject({ code: "not_found" });
    expect(await b.store.list("leases", { limit: 9 })).toEqual([]);
  });

  it(`is alone: no second begin, no concurrent rollback ${verifies("contract.readings.second-begin-409")}`, async () => {
    const b = await bench(["db.create", "db.create"]);
    await b.begin(1);
    await expect(b.begin(1)).rejects.toMatchObject({ code: "conflict" });
    await expect(b.begin(1, PETE)).rejects.toMatchObject({ code: "conflict" });
    await expect(b.begin(0, PETE)).rejects.toMatchObject({ code: "conflict" });
    await expect(b.rollback()).rejects.toMatchObject({ code: "conflict" });
    await expect(b.complete(1, { status: "succeeded" }, PETE)).rejects.toMatchObject({ code: "conflict" });
    await expect(b.complete(0)).rejects.toMatchObject({ code: "conflict" });
    await b.complete(1);
    await expect(b.complete(1)).rejects.toMatchObject({ code: "conflict" });
    expect(await b.rollback()).toMatchObject({ compensated: [0], skipped: [1] });
  });

  it("that died is followed by another, and its late word does not count", async () => {
    const b = await bench(["db.create"]);
    const first = await b.begin(0);
    await expect(b.begin(0, PETE)).rejects.toThrow(
      `try again in ${WORKER_LEASE_MS / 1_000} s to take it over`,
    );
    await b.env.advance(WORKER_LEASE_MS);
    expect(await b.begin(0, PETE)).toEqual(first);
    await expect(b.complete(0)).rejects.toMatchObject({ code: "conflict" });
    expect(await b.complete(0, { status: "succeeded" }, PETE)).toEqual({ step: 0, status: "compensated" });
    expect(await b.undoTrail()).toEqual(["compensating 0", "compensating 0", "compensated 0"]);
  });

  it("that is late, but was not followed, still counts", async () => {
    const b = await bench(["db.create"]);
    await b.begin(0);
    await watchLeases(b.core);
    await b.env.advance(10 * WORKER_LEASE_MS);
    expect(await b.complete(0)).toEqual({ step: 0, status: "compensated" });
  });

  it("that died leaves its step to a rollback", async () => {
    const b = await bench(["db.create"]);
    await b.begin(0);
    await watchLeases(b.core);
    await b.env.advance(WORKER_LEASE_MS);
    expect(await b.rollback()).toMatchObject({ compensated: [0], complete: true });
    await expect(b.complete(0, { status: "failed" })).rejects.toThrow("step 0 is compensated");
  });

  it(`costs no more the more calls of the run stand ${verifies("beyond.conflict.flat")}`, async () => {
    const looks = async (calls: number) => {
      const b = rollbackBench({ tools: DOCUMENTS });
      await b.openRun();
      for (let n = 0; n < calls; n++) {
        const { step } = (await b.intent(b.agent, "r1", "doc.put", { id: n % 2 })) as { step: number };
        await b.outcome(b.agent, "r1", step, { status: "succeeded", result: null, before: n, after: n + 2 });
      }
      const seen = countReads(b.core);
      const { store } = b.core;
      await beginCompensation({ ...b.core, store: seen.store }, b.operator, "r1", calls - 1, {
        current: calls + 1,
      });
      expect(await store.list("touches", { limit: 1_000 })).toHaveLength(calls);
      await completeCompensation(b.core, b.operator, "r1", calls - 1, { status: "succeeded" });
      expect(await store.list("touches", { limit: 1_000 })).toHaveLength(calls - 1);
      return seen.count();
    };
    expect(await looks(60)).toBe(await looks(6));
  });
});

const DOCUMENTS = `
- {tool: doc.get, effect: read, permission: p}
- {tool: doc.put, effect: reversible, permission: p, before: {tool: doc.get, args: {id: $args.id}},
   compensation: {tool: doc.put, args: {id: $args.id, text: $before}}}
`;

/** Documents that are read, one by one or in lists, outside units and within them. */
function countReads({ store }: EngineCore) {
  let read = 0;
  const counted: StateStore = Object.assign(Object.create(store) as StateStore, {
    get: ((table, key) => {
      read++;
      return store.get(table, key);
    }) satisfies StateStore["get"],
    list: (async (table, query) => {
      const rows = await store.list(table, query);
      read += rows.length;
      return rows;
    }) satisfies StateStore["list"],
    transact: ((unit) =>
      store.transact({
        ...unit,
        run: (tx) => {
          const get: StoreTx["get"] = (table, key) => {
            read++;
            return tx.get(table, key);
          };
          return unit.run(Object.assign(Object.create(tx) as StoreTx, { get }));
        },
      })) satisfies StateStore["transact"],
  });
  return { store: counted, count: () => read };
}
