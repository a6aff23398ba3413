/** Copies that are made while others write and move the checkpoint: each is one moment, whole, and is gone on from. */
import { mkdirSync, readSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { filesJobs } from "../files/jobs.ts";
import { openFilesStore } from "../files/store.ts";
import { sqliteJobs } from "../sqlite/jobs.ts";
import { openSqliteStore } from "../sqlite/store.ts";

const COPIES = 3;
const bounds = { changes: 80, records: 20, bytes: 1_000_000 };

type Warn = (message: string) => void;
const KINDS = {
  files: (folder: string, warn: Warn) =>
    openFilesStore(folder, warn, { bounds, helper: inlineHelper(() => filesJobs(folder)) }),
  sqlite: (folder: string, warn: Warn) =>
    openSqliteStore(folder, warn, { bounds, helper: inlineHelper(() => sqliteJobs(folder, 0)) }),
};

/** Takes a copy, and lets `meanwhile` happen before any of it is read. */
async function copyInto(folder: string, store: StateStore, meanwhile: () => Promise<unknown>) {
  const scratch = tempDir("scratch");
  const { head, files, close } = await store.backup!(scratch);
  await meanwhile();
  mkdirSync(folder);
  for (const { name, fd, size } of files) {
    const bytes = Buffer.alloc(size);
    expect(readSync(fd, bytes, 0, size, 0)).toBe(size);
    writeFileSync(join(folder, name), bytes);
  }
  await close();
  return head;
}

describe.each(["files", "sqlite"] as const)("a copy of a %s store in use", (kind) => {
  it("is of one moment, opens without repairs, and continues", async () => {
    const place = tempDir();
    const folder = join(place, "data");
    const ignore = () => {};
    const writer = await KINDS[kind](folder, ignore);
    const copier = await KINDS[kind](folder, ignore);
    let is_over = false;
    const writing = (async () => {
      for (let i = 0; !is_over; i++) await work(writer, `u${i}`, 1 + (i % 3));
    })();
    const grown = async (by: number) => {
      const { records } = await writer.head();
      while ((await writer.head()).records < records + by) await new Promise(setImmediate);
    };
    const copies = [];
    for (let i = 0; i < COPIES; i++) {
      await grown(7);
      // Two journals are closed and taken in while the copy waits to be read.
      const to = join(place, `copy-${i}`);
      copies.push({ to, head: await copyInto(to, copier, () => grown(50)) });
    }
    is_over = true;
    await writing;
    for (const { to, head } of copies) {
      const warnings: string[] = [];
      const restored = await KINDS[kind](to, (message) => warnings.push(message));
      expect(await restored.head()).toMatchObject(head);
      await expectConsistent(restored);
      await work(restored, "after", 2);
      expect((await restored.head()).records).toBe(head.records + 2);
      await restored.close();
      expect(warnings).toEqual([]);
      // Its source has another record at that position.
      expect((await writer.records({ from: head.records, limit: 1 }))[0]).not.toContain("after");
    }
    await expectConsistent(writer);
    await copier.close();
    await writer.close();
  });
});
