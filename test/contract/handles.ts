/** Several handles on one place: reopening, and working side by side. */
import { describe, expect, it } from "vitest";
import { expectWhole } from "./chain.ts";
import { append, approvalDoc, draft, increment, put, remove, stepDoc, T0 } from "./samples.ts";
import type { Bench } from "./store.ts";

export function handleTests(bench: Bench): void {
  describe("several handles", () => {
    it("find everything again after closing", async () => {
      const place = await bench.place();
      const first = await place.open();
      await put(first, "meta", { a: { deep: [1, "ü"] }, b: 1, c: 2 });
      await put(first, "steps", { s: stepDoc({ status: "uncertain" }) });
      await remove(first, "meta", "b");
      for (let i = 0; i < 30; i++) await append(first, { ts_ms: T0 + i, run_id: `r${i % 3}` });
      const head = await first.head();
      const lines = await first.records({ limit: 100 });
      await first.close();

      const second = await place.open();
      expect(await second.head()).toEqual(head);
      expect(await second.records({ limit: 100 })).toEqual(lines);
      expect(await second.get("meta", "a")).toEqual({ deep: [1, "ü"] });
      expect((await second.list("meta", { limit: 9 })).map(({ key }) => key)).toEqual(["a", "c"]);
      expect(await second.count("steps", { tag: "uncertain" })).toBe(1);
      expect(await second.records({ run_id: "r1", limit: 100 })).toHaveLength(10);
      expect((await append(second)).seq).toBe(30);
      await expectWhole(second);
    });

    it("can be opened again and again, at once, on a new place and on an old one", async () => {
      const place = await bench.place();
      const fresh = await Promise.all([place.open(), place.open(), place.open()]);
      await Promise.all(fresh.map((store, i) => append(store, { run_id: `fresh-${i}` })));
      const again = await Promise.all([place.open(), place.open()]);
      await Promise.all(again.map((store, i) => append(store, { run_id: `again-${i}` })));
      for (const store of [...fresh, ...again]) expect(await expectWhole(store)).toHaveLength(5);
    });

    it("see each other's commits at once, in reads and in units", async () => {
      const place = await bench.place();
      const [one, two] = [await place.open(), await place.open()];
      for (let i = 0; i < 40; i++) {
        const [writer, reader] = i % 2 === 0 ? [one, two] : [two, one];
        const n = await writer.transact({
          run: (tx) => {
            tx.append(draft({ run_seq: i }));
            tx.put("steps", `s/${i}`, stepDoc({ step: i }));
            return increment(tx, "n");
          },
        });
        expect(n).toBe(i + 1);
        expect(await reader.get("meta", "n")).toBe(n);
        expect((await reader.head()).records).toBe(n);
        expect(await reader.count("steps")).toBe(n);
        expect(await reader.transact({ run: (tx) => [tx.get("meta", "n"), tx.head.records] })).toEqual([
          n,
          n,
        ]);
      }
      expect(await expectWhole(one)).toHaveLength(40);
    });

    it("interleave under load without a gap, a fork or a lost update", async () => {
      const place = await bench.place();
      const stores = await Promise.all([place.open(), place.open(), place.open()]);
      const write = async (handle: number): Promise<void> => {
        for (let i = 0; i < 60; i++) {
          await stores[handle]!.transact({
            needs: [["meta", "n"]],
            run: (tx) => {
              tx.append(draft({ actor: `h${handle}`, run_seq: i }));
              increment(tx, "n");
            },
          });
        }
      };
      await Promise.all([0, 1, 2, 0, 1, 2].map(write));
      for (const store of stores) {
        expect(await store.get("meta", "n")).toBe(360);
        expect(await expectWhole(store)).toHaveLength(360);
      }
    });

    it("use an approval once, however many try", async () => {
      const place = await bench.place();
      const stores = await Promise.all([place.open(), place.open()]);
      await put(stores[0]!, "approvals", { a: approvalDoc({ status: "approved" }) });
      const wins = await Promise.all(
        Array.from({ length: 64 }, (_, i) =>
          stores[i % 2]!.transact({
            run: (tx) => {
              const approval = tx.get("approvals", "a")!;
              if (approval.status !== "approved") return false;
              tx.put("approvals", "a", { ...approval, status: "consumed" });
              tx.append(draft({ run_id: `claim-${i}` }));
              return true;
            },
          }),
        ),
      );
      expect(wins.filter(Boolean)).toHaveLength(1);
      expect(await expectWhole(stores[1]!)).toHaveLength(1);
    });

    it("wake each other", async () => {
      const place = await bench.place();
      const [one, two] = [await place.open(), await place.open()];
      const { signal } = new AbortController();
      for (let i = 0; i < 5; i++) {
        const [writer, waiter] = i % 2 === 0 ? [one, two] : [two, one];
        const seen = (async () => {
          // A caller that reads first and waits afterwards misses the changes in between.
          for (let change = waiter.changed(signal); (await waiter.get("meta", "i")) !== i; ) {
            await change;
            change = waiter.changed(signal);
          }
        })();
        await put(writer, "meta", { i });
        await seen;
      }
    });

    it("wake each other, also when somebody else has taken the news in before", async () => {
      const place = await bench.place();
      const [writer, reader] = [await place.open(), await place.open()];
      const woken = reader.changed(new AbortController().signal);
      await put(writer, "meta", { i: 1 });
      expect(await reader.get("meta", "i")).toBe(1);
      await woken;
    });

    it("continue when another one closes", async () => {
      const place = await bench.place();
      const [one, two] = [await place.open(), await place.open()];
      await append(one);
      await append(two);
      await one.close();
      expect((await append(two)).seq).toBe(2);
      expect(await expectWhole(two)).toHaveLength(3);
    });
  });
}
