/**
 * The store contract: one suite that every store runs, with a test for each sentence of
 * src/govern/port/store.ts. Traits name the abilities that only some stores have (outlive the process, speak SQL).
 */
import { afterEach, describe } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { crashTests } from "./crash.ts";
import { damageTests } from "./damage.ts";
import { documentTests } from "./documents.ts";
import { handleTests } from "./handles.ts";
import { lifeTests } from "./life.ts";
import { listTests } from "./lists.ts";
import type { MakePlace, Place } from "./place.ts";
import { processTests } from "./processes.ts";
import { recordTests } from "./records.ts";
import { unitTests } from "./units.ts";
import { unsyncedTests } from "./unsynced.ts";

export interface StoreTraits {
  /** The data outlive the handle, and other processes can open them. */
  durable: boolean;
  /** There is a database underneath that somebody could write to directly. */
  sql: boolean;
}

/** What the parts of the suite work with: fresh places, cleared away after each test. */
export interface Bench {
  place(): Promise<Place>;
  /** A store on a fresh place, where one handle is enough. */
  open(): Promise<StateStore>;
}

export function describeStore(name: string, makePlace: MakePlace, traits: StoreTraits): void {
  describe(`the ${name} store`, () => {
    const places: Place[] = [];
    const bench: Bench = {
      async place() {
        const place = await makePlace();
        places.push(place);
        return place;
      },
      open: async () => (await bench.place()).open(),
    };
    afterEach(async () => {
      for (const place of places.splice(0)) await place.dispose();
    });

    unitTests(bench);
    documentTests(bench);
    listTests(bench);
    recordTests(bench);
    lifeTests(bench);
    if (!traits.durable) return;
    handleTests(bench);
    unsyncedTests(bench);
    processTests(bench);
    crashTests(bench);
    damageTests(bench, traits.sql);
  });
}
