/** Stores with a journal of an earlier format open, continue, and reach the current format. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { filesJobs } from "../files/jobs.ts";
import { openFilesStore } from "../files/store.ts";
import { sqliteJobs } from "../sqlite/jobs.ts";
import { openSqliteStore } from "../sqlite/store.ts";
import { encodeItem } from "./lines/block.ts";
import { parseJournal } from "./lines/parse-journal.ts";

type Row = Record<string, string | number>;
interface Written {
  files: Record<string, string>;
  sqlite: { version: number; ledger: Row[]; journal: Row[]; head: Row[] };
}

/** An intent and its outcome, as version 0.1.0 wrote them. */
const FIRST = JSON.parse(readFileSync(new URL("formats/1.json", import.meta.url), "utf8")) as Written;

const KINDS = {
  files: {
    open: (folder: string) =>
      openFilesStore(folder, () => {}, { helper: inlineHelper(() => filesJobs(folder)) }),
    put(folder: string): void {
      for (const [name, text] of Object.entries(FIRST.files)) writeFileSync(join(folder, name), text);
    },
    journal: (folder: string, generation: number) =>
      readFileSync(join(folder, `journal-${generation}.jsonl`), "utf8"),
  },
  sqlite: {
    open: (folder: string) =>
      openSqliteStore(folder, () => {}, { helper: inlineHelper(() => sqliteJobs(folder, 0)) }),
    put(folder: string): void {
      const db = new DatabaseSync(join(folder, "svc.db"));
      const { version, ledger, journal, head } = FIRST.sqlite;
      db.exec(`DELETE FROM head; PRAGMA user_version = ${version}`);
      for (const [table, rows] of Object.entries({ ledger, journal, head })) {
        for (const row of rows)
          db.prepare(`INSERT INTO ${table} VALUES (${Object.keys(row).map(() => "?")})`).run(
            ...Object.values(row),
          );
      }
      db.close();
    },
    journal(folder: string, generation: number): string {
      const db = new DatabaseSync(join(folder, "svc.db"));
      const rows = db.prepare("SELECT block FROM journal WHERE generation = ? ORDER BY n").all(generation);
      db.close();
      return rows.map((row: { block: string }) => row.block).join("");
    },
  },
};

const undone = async (store: StateStore, compensated_seq: number): Promise<void> =>
  store.transact({
    run: (tx) => {
      tx.append({ ts_ms: 1_700_000_000_003, event: "compensated", actor: "bot", run_id: "run_1" });
      tx.put("steps", "run_1/0", { ...tx.get("steps", "run_1/0")!, status: "compensated", compensated_seq });
    },
  });

const told = (journal: string): number[] =>
  journal
    .split("\n")
    .filter((line) => line.startsWith('["steps"'))
    .map((line) => JSON.parse(line).length);

describe.each(Object.entries(KINDS))("%s", (kind, { open, put, journal }) => {
  it("of the first format", async () => {
    const folder = join(tempDir(kind), "data");
    await (await open(folder)).close();
    put(folder);
    const store = await open(folder);
    expect(await store.get("steps", "run_1/0")).toMatchObject({ status: "succeeded", succeeded_seq: 1 });
    expect(await store.get("runs", "run_1")).toMatchObject({ reason: "ü", next_step: 2 });
    await undone(store, 2);
    // A process of the version that began a file journal can read it to its end.
    expect(told(journal(folder, 1))).toEqual([6, 6, kind === "files" ? 6 : 4]);
    await store.scrub();
    await undone(store, 3);
    await undone(store, 4);
    expect(told(journal(folder, 2))).toEqual([6, 4]);
    await store.close();
    const again = await open(folder);
    expect(await again.get("steps", "run_1/0")).toMatchObject({ tool: "crm.get", compensated_seq: 4 });
    expect((await again.head()).records).toBe(5);
    await again.close();
  });
});

it("a tenant's documents in a continued journal are found whole", async () => {
  const folder = join(tempDir("files"), "data");
  const append = (store: StateStore, ts_ms: number) =>
    store.transact({
      run: (tx) => void tx.append({ ts_ms, event: "halted", actor: "ann", tenant: "acme" }),
    });
  const before = await KINDS.files.open(folder);
  await append(before, 1);
  await before.close();
  // As the first versions wrote it: whose a record is they did not say.
  const file = join(folder, "journal-1.jsonl");
  let crc = 0;
  let text = "";
  for (const item of parseJournal(readFileSync(file), 0, 0).items) {
    const silent = item.kind === "unit" ? item.lines.map((line) => ({ ...line, tenant: null })) : [];
    const encoded = encodeItem(item.kind === "unit" ? { ...item, lines: silent } : item, crc);
    crc = encoded.crc;
    text += encoded.text;
  }
  expect(text).not.toContain("acme");
  writeFileSync(file, text);
  const store = await KINDS.files.open(folder);
  await append(store, 2);
  await store.scrub();
  const found = await store.records({ tenant: "acme", limit: 9 });
  expect(found.map((line) => JSON.parse(line).ts_ms)).toEqual([1, 2]);
  await store.close();
});

it("files of a format that is not known yet are left alone, and the message says why", async () => {
  const folder = join(tempDir("files"), "data");
  await (await KINDS.files.open(folder)).close();
  const head = { records: 0, hash: "0".repeat(64) };
  const later = encodeItem({ kind: "header", format: 3, generation: 1, head, size: 0 }, 0).text;
  writeFileSync(join(folder, "journal-1.jsonl"), later);
  await expect(KINDS.files.open(folder)).rejects.toThrow(/journal-1.jsonl was written by a newer svc/);
  expect(KINDS.files.journal(folder, 1)).toBe(later);
});
