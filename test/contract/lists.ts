/** Lists and counts: filters, order, bounds and cursors, by example and against a plain model. */
import { describe, expect, it } from "vitest";
import type { DocRow, ListQuery, StateStore } from "../../src/govern/port/store.ts";
import { seeded } from "../support/env.ts";
import { approvalDoc, put, remove, stepDoc } from "./samples.ts";
import type { Bench } from "./store.ts";

const STATUSES = ["pending", "escalated", "approved", "denied"] as const;

interface Entry {
  key: string;
  owner: string;
  sort: number;
  tag: (typeof STATUSES)[number];
}

export function listTests(bench: Bench): void {
  describe("lists", () => {
    const keys = (rows: DocRow<"approvals">[] | DocRow<"steps">[]): string[] => rows.map(({ key }) => key);

    it("come in (sort, key) order, or the other way round", async () => {
      const store = await bench.open();
      await fill(store, [
        { key: "b", owner: "r", sort: 5, tag: "pending" },
        { key: "a", owner: "r", sort: 5, tag: "pending" },
        { key: "z", owner: "r", sort: -1, tag: "pending" },
        { key: "c", owner: "r", sort: 10, tag: "pending" },
      ]);
      expect(keys(await store.list("approvals", { limit: 10 }))).toEqual(["z", "a", "b", "c"]);
      expect(keys(await store.list("approvals", { order: "desc", limit: 10 }))).toEqual(["c", "b", "a", "z"]);
      expect(keys(await store.list("approvals", { limit: 2 }))).toEqual(["z", "a"]);
      expect(await store.list("approvals", { limit: 0 })).toEqual([]);
    });

    it("give key, sort and document", async () => {
      const store = await bench.open();
      const doc = approvalDoc({ id: "a", requested_ms: 7 });
      await put(store, "approvals", { a: doc });
      expect(await store.list("approvals", { limit: 1 })).toEqual([{ key: "a", sort: 7, doc }]);
    });

    it("filter by owner, by one tag and by several", async () => {
      const store = await bench.open();
      await fill(store, [
        { key: "1", owner: "r", sort: 1, tag: "pending" },
        { key: "2", owner: "s", sort: 2, tag: "escalated" },
        { key: "3", owner: "r", sort: 3, tag: "approved" },
        { key: "4", owner: "", sort: 4, tag: "pending" },
      ]);
      const list = async (query: Omit<ListQuery, "limit">) =>
        keys(await store.list("approvals", { ...query, limit: 9 }));
      expect(await list({ owner: "r" })).toEqual(["1", "3"]);
      expect(await list({ owner: "" })).toEqual(["4"]);
      expect(await list({ tag: "pending" })).toEqual(["1", "4"]);
      expect(await list({ tag: ["pending", "escalated"] })).toEqual(["1", "2", "4"]);
      expect(await list({ tag: ["pending", "escalated"], order: "desc" })).toEqual(["4", "2", "1"]);
      expect(await list({ tag: ["approved", "approved"] })).toEqual(["3"]);
      expect(await list({ tag: [] })).toEqual([]);
      expect(await list({ owner: "r", tag: ["approved", "denied"] })).toEqual(["3"]);
      expect(await list({ owner: "nobody" })).toEqual([]);
    });

    it("count by owner and tag", async () => {
      const store = await bench.open();
      expect(await store.count("approvals")).toBe(0);
      await fill(store, [
        { key: "1", owner: "r", sort: 1, tag: "pending" },
        { key: "2", owner: "r", sort: 2, tag: "approved" },
        { key: "3", owner: "s", sort: 3, tag: "pending" },
      ]);
      expect(await store.count("approvals")).toBe(3);
      expect(await store.count("approvals", { owner: "r" })).toBe(2);
      expect(await store.count("approvals", { tag: "pending" })).toBe(2);
      expect(await store.count("approvals", { owner: "r", tag: "pending" })).toBe(1);
      expect(await store.count("steps")).toBe(0);
    });

    it("are a tenant's own where they are asked for so", async () => {
      const store = await bench.open();
      const of = (
        id: string,
        tenant: string | null,
        status: (typeof STATUSES)[number],
        requested_ms: number,
      ) => approvalDoc({ id, tenant, status, requested_ms });
      const odd = 'ein "Haus" \\ 日本';
      await put(store, "approvals", {
        1: of("1", "acme", "pending", 1),
        2: of("2", "globex", "pending", 2),
        3: of("3", "acme", "denied", 3),
        4: of("4", null, "pending", 4),
        5: of("5", odd, "pending", 5),
        6: of("6", "acme", "pending", 6),
      });
      const list = async (query: Omit<ListQuery, "limit">, limit = 9) =>
        keys(await store.list("approvals", { ...query, limit }));
      expect(await list({ tenant: "acme" })).toEqual(["1", "3", "6"]);
      expect(await list({ tenant: "acme", order: "desc" }, 2)).toEqual(["6", "3"]);
      expect(await list({ tenant: "acme", tag: ["denied", "pending"], from: 2 })).toEqual(["3", "6"]);
      expect(await list({ tenant: "acme", after: { sort: 1, key: "1" } })).toEqual(["3", "6"]);
      expect(await list({ tenant: odd })).toEqual(["5"]);
      expect(await list({ tenant: "acm" })).toEqual([]);
      expect(await store.count("approvals", { tenant: "acme" })).toBe(3);
      expect(await store.count("approvals", { tenant: "acme", tag: "pending" })).toBe(2);
      expect(await store.count("approvals", { tenant: odd })).toBe(1);
      await put(store, "approvals", { 3: of("3", "acme", "approved", 3) });
      await remove(store, "approvals", "1");
      expect(await list({ tenant: "acme" })).toEqual(["3", "6"]);
      expect(await store.count("approvals", { tenant: "acme", tag: "denied" })).toBe(0);
      expect(await store.count("approvals", { tenant: "acme" })).toBe(2);
    });

    it("follow a document that moves to another owner, place and state", async () => {
      const store = await bench.open();
      await fill(store, [{ key: "a", owner: "r", sort: 1, tag: "pending" }]);
      await fill(store, [{ key: "a", owner: "s", sort: 9, tag: "approved" }]);
      expect(await store.count("approvals", { owner: "r" })).toBe(0);
      expect(await store.count("approvals", { tag: "pending" })).toBe(0);
      expect(
        await store.list("approvals", { owner: "s", tag: "approved", from: 9, to: 9, limit: 9 }),
      ).toHaveLength(1);
      await remove(store, "approvals", "a");
      expect(await store.list("approvals", { limit: 9 })).toEqual([]);
    });

    it("continue behind a row, even one that is gone", async () => {
      const store = await bench.open();
      await store.transact({
        run: (tx) => {
          for (let i = 0; i < 25; i++) tx.put("steps", `r/${i}`, stepDoc({ run_id: "r", step: i }));
        },
      });
      for (const order of ["asc", "desc"] as const) {
        const seen: number[] = [];
        let after: ListQuery["after"];
        for (;;) {
          const page = await store.list("steps", { owner: "r", order, after, limit: 4 });
          if (page.length === 0) break;
          seen.push(...page.map(({ sort }) => sort));
          after = page.at(-1)!;
          if (order === "asc") await remove(store, "steps", after.key);
        }
        const all = Array.from({ length: 25 }, (_, i) => i);
        // On the way back the rows are missing that were removed on the way there.
        expect(seen).toEqual(order === "asc" ? all : all.filter((i) => i % 4 !== 3 && i !== 24).reverse());
      }
    });

    it("agree with a plain model on any query", async () => {
      const store = await bench.open();
      const random = seeded(7);
      const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
      const entries = Array.from(
        { length: 120 },
        (_, i): Entry => ({
          key: `k${String(i).padStart(3, "0")}`,
          owner: pick(["", "r1", "r2"]),
          sort: pick([-3.5, 0, 1, 2, 2.5, 1e12]),
          tag: pick(STATUSES),
        }),
      );
      await fill(store, entries);
      const maybe = <T>(make: () => T): T | undefined => (random() < 0.5 ? make() : undefined);
      for (let i = 0; i < 150; i++) {
        const query: ListQuery = {
          owner: maybe(() => pick(["", "r1", "r2", "r3"])),
          tag: maybe(() => pick([...STATUSES, [STATUSES[0], STATUSES[2]], [...STATUSES]])),
          from: maybe(() => pick([-10, 0, 2, 2.5])),
          to: maybe(() => pick([0, 2, 2.5, 1e13])),
          after: maybe(() => pick([...entries, { sort: 1, key: "" }, { sort: 2, key: "zzz" }])),
          order: maybe(() => pick(["asc", "desc"] as const)),
          limit: pick([1, 5, 1_000]),
        };
        expect(keys(await store.list("approvals", query)), JSON.stringify(query)).toEqual(
          model(entries, query),
        );
      }
    });
  });
}

function fill(store: StateStore, entries: readonly Entry[]): Promise<void> {
  const docs = entries.map(({ key, owner, sort, tag }) => [
    key,
    approvalDoc({ id: key, run_id: owner, requested_ms: sort, status: tag }),
  ]);
  return put(store, "approvals", Object.fromEntries(docs));
}

function model(entries: readonly Entry[], query: ListQuery): string[] {
  const { owner, tag, from = Number.NEGATIVE_INFINITY, to = Number.POSITIVE_INFINITY, after } = query;
  const tags = typeof tag === "string" ? [tag] : tag;
  const order = (a: { sort: number; key: string }, b: { sort: number; key: string }): number =>
    (a.sort - b.sort || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)) * (query.order === "desc" ? -1 : 1);
  return entries
    .filter((entry) => owner === undefined || entry.owner === owner)
    .filter((entry) => tags === undefined || tags.includes(entry.tag))
    .filter((entry) => entry.sort >= from && entry.sort <= to)
    .filter((entry) => after === undefined || order(entry, after) > 0)
    .sort(order)
    .slice(0, query.limit)
    .map(({ key }) => key);
}
