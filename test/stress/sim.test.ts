/** The simulation on a few histories, and on a service with a fault planted in it, which it must find. */
import { describe, expect, it } from "vitest";
import type { StateStore, StoreTx, UnitOfWork } from "../../src/govern/port/store.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { openStore } from "../../src/store/open.ts";
import { type Action, makeHistory } from "../../stress/sim/actions.ts";
import { ForeignHistory } from "../../stress/sim/foreign.ts";
import { least, play } from "../../stress/sim/play.ts";
import type { Handle } from "../../stress/sim/service.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const still = (store: StateStore): Handle => ({ store: () => store, crash: async () => {} });

/** A store that forgets one table whenever it is asked inside a unit. */
function forgetful(table: string): StateStore {
  const store = new MemoryStore();
  const veil = (tx: StoreTx): StoreTx =>
    new Proxy(tx, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (name !== "get" || typeof member !== "function") {
          return typeof member === "function" ? member.bind(target) : member;
        }
        return (asked: string, key: string) =>
          asked === table ? undefined : member.call(target, asked, key);
      },
    });
  const { transact } = store;
  store.transact = <T>(unit: UnitOfWork<T>) =>
    transact.call(store, { run: (tx) => unit.run(veil(tx)) }) as Promise<T>;
  return store;
}

describe("a history", () => {
  it("continues on the service as on the model, from 400 seeds", async () => {
    for (let seed = 1; seed <= 400; seed++) {
      const found = await play(makeHistory(seed), `h${seed}`, seed, still(new MemoryStore()));
      expect(found, `seed ${seed}`).toBeUndefined();
    }
  });

  it.each(["files", "sqlite", "postgres"] as const)(
    "goes the same on %s, side by side with others",
    async (kind) => {
      const database = kind === "postgres" ? await freshDatabase() : null;
      const settings = { store: kind, data: tempDir(), database_url: database?.url ?? null, warn: () => {} };
      const handles: StateStore[] = [await openStore(settings)];
      const handle: Handle = {
        store: () => handles.at(-1)!,
        crash: async () => {
          handles.push(await openStore(settings));
        },
      };
      const seeds = Array.from({ length: 10 }, (_, i) => i + 1);
      const found = await Promise.all(seeds.map((seed) => play(makeHistory(seed), `h${seed}`, seed, handle)));
      expect(found).toEqual(seeds.map(() => undefined));
      for (const store of handles) await store.close();
      await database?.drop();
    },
  );

  it("with a foreign writer loses none of its writes to an undo, from 60 seeds", async () => {
    verifies("beyond.conflict.never-lost");
    const counts = { writes: 0, undone: 0, conflicts: 0 };
    for (let seed = 1; seed <= 60; seed++) {
      const one = new ForeignHistory(seed);
      await one.play();
      expect(one.problems, `seed ${seed}`).toEqual([]);
      for (const name of ["writes", "undone", "conflicts"] as const) counts[name] += one.counts[name];
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(60);
  });

  it.each([
    ["halts", ["halt", "ask"]],
    ["approval_slots", ["ask", "ask"]],
    ["counters", ["ask", "ask"]],
    ["idempotency", ["ask", "ask"]],
    ["grant_buckets", ["grant", "ask"]],
  ])("shows a service that forgets its %s, and the least that shows it", async (table, telling) => {
    const again = (actions: readonly Action[]) => play(actions, "x", 1, still(forgetful(table)));
    for (let seed = 1; ; seed++) {
      const found = await again(makeHistory(seed));
      if (found === undefined) continue;
      const { trace } = await least(found, again);
      // To follow a plan is to ask for its next call.
      const kinds = trace.map((action) => (action.do === "follow" ? "ask" : action.do));
      expect(kinds[0]).toBe("open");
      for (const kind of telling) expect(kinds).toContain(kind);
      expect(kinds.length).toBeLessThanOrEqual(10);
      return;
    }
  });
});
