/** Documents return as they were put, with any content and any key. */
import { describe, expect, it } from "vitest";
import { TABLE_NAMES, type TableDocs, type TableName } from "../../src/govern/port/tables.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { append, approvalDoc, draft, put, remove, stepDoc } from "./samples.ts";
import type { Bench } from "./store.ts";

const VALUES: Record<string, JsonValue> = {
  text: "plain",
  empty: "",
  quotes: `"double" 'single' \\back\\ {brace} (paren), comma`,
  lines: "a\r\nb\tc",
  control: "\u0000\u0001\u001f\u007f",
  unicode: "Grüße, 日本語, עברית, 🦊🏽, e\u0301, \u2028\u2029\ufeff",
  escapes: "\\u0000 \\n %s $1 :name ?",
  numbers: [0, -1, 0.1, 1e21, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740991, -9007199254740991],
  nothing: null,
  yes: true,
  nested: { "": { a: [[], {}, [null]] }, "key with spaces": 1, ключ: "значение" },
  ordered: { z: 1, a: 2, "10": 3, "9": 4 },
};

export function documentTests(bench: Bench): void {
  describe("documents", () => {
    it("come back as they were put", async () => {
      const store = await bench.open();
      await put(store, "meta", VALUES);
      for (const [key, value] of Object.entries(VALUES)) {
        const found = await store.get("meta", key);
        expect(JSON.stringify(found), key).toBe(JSON.stringify(value));
        const inside = await store.transact({ run: (tx) => JSON.stringify(tx.get("meta", key)) });
        expect(inside, key).toBe(JSON.stringify(value));
      }
      expect((await store.list("meta", { limit: 100 })).map(({ key }) => key)).toEqual(
        Object.keys(VALUES).sort(),
      );
    });

    it("may have any key, owner and tag", async () => {
      const store = await bench.open();
      const names = Object.values(VALUES).filter((value): value is string => typeof value === "string");
      await store.transact({
        run: (tx) => {
          for (const name of names) tx.put("approvals", name, approvalDoc({ id: name, run_id: name }));
          for (const name of names)
            tx.put("run_tools", name, { run_id: "r", tool: name, calls: 1, standing: 0 });
          for (const name of names) tx.append(draft({ actor: name, run_id: name, tool: name }));
        },
      });
      for (const name of names) {
        expect((await store.get("approvals", name))?.id, name).toBe(name);
        expect(
          (await store.list("approvals", { owner: name, limit: 9 })).map(({ key }) => key),
          name,
        ).toEqual([name]);
        expect(
          (await store.list("run_tools", { tag: name, limit: 9 })).map(({ key }) => key),
          name,
        ).toEqual([name]);
        expect(await store.count("run_tools", { owner: "r", tag: name }), name).toBe(1);
        expect(await store.records({ actor: name, run_id: name, tool: name, limit: 9 }), name).toHaveLength(
          1,
        );
      }
      await Promise.all(names.map((name) => remove(store, "approvals", name)));
      expect(await store.count("approvals")).toBe(0);
    });

    it("may be a megabyte long, several at a time", async () => {
      const store = await bench.open();
      const large = "x".repeat(1_048_576 - 10);
      const wide = "ü".repeat(500_000);
      await Promise.all([
        ...Array.from({ length: 8 }, (_, i) => put(store, "meta", { [`large-${i}`]: large + i })),
        put(store, "meta", { wide }),
      ]);
      expect(await store.get("meta", "large-7")).toBe(`${large}7`);
      expect(await store.transact({ run: (tx) => (tx.get("meta", "wide") as string).length })).toBe(500_000);
      await put(store, "meta", { wide: "short" });
      expect(await store.get("meta", "wide")).toBe("short");
    });

    it("are separate in each table", async () => {
      const store = await bench.open();
      const plain = TABLE_NAMES.filter((name) =>
        ["meta", "payloads", "manifests", "counters", "leases"].includes(name),
      );
      await store.transact({
        run: (tx) => {
          for (const table of plain) tx.put(table, "same", { table } as unknown as TableDocs[TableName]);
        },
      });
      for (const table of plain) expect(await store.get(table, "same")).toEqual({ table });
      await remove(store, "meta", "same");
      expect(await Promise.all(plain.map((table) => store.count(table)))).toEqual(
        plain.map((table) => (table === "meta" ? 0 : 1)),
      );
    });

    it("can be deleted when they are not there, and put again", async () => {
      const store = await bench.open();
      await remove(store, "meta", "ghost");
      await put(store, "meta", { ghost: 1 });
      await remove(store, "meta", "ghost");
      expect(await store.get("meta", "ghost")).toBeUndefined();
      await put(store, "meta", { ghost: 2 });
      expect(await store.get("meta", "ghost")).toBe(2);
    });

    it("are replaced by units that have not read them, and by a batch that adds others", async () => {
      const store = await bench.open();
      for (const handle of ["first", "second"]) {
        await Promise.all([
          put(store, "steps", { "run_1/0": stepDoc({ handle }) }),
          put(store, "payloads", { "run_1/0": { args: handle, refs: {} } }),
          put(store, "steps", { [`run_1/${handle.length}`]: stepDoc({ handle, step: handle.length }) }),
          append(store),
        ]);
      }
      expect((await store.get("steps", "run_1/0"))?.handle).toBe("second");
      expect((await store.get("payloads", "run_1/0"))?.args).toBe("second");
      expect(await store.count("steps", { owner: "run_1" })).toBe(3);
      expect((await store.head()).records).toBe(2);
    });

    it("are there for every read as soon as the unit is answered", async () => {
      const store = await bench.open();
      for (let i = 0; i < 50; i++) {
        await put(store, "approvals", { a: approvalDoc({ requested_ms: i }) });
        const { seq } = await append(store);
        const [doc, rows, count, head, lines] = await Promise.all([
          store.get("approvals", "a"),
          store.list("approvals", { from: i, limit: 1 }),
          store.count("approvals"),
          store.head(),
          store.records({ from: seq, limit: 1 }),
        ]);
        expect([doc?.requested_ms, rows[0]?.sort, count, head.records, lines.length]).toEqual([
          i,
          i,
          1,
          seq + 1,
          1,
        ]);
      }
    });
  });
}
