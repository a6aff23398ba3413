/** After a purge and a scrub, a deleted value is in no file of the data folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { openFilesStore } from "../files/store.ts";
import { openSqliteStore } from "../sqlite/store.ts";

const CANARY = "canary-7c1f0e5a";

it.each([
  ["files", openFilesStore],
  ["sqlite", openSqliteStore],
] as const)("%s", async (kind, open) => {
  const folder = join(tempDir(kind), "data");
  const holders = (): string[] =>
    readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(CANARY));
  const store = await open(folder, () => {});
  // Some of it reaches the checkpoint, some only the journal; small, and spread over separate pages.
  for (let i = 0; i < 20; i++) {
    const text = `${CANARY} ${"x".repeat(i * 900)}`;
    await store.transact({ run: (tx) => tx.put("meta", `kept-${i}`, i) });
    await store.transact({ run: (tx) => tx.put("payloads", `p/${i}`, { refs: { "args.secret": text } }) });
    if (i === 10) await store.scrub();
  }
  expect(holders().length).toBeGreaterThan(0);
  await store.transact({
    run: (tx) => {
      for (let i = 0; i < 20; i++) tx.delete("payloads", `p/${i}`);
      tx.append({ ts_ms: 1, event: "purged", actor: "retention" });
    },
  });
  await store.scrub();
  expect(holders()).toEqual([]);
  expect(await store.count("payloads")).toBe(0);
  expect(await store.count("meta")).toBe(20);
  await store.close();
  expect(holders()).toEqual([]);
});
