/** Stores for histories: one place for many of them, left for a fresh one now and then. */
import type { StateStore } from "../../src/govern/port/store.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { openStore, type StoreKind } from "../../src/store/open.ts";
import { firstBad } from "../../test/support/first-bad.ts";
import type { OwnedPlace, Places } from "../fault/places.ts";
import type { Handle } from "./service.ts";

export type SimStore = StoreKind | "memory";

export interface SimPlace extends Handle {
  /** The first record that does not verify, or -1; then everything goes. */
  close(): Promise<number>;
}

export async function openPlace(kind: SimStore, places: Places): Promise<SimPlace> {
  if (kind === "memory") return memoryPlace();
  const place: OwnedPlace = await places.make(kind);
  const open = (): Promise<StateStore> => openStore({ ...place, warn: () => {} });
  let store = await open();
  const left: StateStore[] = [];
  return {
    store: () => store,
    async crash() {
      // Others may be in the middle of something on the old handle: it is let go at the end.
      left.push(store);
      store = await open();
    },
    async close() {
      const bad = await check(store);
      for (const one of [store, ...left]) await one.close();
      await place.dispose();
      return bad;
    },
  };
}

function memoryPlace(): SimPlace {
  const store = new MemoryStore();
  return { store: () => store, crash: async () => {}, close: () => check(store) };
}

async function check(store: StateStore): Promise<number> {
  return firstBad(await store.records({ limit: Number.MAX_SAFE_INTEGER }));
}
