/** Units of work: what they see, what they leave, and in which order. */
import { describe, expect, it } from "vitest";
import { expectWhole, firstBad } from "./chain.ts";
import { append, draft, increment, put, T0 } from "./samples.ts";
import type { Bench } from "./store.ts";

export function unitTests(bench: Bench): void {
  describe("units", () => {
    it("answers with what the unit returned", async () => {
      const store = await bench.open();
      expect(await store.transact({ run: () => "value" })).toBe("value");
      expect(await store.transact({ run: () => undefined })).toBeUndefined();
    });

    it("starts a chain at 64 zeros and links each record to the one before", async () => {
      const store = await bench.open();
      const first = await append(store);
      const second = await append(store, {
        event: "succeeded",
        run_id: "r",
        run_seq: 0,
        step: 3,
        tool: "a.b",
      });
      expect(first).toMatchObject({ seq: 0, prev: "0".repeat(64) });
      expect(second).toMatchObject({ seq: 1, prev: first.hash });
      const lines = await store.records({ limit: 10 });
      expect(firstBad(lines)).toBe(-1);
      expect(JSON.parse(lines[1]!)).toEqual(second);
    });

    it("runs units that arrive together in the order they came, each seeing those before it", async () => {
      const store = await bench.open();
      const numbers = await Promise.all(
        Array.from({ length: 300 }, (_, i) =>
          store.transact({
            run: (tx) => {
              const { records } = tx.head;
              const { seq } = tx.append(draft({ run_id: `r${i}` }));
              expect(seq).toBe(records);
              return [seq, increment(tx, "n")];
            },
          }),
        ),
      );
      expect(numbers).toEqual(Array.from({ length: 300 }, (_, i) => [i, i + 1]));
      expect(await store.get("meta", "n")).toBe(300);
      expect((await expectWhole(store)).map(({ run_id }) => run_id)).toEqual(numbers.map((_, i) => `r${i}`));
    });

    it("shows a unit its own puts, deletes and records", async () => {
      const store = await bench.open();
      await put(store, "meta", { old: 1 });
      await store.transact({
        run: (tx) => {
          expect(tx.get("meta", "old")).toBe(1);
          tx.put("meta", "old", 2);
          expect(tx.get("meta", "old")).toBe(2);
          tx.delete("meta", "old");
          expect(tx.get("meta", "old")).toBeUndefined();
          tx.put("meta", "new", 3);
          expect(tx.get("meta", "new")).toBe(3);
          const { hash } = tx.append(draft());
          expect(tx.head).toEqual({ records: 1, hash });
        },
      });
      expect(await store.get("meta", "old")).toBeUndefined();
      expect(await store.get("meta", "new")).toBe(3);
    });

    it("leaves nothing of a unit that throws, rejects with its error, and runs its neighbours", async () => {
      const store = await bench.open();
      await put(store, "meta", { kept: "before" });
      const problem = new Error("no");
      const outcomes = await Promise.allSettled([
        append(store, { run_id: "first" }),
        store.transact({
          run: (tx) => {
            tx.put("meta", "kept", "after");
            tx.put("meta", "made", true);
            tx.delete("meta", "kept");
            tx.append(draft({ run_id: "never" }));
            throw problem;
          },
        }),
        store.transact({ run: (tx) => [tx.get("meta", "kept"), tx.get("meta", "made"), tx.head.records] }),
        append(store, { run_id: "last" }),
      ]);
      expect(outcomes.map(({ status }) => status)).toEqual([
        "fulfilled",
        "rejected",
        "fulfilled",
        "fulfilled",
      ]);
      expect((outcomes[1] as PromiseRejectedResult).reason).toBe(problem);
      expect((outcomes[2] as PromiseFulfilledResult<unknown>).value).toEqual(["before", undefined, 1]);
      expect((await expectWhole(store)).map(({ run_id }) => run_id)).toEqual(["first", "last"]);
    });

    it("needs no hints, and survives wrong ones", async () => {
      const store = await bench.open();
      await put(store, "meta", { a: "b", b: "c", c: "d", d: 42 });
      const follow = (tx: { get(table: "meta", key: string): unknown }): unknown => {
        let here: unknown = "a";
        while (typeof here === "string") here = tx.get("meta", here);
        return here;
      };
      const together = await Promise.all([
        store.transact({ run: follow }),
        store.transact({ needs: [["meta", "a"]], run: follow }),
        store.transact({
          needs: [
            ["runs", "none"],
            ["meta", "zzz"],
          ],
          run: follow,
        }),
        store.transact({
          needs: [
            ["meta", "c"],
            ["meta", "c"],
          ],
          run: follow,
        }),
        store.transact({ run: (tx) => [tx.get("meta", "nothing"), follow(tx), tx.get("runs", "a")] }),
      ]);
      expect(together).toEqual([42, 42, 42, 42, [undefined, 42, undefined]]);
    });

    it("keeps what earlier units did when a later one reads what nobody named", async () => {
      const store = await bench.open();
      await put(store, "meta", { hidden: 5 });
      const [, sum] = await Promise.all([
        store.transact({
          run: (tx) => {
            increment(tx, "n");
            tx.append(draft({ run_id: "one" }));
          },
        }),
        store.transact({
          run: (tx) => {
            tx.append(draft({ run_id: "two" }));
            return increment(tx, "n") + (tx.get("meta", "hidden") as number);
          },
        }),
      ]);
      expect(sum).toBe(7);
      expect((await expectWhole(store)).map(({ run_id }) => run_id)).toEqual(["one", "two"]);
    });

    it("lets a unit only look, without moving the head", async () => {
      const store = await bench.open();
      await append(store);
      const before = await store.head();
      expect(await store.transact({ run: (tx) => tx.head })).toEqual({ records: 1, hash: before.hash });
      expect(await store.head()).toEqual(before);
    });

    it("counts the records of each event", async () => {
      const store = await bench.open();
      expect(await store.head()).toEqual({ records: 0, hash: "0".repeat(64), events: {} });
      await append(store, { event: "intended" });
      await store.transact({
        run: (tx) => {
          tx.append(draft({ event: "succeeded", ts_ms: T0 + 1 }));
          tx.append(draft({ event: "intended", ts_ms: T0 + 2 }));
        },
      });
      expect((await store.head()).events).toEqual({ intended: 2, succeeded: 1 });
      await expectWhole(store);
    });

    it("takes many records and documents in one unit", async () => {
      const store = await bench.open();
      await store.transact({
        run: (tx) => {
          for (let i = 0; i < 2_000; i++) {
            tx.append(draft({ run_seq: i }));
            tx.put("meta", `key-${i}`, i);
          }
        },
      });
      expect(await store.count("meta")).toBe(2_000);
      const keys = Array.from({ length: 2_000 }, (_, i) => ["meta", `key-${i}`] as const);
      const sum = await store.transact({
        needs: keys,
        run: (tx) => keys.reduce((total, [table, key]) => total + (tx.get(table, key) as number), 0),
      });
      expect(sum).toBe((2_000 * 1_999) / 2);
      expect(await expectWhole(store)).toHaveLength(2_000);
    });
  });
}
