/** The sqlite store when its database is locked, gone, newer, damaged, or its disk fails. */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { type Fault, faultyDisk, inlineHelper } from "../../../test/support/faulty-disk.ts";
import { allRecords, expectConsistent, work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { countTrials } from "../../../test/support/trials.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import { IndeterminateCommitError } from "../indeterminate-commit.ts";
import { sqliteJobs } from "./jobs.ts";
import { openSqliteStore } from "./store.ts";

const bounds = { changes: 16, records: 100, bytes: 1_000_000 };

function open(folder: string, disk = faultyDisk()): Promise<StateStore> {
  return openSqliteStore(folder, () => {}, {
    disk,
    bounds,
    helper: inlineHelper(() => sqliteJobs(folder, 0)),
  });
}

async function workload(
  store: StateStore,
): Promise<{ acked: string[]; refused: string[]; unknown: string[] }> {
  const acked: string[] = [];
  const refused: string[] = [];
  const unknown: string[] = [];
  const attempt = async (name: string, count: number): Promise<void> => {
    try {
      await work(store, name, count);
      acked.push(name);
    } catch (error) {
      expect(error).toBeInstanceOf(SvcError);
      expect((error as SvcError).code).toBe("unavailable");
      (error instanceof IndeterminateCommitError ? unknown : refused).push(name);
    }
  };
  await attempt("a", 1);
  await Promise.all([attempt("b", 2), attempt("c", 1), attempt("d", 3)]);
  await attempt("e", 1);
  await store.scrub().catch(() => {});
  for (const name of ["f", "g", "h"]) await attempt(name, 1);
  return { acked, refused, unknown };
}

describe("a disk call that fails", () => {
  const ways: Omit<Fault, "call">[] = [{ code: "EIO" }, { code: "EIO", lasting: true }, { code: "EROFS" }];
  for (const way of ways) {
    const words = `${way.code}${way.lasting ? " from then on" : ""}`;
    it(`with ${words}, for every call of a workload`, async () => {
      const counting = faultyDisk();
      const plain = await open(join(tempDir(), "data"), counting);
      const first = counting.calls + 1;
      await workload(plain);
      const last = counting.calls;
      await plain.close();
      expect(last - first).toBeGreaterThan(5);
      for (let call = first; call <= last; call++) {
        const folder = join(tempDir(), "data");
        const disk = faultyDisk();
        const store = await open(folder, disk);
        disk.fail({ ...way, call });
        const { acked, refused, unknown } = await workload(store);
        disk.fail(undefined);
        // A disk that fails once can be asked again, and then it is known.
        if (way.lasting !== true) expect(unknown, `unknown at ${call}`).toEqual([]);
        await work(store, "after");
        await store.ready();
        const units = await expectConsistent(store);
        for (const name of [...acked, "after"]) expect(units.has(name), `${name} at ${call}`).toBe(true);
        for (const name of refused) expect(units.has(name), `${name} was refused at ${call}`).toBe(false);
        await store.close();
        const again = await open(folder);
        expect(await expectConsistent(again)).toEqual(units);
        await again.close();
      }
      countTrials("sqlite", `disk calls that fail (${words})`, last - first + 1);
    });
  }
});

describe("a database that cannot be used", () => {
  it("because somebody holds its lock: refused in time, readable in the meantime, fine afterwards", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    await work(store, "a");
    const other = new DatabaseSync(join(folder, "svc.db"));
    other.exec("BEGIN EXCLUSIVE");
    await expect(work(store, "b")).rejects.toMatchObject({ code: "unavailable" });
    expect(await store.get("meta", "total")).toBe(1);
    expect((await store.head()).records).toBe(1);
    other.exec("ROLLBACK");
    other.close();
    await work(store, "c");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.close();
    countTrials("sqlite", "database locked by somebody else", 1);
  });

  it("because it was moved away: refused until it is back", async () => {
    const folder = join(tempDir(), "data");
    const aside = `${folder}-aside`;
    const store = await open(folder);
    await work(store, "a");
    renameSync(folder, aside);
    await expect(work(store, "b")).rejects.toMatchObject({ code: "unavailable" });
    await expect(store.ready()).rejects.toMatchObject({ code: "unavailable" });
    mkdirSync(folder);
    await expect(work(store, "b")).rejects.toMatchObject({ code: "unavailable" });
    expect(readdirSync(folder).filter((name) => name.startsWith("svc.db"))).toEqual([]);
    for (const name of readdirSync(folder)) renameSync(join(folder, name), join(aside, `spare-${name}`));
    renameSync(aside, folder);
    await work(store, "c");
    expect([...(await expectConsistent(store)).keys()]).toEqual(["a", "c"]);
    await store.close();
    countTrials("sqlite", "data folder moved away", 1);
  });

  it("because a newer program wrote it: refused with a reason", async () => {
    const folder = join(tempDir(), "data");
    await (await open(folder)).close();
    for (const name of ["svc.db", "svc.checkpoint"]) {
      const db = new DatabaseSync(join(folder, name));
      const { user_version } = db.prepare("PRAGMA user_version").get() as { user_version: number };
      db.exec("PRAGMA user_version = 99");
      await expect(open(folder)).rejects.toThrow(/newer svc/);
      db.exec(`PRAGMA user_version = ${user_version}`);
      db.close();
    }
    await (await open(folder)).close();
  });

  it("because it isn't a database at all: corrupt, and left alone", async () => {
    const folder = join(tempDir(), "data");
    mkdirSync(folder);
    writeFileSync(join(folder, "svc.db"), "not a database, but long enough to look at".repeat(40));
    await expect(open(folder)).rejects.toMatchObject({ code: "corrupt" });
  });

  const withoutCheckpoint = (folder: string): void => {
    for (const name of readdirSync(folder)) {
      if (name.startsWith("svc.checkpoint")) rmSync(join(folder, name));
    }
  };

  it("because its checkpoint is gone, which is made again as long as svc.db has all there is", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    await work(store, "documents only", 0);
    await store.close();
    withoutCheckpoint(folder);
    const early = await open(folder);
    expect(await early.get("meta", "total")).toBe(0);
    await work(early, "a", 3);
    const units = [...(await early.list("idempotency", { limit: 9 }))];
    await early.close();
    withoutCheckpoint(folder);
    const told: string[] = [];
    const again = await openSqliteStore(folder, (message) => told.push(message));
    expect(told).toEqual(["svc.checkpoint was missing; rebuilding it from svc.db"]);
    expect(await again.list("idempotency", { limit: 9 })).toEqual(units);
    await again.ready();
    expect(await work(again, "b")).toEqual([3]);
    await again.scrub();
    await again.close();
    const last = await open(folder);
    expect((await last.head()).records).toBe(4);
    expect(await last.count("idempotency")).toBe(3);
    await last.close();
  });

  it("because its checkpoint is gone with older documents: only the ledger is known", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    await work(store, "a", 3);
    await store.scrub();
    await work(store, "b");
    await store.close();
    withoutCheckpoint(folder);
    const orphan = await open(folder);
    await expect(work(orphan, "c")).rejects.toThrow(/svc.checkpoint.* is missing/);
    expect(await allRecords(orphan)).toHaveLength(4);
    expect(await orphan.records({ run_id: "a", limit: 9 })).toHaveLength(3);
    await expect(orphan.get("meta", "total")).rejects.toMatchObject({ code: "corrupt" });
    await expect(orphan.count("idempotency")).rejects.toMatchObject({ code: "corrupt" });
    await orphan.close();
  });

  it("because its journal was changed: only the ledger is known", async () => {
    const folder = join(tempDir(), "data");
    const store = await open(folder);
    for (const name of ["a", "b", "c"]) await work(store, name);
    await store.close();
    const db = new DatabaseSync(join(folder, "svc.db"));
    db.exec("UPDATE journal SET block = replace(block, 'last/b', 'last/x') WHERE n = 2");
    db.close();
    const changed = await open(folder);
    await expect(work(changed, "d")).rejects.toMatchObject({ code: "corrupt" });
    await expect(changed.ready()).rejects.toMatchObject({ code: "corrupt" });
    expect(await changed.head()).toMatchObject({ records: 3, events: { intended: 3 } });
    expect(await allRecords(changed)).toHaveLength(3);
    for (const key of ["last/a", "last/c", "never"])
      await expect(changed.get("meta", key)).rejects.toMatchObject({ code: "corrupt" });
    await expect(changed.list("meta", { limit: 9 })).rejects.toMatchObject({ code: "corrupt" });
    await changed.close();
  });
});
