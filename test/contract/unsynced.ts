/** Between being written and being durable: a power cut could still take it, so nobody is shown it. */
import { describe, expect, it } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { conflictError } from "../../src/kernel/errors.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { IndeterminateCommitError } from "../../src/store/indeterminate-commit.ts";
import { append, approvalDoc, draft, put } from "./samples.ts";
import type { Bench } from "./store.ts";

/** Every way to find out about the unit below; true where it is seen. */
const LOOKS: Record<string, (store: StateStore) => Promise<boolean>> = {
  get: async (store) => (await store.get("approvals", "a"))?.status === "consumed",
  "get what is gone": async (store) => (await store.get("meta", "gone")) === undefined,
  list: async (store) => (await store.list("approvals", { tag: "consumed", limit: 9 })).length > 0,
  count: async (store) => (await store.count("approvals", { tag: "consumed" })) > 0,
  records: async (store) => (await store.records({ run_id: "r", limit: 9 })).length > 0,
  head: async (store) => (await store.head()).records > 0,
  "a unit that only looks": (store) => store.transact({ run: (tx) => tx.head.records > 0 }),
  "a unit that is refused for it": (store) =>
    store
      .transact({
        run: (tx) => {
          if (tx.get("approvals", "a")?.status === "consumed") throw conflictError("name_taken", "used");
          return false;
        },
      })
      .catch((error) => error.code === "conflict"),
};

/** As a stopped process: none of its timers runs in the meantime. */
const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const aWhile = () => new Promise((resolve) => setTimeout(resolve, 200));

export function unsyncedTests(bench: Bench): void {
  describe("what is not durable yet", () => {
    it("is shown by no kind of read and settles no unit, whichever handle is asked", async () => {
      const place = await bench.place();
      const held = await place.openHeld!();
      const [store] = held.stores;
      await put(store!, "approvals", { a: approvalDoc({ status: "approved" }) });
      await put(store!, "meta", { gone: 1 });
      await held.hold();
      let answered = false;
      const using = store!
        .transact({
          run: (tx) => {
            tx.put("approvals", "a", { ...tx.get("approvals", "a")!, status: "consumed" });
            tx.delete("meta", "gone");
            tx.append(draft({ run_id: "r" }));
          },
        })
        .finally(() => {
          answered = true;
        });
      await held.reached();
      const seen: string[] = [];
      const looks = held.stores.flatMap((handle, i) =>
        Object.entries(LOOKS).map(async ([name, look]) => {
          if (await look(handle)) seen.push(`${name}, handle ${i}`);
        }),
      );
      await aWhile();
      expect(seen).toEqual([]);
      expect(answered).toBe(false);
      await held.letGo();
      await Promise.all([using, ...looks]);
      for (const handle of held.stores)
        for (const [name, look] of Object.entries(LOOKS)) expect(await look(handle), name).toBe(true);
    });

    it("is not let out any more when nobody waits for it: refused plainly, nothing is left", async () => {
      const store = await bench.open();
      let left_ms = SERVICE_LIMITS.store_deadline_ms + 200;
      const late = store.transact({
        run: (tx) => {
          tx.put("meta", "late", 1);
          tx.append(draft({ run_id: "late" }));
          standStill(left_ms);
          left_ms = 0;
        },
      });
      const error = await late.catch((reason) => reason);
      expect(error).toMatchObject({ code: "unavailable" });
      expect(error).not.toBeInstanceOf(IndeterminateCommitError);
      while (!(await append(store, { run_id: "next" }).catch(() => undefined))) await aWhile();
      expect((await store.records({ limit: 9 })).map((line) => JSON.parse(line).run_id)).toEqual(["next"]);
      expect(await store.get("meta", "late")).toBeUndefined();
    });
  });
}
