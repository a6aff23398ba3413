/**
 * A live store whose files are truncated, or replaced by an older copy. A process that had the newer files open refuses
 * at once and permanently, changes nothing, and returns no incomplete data.
 */
import { copyFileSync, readFileSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { copyDatabase } from "../../../test/support/sqlite-backup.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { filesJobs } from "../files/jobs.ts";
import { openFilesStore } from "../files/store.ts";
import { sqliteJobs } from "../sqlite/jobs.ts";
import { openSqliteStore } from "../sqlite/store.ts";

type Kind = "files" | "sqlite";

function open(kind: Kind, folder: string): Promise<StateStore> {
  return kind === "files"
    ? openFilesStore(folder, () => {}, { helper: inlineHelper(() => filesJobs(folder)) })
    : openSqliteStore(folder, () => {}, { helper: inlineHelper(() => sqliteJobs(folder, 0)) });
}

/** Puts the older of two states in the place of the newer one. */
interface SetBack {
  /** Called in the older state; returns a function that restores that state. */
  remember(folder: string): Promise<() => void | Promise<void>>;
}

const LEDGER = "ledger.jsonl";
const JOURNAL = "journal-1.jsonl";

/** In place: the same file with the older bytes in it. */
const older = (...names: string[]): SetBack => ({
  async remember(folder) {
    const saved = names.map((name) => [join(folder, name), readFileSync(join(folder, name))] as const);
    return () => {
      for (const [path, bytes] of saved) {
        writeFileSync(path, bytes);
        truncateSync(path, bytes.length);
      }
    };
  },
});

/** As a copy that takes the name. */
const replaced = (...names: string[]): SetBack => ({
  async remember(folder) {
    for (const name of names) copyFileSync(join(folder, name), join(folder, `${name}.older`));
    return () => {
      for (const name of names) renameSync(join(folder, `${name}.older`), join(folder, name));
    };
  },
});

/** As `.backup` and `.restore` of SQLite do it, while others have the database open. */
const restored: SetBack = {
  async remember(folder) {
    const [live, copy] = [join(folder, "svc.db"), join(folder, "older.db")];
    await copyDatabase(live, copy);
    return () => copyDatabase(copy, live);
  },
};

const WAYS: [Kind, string, SetBack][] = [
  ["files", "ledger cut under a live store", older(LEDGER)],
  ["files", "journal cut under a live store", older(JOURNAL)],
  ["files", "older files written over live ones", older(LEDGER, JOURNAL)],
  ["files", "older files put in the place of live ones", replaced(LEDGER, JOURNAL)],
  ["sqlite", "older backup restored under a live store", restored],
];

/** Two handles, as two processes would have, and how to set the files back to where they stand now. */
async function stage(kind: Kind, way: SetBack) {
  const folder = join(tempDir(), "data");
  const store = await open(kind, folder);
  const other = await open(kind, folder);
  for (const name of ["a", "b"]) await work(store, name);
  return { folder, store, other, setBack: await way.remember(folder) };
}

/** A moved file is reported first, and checked again with the next request. */
async function refuses(store: StateStore, what: string): Promise<void> {
  await expect(work(store, "no"), what).rejects.toMatchObject({
    code: expect.stringMatching(/^(corrupt|unavailable)$/),
  });
  for (let i = 0; i < 3; i++)
    await expect(work(store, "no"), what).rejects.toMatchObject({ code: "corrupt" });
  await expect(store.ready(), what).rejects.toThrow(/set back/);
  await expect(store.scrub(), what).rejects.toMatchObject({ code: "corrupt" });
}

async function tellsNothing(store: StateStore, what: string): Promise<void> {
  for (const read of [
    () => store.get("meta", "last/c"),
    () => store.list("meta", { limit: 9 }),
    () => store.count("meta"),
    () => store.records({ limit: 9 }),
    () => store.head(),
  ])
    await expect(read(), what).rejects.toMatchObject({ code: "corrupt" });
}

describe.each(WAYS)("%s: %s", (kind, name, way) => {
  it("is refused by the writer of the missing records, and by a reader of them", async () => {
    const { store, other, setBack } = await stage(kind, way);
    for (const unit of ["c", "d"]) await work(store, unit);
    expect((await other.head()).records).toBe(4);
    await setBack();
    await refuses(store, "the writer");
    await refuses(other, "the reader");
    await tellsNothing(store, "the writer");
    await tellsNothing(other, "the reader");
    await Promise.all([store.close(), other.close()]);
    countTrials(kind, name, 2);
  });

  it("is refused although somebody who never knew better has gone on", async () => {
    const { folder, store, other, setBack } = await stage(kind, way);
    await work(store, "c");
    await other.head();
    await setBack();
    const fresh = await open(kind, folder);
    // A start that finds an older state whole cannot know of a newer one; those that are live still do.
    await Promise.allSettled(["x", "y", "z"].map((unit) => work(fresh, unit)));
    await refuses(store, "the writer");
    await refuses(other, "the reader");
    await Promise.all([store.close(), other.close(), fresh.close()]);
  });

  it("leaves the files to be put right", async () => {
    const { folder, store, other, setBack } = await stage(kind, way);
    const newer = kind === "files" ? older(LEDGER, JOURNAL) : undefined;
    for (const unit of ["c", "d", "e"]) await work(store, unit);
    const putRight = await newer?.remember(folder);
    await setBack();
    await refuses(store, "the writer");
    await Promise.all([store.close(), other.close()]);
    await putRight?.();
    const again = await open(kind, folder);
    await work(again, "f");
    await expectConsistent(again);
    await again.close();
  });
});

// A ledger alone has no documents to lose.
describe.each(WAYS.filter(([, name]) => !name.startsWith("ledger")))("%s: %s", (kind, _, way) => {
  it("is refused where only documents are gone", async () => {
    const { store, other, setBack } = await stage(kind, way);
    for (const unit of ["c", "d"]) await work(store, unit, 0);
    await other.head();
    await setBack();
    await refuses(store, "the writer");
    await refuses(other, "the reader");
    await Promise.all([store.close(), other.close()]);
  });
});
