/** Thousands of reads in a row, on a store that answers from memory: others get their turns in between. */
import { expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { openStore } from "../open.ts";
import { ReadPacer } from "./read-pacer.ts";

/** The turns of the event loop that begin while the work is under way. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let over = false;
  const count = () => {
    turns++;
    if (!over) setImmediate(count);
  };
  setImmediate(count);
  await work();
  over = true;
  return turns;
}

it.each(["files", "sqlite"] as const)("gives others a turn between reads of the %s store", async (kind) => {
  verifies("beyond.heavy.reads");
  const data = tempDir("paced");
  const store = await openStore({ store: kind, data, database_url: null, warn: () => {} });
  onTestFinished(() => store.close());
  await store.transact({ run: (tx) => tx.put("meta", "there", { n: 1 }) });
  const turns = await turnsDuring(async () => {
    for (let i = 0; i < 10_000; i++) await store.get("meta", "there");
  });
  expect(turns).toBeGreaterThanOrEqual(19);
  const listing = await turnsDuring(async () => {
    for (let i = 0; i < 2_000; i++) await store.list("meta", { limit: 10 });
  });
  expect(listing).toBeGreaterThanOrEqual(7);
});

it("counts the documents that a search compares, also those that it does not find", async () => {
  verifies("beyond.heavy.reads");
  const store = await openStore({
    store: "files",
    data: tempDir("searched"),
    database_url: null,
    warn: () => {},
  });
  onTestFinished(() => store.close());
  await store.transact({
    run: (tx) => {
      for (let i = 0; i < 5_000; i++)
        tx.put("value_feeds", `r/${i}`, { run_id: "r", step: i, to: [], via: [] } as never);
    },
  });
  const turns = await turnsDuring(async () => {
    for (let i = 0; i < 100; i++) await store.list("value_feeds", { owner: "other", limit: 10 });
  });
  expect(turns).toBeGreaterThanOrEqual(19);
});

it("answers a turn's reads at once, and counts rows as reads", async () => {
  const pacer = new ReadPacer();
  expect(Array.from({ length: 499 }, () => pacer.spend(1)).every((turn) => turn === undefined)).toBe(true);
  await pacer.spend(1);
  expect(pacer.spend(499)).toBeUndefined();
  expect(pacer.spend(1)).toBeInstanceOf(Promise);
});
