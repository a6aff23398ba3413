/** The data folder of a files store: whose it is, and what happens when it is moved from under it. */
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { inlineHelper } from "../../../test/support/faulty-disk.ts";
import { expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import { filesJobs } from "./jobs.ts";
import { openFilesStore } from "./store.ts";

const refused = { code: "unavailable" };
const open = (folder: string) =>
  openFilesStore(folder, () => {}, { helper: inlineHelper(() => filesJobs(folder)) });

describe("the data folder", () => {
  it("and everything in it are for the service's user alone", async () => {
    const folder = join(tempDir(), "deep", "data");
    const store = await open(folder);
    await work(store, "a");
    await store.scrub();
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const name of readdirSync(folder))
      expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600);
    await store.close();
  });

  it("moved away and back: refused in between", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    await work(store, "a");
    renameSync(folder, `${folder}-aside`);
    await expect(work(store, "b")).rejects.toMatchObject(refused);
    await expect(store.ready()).rejects.toMatchObject(refused);
    renameSync(`${folder}-aside`, folder);
    await work(store, "c");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.close();
  });

  it("deleted, then restored from a copy: refused in between, and an empty one is never begun instead", async () => {
    const folder = join(tempDir(), "data");
    const copy = join(tempDir(), "copy");
    const store = await open(folder);
    await work(store, "a");
    mkdirSync(copy);
    for (const name of readdirSync(folder)) copyFileSync(join(folder, name), join(copy, name));
    rmSync(folder, { recursive: true });
    await expect(work(store, "b")).rejects.toMatchObject(refused);
    mkdirSync(folder);
    await expect(work(store, "b")).rejects.toMatchObject(refused);
    expect(readdirSync(folder)).not.toContain("ledger.jsonl");
    rmSync(folder, { recursive: true });
    renameSync(copy, folder);
    await work(store, "c");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.close();
    countTrials("files", "data folder deleted", 1);
  });

  it("put back from a copy that is too old: refused for good, because records are missing", async () => {
    const folder = join(tempDir(), "data");
    const copy = join(tempDir(), "copy");
    const store = await open(folder);
    await work(store, "a");
    mkdirSync(copy);
    for (const name of readdirSync(folder)) copyFileSync(join(folder, name), join(copy, name));
    await work(store, "b");
    rmSync(folder, { recursive: true });
    renameSync(copy, folder);
    await expect(work(store, "c")).rejects.toMatchObject(refused);
    await expect(work(store, "c")).rejects.toMatchObject({ code: "corrupt" });
    await store.close();
    countTrials("files", "data folder replaced by an old copy", 1);
  });

  it("locked by somebody else: refused in time, readable in the meantime, fine afterwards", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    await work(store, "a");
    const other = new DatabaseSync(join(folder, "lock.db"));
    other.exec("BEGIN EXCLUSIVE");
    await expect(work(store, "b")).rejects.toThrow(/lock/);
    expect(await store.get("meta", "total")).toBe(1);
    other.exec("ROLLBACK");
    other.close();
    await work(store, "c");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.close();
  });
});
