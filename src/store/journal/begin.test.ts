/** Processes that open a new place at the same time: each may be the one that makes the first checkpoint. */
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { work } from "../../../test/support/store-work.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { aMoment } from "../../../test/support/until.ts";
import { checkpointPath } from "../files/paths.ts";
import { openFilesStore } from "../files/store.ts";
import { sqliteCheckpointPath } from "../sqlite/paths.ts";
import { openSqliteStore } from "../sqlite/store.ts";
import { CheckpointReader, EMPTY_CHECKPOINT, writeBase } from "./checkpoint/checkpoint.ts";
import { closeDatabase, openDatabase } from "./connection.ts";

describe("the first checkpoint", () => {
  it.each([
    ["files", openFilesStore, checkpointPath],
    ["sqlite", openSqliteStore, sqliteCheckpointPath],
  ] as const)("waits for another process that is making it (%s)", async (_, open, checkpointPath) => {
    const folder = tempDir();
    const path = checkpointPath(folder);
    CheckpointReader.open(path).close();
    const other = openDatabase(path, { synchronous: "NORMAL" });
    other.exec("BEGIN IMMEDIATE");
    const opening = open(folder, () => {});
    await aMoment(100);
    other.exec("ROLLBACK");
    closeDatabase(other);
    const store = await opening;
    await work(store, "a");
    await store.close();
  });

  it("never replaces one that another process has made and gone on from", () => {
    const path = join(tempDir(), "svc.checkpoint");
    const late = CheckpointReader.open(path);
    const other = openDatabase(path, { synchronous: "NORMAL" });
    const moved = { ...EMPTY_CHECKPOINT, generation: 7 };
    writeBase(other, "sqlite", moved);
    late.begin("sqlite");
    expect(late.base()).toEqual(moved);
    late.close();
    closeDatabase(other);
  });
});
