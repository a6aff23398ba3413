/** Somebody at the medium: the database refuses what it can, and the rest is found out. */
import { describe, expect, it } from "vitest";
import type { StoreKind } from "../../src/store/open.ts";
import { countTrials } from "../support/trials.ts";
import { expectWhole, firstBad } from "./chain.ts";
import { append, put } from "./samples.ts";
import type { Bench } from "./store.ts";

/** Where the medium is a database. */
function sqlDamage(bench: Bench): void {
  it("by SQL is refused: ledger is append-only", async () => {
    const place = await bench.place();
    const store = await place.open();
    for (let i = 0; i < 3; i++) await append(store);
    const before = await store.records({ limit: 9 });
    for (const statement of place.sql!.forbidden) {
      await expect(place.sql!.run(statement), statement).rejects.toThrow(/ledger is append-only/);
    }
    expect(await store.records({ limit: 9 })).toEqual(before);
    expect((await append(store)).seq).toBe(3);
    await expectWhole(store);
  });

  it("by a second record at the same place or behind the same one is refused", async () => {
    const place = await bench.place();
    const store = await place.open();
    for (let i = 0; i < 3; i++) await append(store);
    const columns = Object.keys((await place.sql!.run("SELECT * FROM svc_ledger WHERE seq = 0"))[0]!);
    const copy = (seq: string, prev: string): string => {
      const values = columns.map((name) => (name === "seq" ? seq : name === "prev" ? prev : name)).join(", ");
      return `INSERT INTO svc_ledger (${columns.join(", ")}) SELECT ${values} FROM svc_ledger WHERE seq = 0`;
    };
    await expect(place.sql!.run(copy("1", "'x'"))).rejects.toThrow(/unique|append-only/i);
    await expect(place.sql!.run(copy("77", "prev"))).rejects.toThrow(/unique/i);
    expect(await expectWhole(store)).toHaveLength(3);
  });
}

export function damageTests(bench: Bench, sql: boolean): void {
  describe("damage", () => {
    if (sql) sqlDamage(bench);

    const forge = (line: string): string => line.replace('"actor":"bot"', '"actor":"b0t"');

    it("to the last record stops appends and readiness; reading still works", async () => {
      const place = await bench.place();
      const first = await place.open();
      for (let i = 0; i < 5; i++) await append(first);
      await put(first, "meta", { a: 1 });
      await first.close();
      await place.tamper(4, forge);

      const store = await place.open();
      await expect(append(store)).rejects.toMatchObject({ code: "corrupt" });
      await expect(store.ready()).rejects.toMatchObject({ code: "corrupt" });
      await expect(put(store, "meta", { a: 2 })).rejects.toMatchObject({ code: "corrupt" });
      expect(await store.get("meta", "a")).toBe(1);
      const lines = await store.records({ limit: 9 });
      expect(lines).toHaveLength(5);
      expect(firstBad(lines)).toBe(4);
      countTrials(store.kind as StoreKind, "rot in the last record", 1);
    });

    it("to a record in the middle is located by reading the records", async () => {
      const place = await bench.place();
      const first = await place.open();
      for (let i = 0; i < 9; i++) await append(first);
      await first.close();
      await place.tamper(3, forge);
      const store = await place.open();
      expect(firstBad(await store.records({ limit: 99 }))).toBe(3);
      countTrials(store.kind as StoreKind, "rot in the middle", 1);
    });
  });
}
