import { describe, expect, it } from "vitest";
import type { PlanDoc } from "../../govern/plans/plan.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { ExpiryQueue } from "./expiry-queue.ts";

/** Open documents by the time they were opened; counts the rows that were read. */
function stand() {
  const docs = new Map<string, { sort: number; expires_ms: number }>();
  const read = { rows: 0 };
  const store = {
    async list(
      _table: string,
      { from = 0, after, limit }: { from?: number; after?: { sort: number; key: string }; limit: number },
    ) {
      const rows = [...docs]
        .map(([key, doc]) => ({ key, sort: doc.sort, doc }))
        .filter(
          ({ sort, key }) =>
            sort >= from &&
            (after === undefined || sort > after.sort || (sort === after.sort && key > after.key)),
        )
        .sort((a, b) => a.sort - b.sort || (a.key < b.key ? -1 : 1))
        .slice(0, limit);
      read.rows += rows.length;
      return rows;
    },
  } as unknown as StateStore;
  const due = new ExpiryQueue<"plans">("plans", ["pending"], ({ expires_ms }: PlanDoc) => expires_ms);
  return { docs, read, store, due };
}
const HOUR = 3_600_000;

describe("due documents", () => {
  it("reads everything once, then only new documents", async () => {
    const { docs, read, store, due } = stand();
    for (let i = 0; i < 1_000; i++) docs.set(`p${i}`, { sort: i, expires_ms: HOUR });
    expect(await due.fresh(store, 100_000)).toHaveLength(1_000);
    read.rows = 0;
    expect(await due.fresh(store, 101_000)).toEqual([]);
    docs.set("new", { sort: 101_500, expires_ms: 2 * HOUR });
    expect(await due.fresh(store, 102_000)).toHaveLength(1);
    for (let at = 103_000; at < 163_000; at += 1_000) expect(await due.fresh(store, at)).toEqual([]);
    // It alone lay within the overlap, for a while.
    expect(read.rows).toBeLessThan(20);
    read.rows = 0;
    expect(await due.fresh(store, 163_000)).toEqual([]);
    expect(read.rows).toBe(0);
    expect(due.due(HOUR - 1)).toEqual([]);
    expect(due.due(HOUR)).toHaveLength(1_000);
  });

  it("finds again a document that could not be ended, and a postponed one at its new time", async () => {
    const { docs, store, due } = stand();
    docs.set("a", { sort: 1, expires_ms: 10 });
    docs.set("b", { sort: 2, expires_ms: 20 });
    await due.fresh(store, 5);
    expect(due.due(10)).toEqual(["a"]);
    expect(due.due(11)).toEqual(["a"]);
    due.put("a", { expires_ms: 30 } as PlanDoc);
    expect(due.due(12)).toEqual([]);
    expect(due.due(20)).toEqual(["b"]);
    due.drop("b");
    expect(due.due(29)).toEqual([]);
    expect(due.due(30)).toEqual(["a"]);
  });

  it("finds documents that another server opened with a clock that is behind or ahead", async () => {
    const { docs, store, due } = stand();
    docs.set("ahead", { sort: 10 * HOUR, expires_ms: 20 * HOUR });
    expect(await due.fresh(store, 100_000)).toHaveLength(1);
    docs.set("behind", { sort: 92_000, expires_ms: 200_000 });
    expect(await due.fresh(store, 101_000)).toHaveLength(1);
    docs.set("far behind", { sort: 1, expires_ms: 200_000 });
    expect(await due.fresh(store, 102_000)).toHaveLength(0);
    expect(await due.fresh(store, 800_000)).toHaveLength(1);
  });
});
