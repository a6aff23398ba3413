import { expect, it } from "vitest";
import type { TableDocs, TableName } from "../govern/port/tables.ts";
import { MemoryStore } from "./memory/store.ts";
import { confinedStore } from "./tenant-store.ts";

/** What units look up by an id that a caller gave, each with the members that say whose it is. */
const THEIRS = {
  runs: { run_id: "theirs", tenant: "globex" },
  approvals: { tenant: "globex" },
  plans: { run_id: "theirs" },
} as unknown as { runs: TableDocs["runs"]; approvals: TableDocs["approvals"]; plans: TableDocs["plans"] };
const TABLES = Object.keys(THEIRS) as (keyof typeof THEIRS)[];

/** An operation reads before its unit runs; the unit's own reads have to be confined, too. */
it("hides another tenant's documents from a unit, and lets nothing overwrite them", async () => {
  const store = new MemoryStore();
  const key = "theirs";
  await store.transact({
    run(tx) {
      for (const table of TABLES) tx.put(table, key, THEIRS[table]);
    },
  });
  const found = (tenant: string, table: TableName) =>
    confinedStore(store, tenant).transact({ run: (tx) => tx.get(table, key) !== undefined });
  for (const table of TABLES) {
    expect([table, await found("acme", table), await found("globex", table)]).toEqual([table, false, true]);
    const over = confinedStore(store, "acme").transact({
      run(tx) {
        tx.get(table, key);
        tx.put(table, key, THEIRS[table]);
      },
    });
    await expect(over).rejects.toThrow("theirs is taken");
  }
});
