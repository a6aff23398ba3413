import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { drafts, ledgerLines, ledgerText, storeOf } from "../../test/evidence/support/ledgers.ts";
import { leafOf, plainRoot } from "../../test/evidence/support/oracle.ts";
import { LEDGER_TAMPERS } from "../../test/evidence/support/tamper.ts";
import { seeded } from "../../test/support/env.ts";
import { tempDir, tempFile } from "../../test/support/tmp.ts";
import type { StateStore } from "../govern/port/store.ts";
import { verifyLedgerFile, verifyStoreLedger } from "./verify-ledger.ts";

const lines = ledgerLines(11, 300);
const head = (JSON.parse(lines.at(-1)!) as { hash: string }).hash;
const ledger = (text: string) => tempFile("ledger.jsonl", text);

describe("verifying a ledger file", () => {
  it("counts its records, and gives head and root", async () => {
    const path = ledger(ledgerText(lines));
    expect(await verifyLedgerFile(path, { tree: true })).toMatchObject({
      records: 300,
      head,
      first_bad: null,
      root: plainRoot(lines.map(leafOf)),
      threads: 0,
    });
    expect(await verifyLedgerFile(path)).toMatchObject({ records: 300, root: null });
  });

  it("gives the same on several threads", async () => {
    const path = ledger(ledgerText(lines));
    const sizes = [0, 1, 77, 300, 301];
    const here = await verifyLedgerFile(path, { sizes });
    const shared = await verifyLedgerFile(path, { sizes, threads: 2 });
    expect(shared).toEqual({ ...here, threads: 2 });
    expect([...here.moments.keys()]).toEqual([0, 1, 77, 300]);
    const bad = ledger(ledgerText(LEDGER_TAMPERS["a field changed"]!(lines, seeded(5))));
    const found = await verifyLedgerFile(bad, { threads: 2 });
    expect(found.first_bad).toEqual((await verifyLedgerFile(bad)).first_bad);
    expect(found.first_bad).not.toBeNull();
  });

  it("finds the bad record in a ledger of many chunks, at the very place", async () => {
    const many = ledgerLines(2, 12_000);
    const text = ledgerText(many);
    expect(text.length).toBeGreaterThan(4 * 1_048_576);
    expect(await verifyLedgerFile(ledger(text))).toMatchObject({ records: 12_000, first_bad: null });
    for (const at of [0, 4_321, 11_999]) {
      const changed = many.with(at, many[at]!.replace('"event":"', '"event":"x'));
      const found = await verifyLedgerFile(ledger(ledgerText(changed)));
      expect(found).toMatchObject({
        records: at,
        first_bad: { seq: at, problem: expect.stringContaining("changed") },
      });
    }
    const gap = many.toSpliced(9_000, 1);
    expect((await verifyLedgerFile(ledger(ledgerText(gap)))).first_bad).toMatchObject({ seq: 9_000 });
  });

  it("names a torn last line, changes nothing, and knows the records before it", async () => {
    const torn = `{"actor":"${"a".repeat(40)}`;
    const path = ledger(ledgerText(lines) + torn);
    const before = readFileSync(path);
    const found = await verifyLedgerFile(path);
    expect(found.records).toBe(300);
    expect(found.first_bad).toEqual({
      seq: 300,
      problem: "the last line is torn: 50 bytes without a line end, as an interrupted write leaves them",
    });
    expect(readFileSync(path).equals(before)).toBe(true);
    const only = await verifyLedgerFile(ledger(torn));
    expect(only).toMatchObject({ records: 0, first_bad: { seq: 0 } });
  });

  it("waits for a line that is being written", async () => {
    const path = ledger(ledgerText(lines.slice(0, 299)) + lines[299]!.slice(0, 20));
    setTimeout(() => appendFileSync(path, `${lines[299]!.slice(20)}\n`), 30);
    expect(await verifyLedgerFile(path)).toMatchObject({ records: 299, first_bad: null });
    expect(await verifyLedgerFile(path)).toMatchObject({ records: 300, first_bad: null });
  });

  it("accepts an empty one", async () => {
    expect(await verifyLedgerFile(ledger(""), { tree: true })).toMatchObject({
      records: 0,
      head: "0".repeat(64),
      first_bad: null,
    });
  });

  it("reports a file that isn't a ledger", async () => {
    const folder = tempDir();
    mkdirSync(join(folder, "d"));
    execFileSync("mkfifo", [join(folder, "pipe")]);
    await expect(verifyLedgerFile(join(folder, "none"))).rejects.toThrow("does not exist");
    await expect(verifyLedgerFile(join(folder, "d"))).rejects.toThrow("is a directory");
    await expect(verifyLedgerFile(join(folder, "pipe"))).rejects.toThrow("is a named pipe");
    await expect(verifyLedgerFile("/dev/zero")).rejects.toThrow("is a device");
    const endless = join(folder, "endless");
    writeFileSync(endless, Buffer.alloc(20 * 1_048_576, "x"));
    await expect(verifyLedgerFile(endless)).rejects.toThrow("longer than any record");
    expect(statSync(endless).size).toBe(20 * 1_048_576);
  });
});

describe("verifying a store's ledger", () => {
  it("reads it page by page", async () => {
    const store = await storeOf(drafts(3, 5_000));
    const { hash } = await store.head();
    expect(await verifyStoreLedger(store, { tree: true })).toMatchObject({
      records: 5_000,
      head: hash,
      first_bad: null,
    });
  });

  it("sees that the store lost or changed what it counts", async () => {
    const store = await storeOf(drafts(3, 50));
    const all = await store.records({ limit: 100 });
    const showing = (shown: string[], hash?: string): StateStore => ({
      ...({} as StateStore),
      head: async () => ({ ...(await store.head()), ...(hash === undefined ? {} : { hash }) }),
      records: async ({ from = 0, to = 1e9, limit }) => shown.slice(from, to + 1).slice(0, limit),
    });
    const short = await verifyStoreLedger(showing(all.slice(0, 40)));
    expect(short.first_bad).toEqual({ seq: 40, problem: expect.stringContaining("counts 50 records") });
    const moved = await verifyStoreLedger(showing(all, "f".repeat(64)));
    expect(moved.first_bad).toEqual({
      seq: 49,
      problem: expect.stringContaining("head that the store keeps"),
    });
    const changed = await verifyStoreLedger(showing(all.with(7, all[7]!.replace('"event":"', '"event":"x'))));
    expect(changed.first_bad).toMatchObject({ seq: 7 });
  });
});
