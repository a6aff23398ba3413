/** Several processes on one place: real ones, started with node. */
import { afterEach, describe, expect, it } from "vitest";
import { until } from "../support/until.ts";
import { expectWhole } from "./chain.ts";
import type { PlaceSettings } from "./place.ts";
import { append, approvalDoc, put } from "./samples.ts";
import type { Bench } from "./store.ts";
import { StoreProcess } from "./worker-client.ts";

export function processTests(bench: Bench): void {
  describe("several processes", () => {
    const running: StoreProcess[] = [];
    afterEach(async () => {
      for (const process of running.splice(0)) await process.kill();
    });
    const start = async (count: number, settings: PlaceSettings | undefined): Promise<StoreProcess[]> => {
      const started = await StoreProcess.start(count, settings!);
      running.push(...started);
      return started;
    };

    it("open a new place at the same time and interleave without a gap, a fork or a lost update", async () => {
      const place = await bench.place();
      const processes = await start(3, place.settings);
      const store = await place.open();
      const own = (async () => {
        for (let i = 0; i < 50; i++) await append(store, { actor: "here" });
      })();
      const seqs = await Promise.all(
        processes.map((p, i) => p.ask("append", { count: 100, label: `p${i}` })),
      );
      await own;
      const records = await expectWhole(store);
      expect(records).toHaveLength(350);
      expect(await store.get("meta", "shared")).toBe(300);
      seqs.forEach((positions, i) => {
        const mine = records.filter(({ actor }) => actor === `p${i}`).map(({ seq }) => seq);
        expect(positions).toEqual(mine);
      });
      const heads = await Promise.all(processes.map((process) => process.ask("head")));
      const { hash } = await store.head();
      expect(heads).toEqual(processes.map(() => ({ records: 350, hash })));
    });

    it("use each approval exactly once, however many race for it", async () => {
      const place = await bench.place();
      const store = await place.open();
      const keys = Array.from({ length: 15 }, (_, i) => `apr_${i}`);
      await put(
        store,
        "approvals",
        Object.fromEntries(keys.map((id) => [id, approvalDoc({ id, status: "approved" })])),
      );
      const processes = await start(4, place.settings);
      for (const key of keys) {
        const wins = await Promise.all(
          processes.map((process, i) => process.ask("claim", { key, label: `p${i}`, attempts: 16 })),
        );
        expect(wins.reduce((sum, won) => sum + won, 0)).toBe(1);
      }
      expect((await expectWhole(store)).map(({ run_id }) => run_id)).toEqual(keys);
      expect(await store.count("approvals", { tag: "consumed" })).toBe(15);
    });

    it("wake each other", async () => {
      const place = await bench.place();
      const store = await place.open();
      const [other] = await start(1, place.settings);
      const heard = store.changed(new AbortController().signal);
      await other!.ask("append", { count: 1, label: "other" });
      await heard;

      // The other process says when it was woken, not when it began to wait; so write until it was.
      let woken = false;
      const waiting = other!.ask("changed").then(() => {
        woken = true;
      });
      await until(async () => {
        await append(store);
        return woken;
      }, "the other process to be woken");
      await waiting;
    });

    it("continue when one of them is killed while it writes", async () => {
      const place = await bench.place();
      const store = await place.open();
      const [doomed] = await start(1, place.settings);
      void doomed!.ask("load", { writers: 8, label: "doomed" }).catch(() => {});
      await doomed!.acked(20);
      await doomed!.kill();
      await append(store, { run_id: "after" });
      const records = await expectWhole(store);
      for (const { seq, hash } of doomed!.acks) expect(records[seq]!.hash).toBe(hash);
    });
  });
}
