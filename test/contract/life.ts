/** Being woken, being ready, being scrubbed and being closed. */
import { describe, expect, it } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { append, put, remove } from "./samples.ts";
import type { Bench } from "./store.ts";

export function lifeTests(bench: Bench): void {
  describe("changed", () => {
    it("wakes everybody who waits when a record or a document changes", async () => {
      const store = await bench.open();
      const { signal } = new AbortController();
      for (const change of [
        () => append(store),
        () => put(store, "meta", { a: 1 }),
        () => remove(store, "meta", "a"),
      ]) {
        const woken = Promise.all([store.changed(signal), store.changed(signal), store.changed(signal)]);
        await change();
        await woken;
      }
    });

    it("shows the change to a reader that it woke", async () => {
      const store = await bench.open();
      const seen = store.changed(new AbortController().signal).then(() => store.get("meta", "a"));
      await put(store, "meta", { a: "new" });
      expect(await seen).toBe("new");
    });

    it("ends when the signal aborts, also one that has", async () => {
      const store = await bench.open();
      const controller = new AbortController();
      const waiting = store.changed(controller.signal);
      controller.abort();
      await waiting;
      await store.changed(controller.signal);
    });
  });

  describe("life", () => {
    it("is ready when records can be written, and writes none to find out", async () => {
      const store = await bench.open();
      await append(store);
      await Promise.all([store.ready(), store.ready()]);
      expect((await store.head()).records).toBe(1);
    });

    it("can be scrubbed at any time, and keeps what was not deleted", async () => {
      const store = await bench.open();
      await store.scrub();
      await put(store, "meta", { gone: "x".repeat(10_000), kept: 1 });
      await append(store);
      await remove(store, "meta", "gone");
      await Promise.all([store.scrub(), put(store, "meta", { during: 2 })]);
      expect(await store.get("meta", "gone")).toBeUndefined();
      expect(await store.get("meta", "kept")).toBe(1);
      expect(await store.get("meta", "during")).toBe(2);
      expect((await store.head()).records).toBe(1);
    });

    it("finishes what is under way when it is closed", async () => {
      const store = await bench.open();
      const underWay = Array.from({ length: 20 }, () => append(store));
      const closing = store.close();
      expect((await Promise.all(underWay)).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 20 }, (_, i) => i),
      );
      await closing;
    });

    it("refuses everything once it is closed, and may be closed again", async () => {
      const store = await bench.open();
      await append(store);
      const waiting = store.changed(new AbortController().signal);
      await store.close();
      await store.close();
      await waiting;
      const calls: Record<string, (store: StateStore) => Promise<unknown>> = {
        transact: (s) => append(s),
        get: (s) => s.get("meta", "a"),
        list: (s) => s.list("meta", { limit: 1 }),
        count: (s) => s.count("meta"),
        records: (s) => s.records({ limit: 1 }),
        head: (s) => s.head(),
        ready: (s) => s.ready(),
        changed: (s) => s.changed(AbortSignal.timeout(1_000)),
      };
      for (const [name, call] of Object.entries(calls)) {
        await expect(call(store), name).rejects.toMatchObject({ code: "unavailable" });
      }
    });
  });
}
