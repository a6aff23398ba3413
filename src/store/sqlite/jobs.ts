/**
 * What the thread of a sqlite store does: takes closed journals into `svc.checkpoint`, and looks after
 * the write-ahead log.
 */
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { applyJournal, type ClosedJournal } from "../logged/apply.ts";
import type { UnitBlock } from "../logged/block.ts";
import { readBase } from "../logged/checkpoint.ts";
import { openCheckpointWriter, shrink } from "../logged/checkpoint-writer.ts";
import { closeDatabase, type Database, openDatabase } from "../logged/connection.ts";
import { parseJournal } from "../logged/parse.ts";
import type { Jobs } from "../logged/side-thread.ts";
import type { JournalRow } from "./connections.ts";
import { databasePath, sqliteCheckpointPath } from "./paths.ts";

/** Frames of the write-ahead log above which writers are held for a moment, so that it can start over. */
const RESTART_FRAMES = 4_000;
/** Rows deleted at a time: the write lock is held for no longer than a batch holds it. */
const DELETE_ROWS = 8;

/** `wait_ms`: how long a job may stand and wait for a lock, which it may do where it has a thread of its own. */
export function sqliteJobs(folder: string, wait_ms: number = LIMITS.store_deadline_ms): Jobs {
  const state = openCheckpointWriter(sqliteCheckpointPath(folder));
  const ledger = openDatabase(databasePath(folder), {
    synchronous: "NORMAL",
    wait_ms,
    autocheckpoint: false,
  });
  return {
    apply: (generation: number) => {
      const base = applyJournal(state, "sqlite", generation, () =>
        readClosed(ledger, generation, readBase(state)!),
      );
      deleteJournals(ledger, base.generation);
      return base;
    },
    shrink: () => {
      shrink(state);
      shrink(ledger);
    },
    wal: () => moveWal(ledger),
    flush: () => flush(ledger),
    end: () => {
      closeDatabase(state);
      closeDatabase(ledger);
    },
  };
}

function readClosed(
  db: Database,
  generation: number,
  base: { crc: number; head: ClosedJournal["head"]; size: number },
): ClosedJournal {
  const head = db.prepare("SELECT generation FROM head").get() as { generation: number };
  if (head.generation <= generation) throw new SvcError("corrupt", `journal ${generation} is not closed yet`);
  const rows = db
    .prepare("SELECT n, generation, block FROM journal WHERE generation = ? ORDER BY n")
    .all(generation);
  const units: UnitBlock[] = [];
  let { crc } = base;
  for (const { block } of rows as JournalRow[]) {
    const parsed = parseJournal(Buffer.from(block), 0, crc);
    if (parsed.rest !== "none") throw new SvcError("corrupt", `journal ${generation} does not verify`);
    for (const item of parsed.items) if (item.kind === "unit") units.push(item);
    crc = parsed.crc;
  }
  const { head: end, size } = units[units.length - 1] ?? base;
  return { generation, units, head: end, size, crc };
}

function deleteJournals(db: Database, generation: number): void {
  const some = db.prepare(
    "DELETE FROM journal WHERE n IN (SELECT n FROM journal WHERE generation <= ? ORDER BY n LIMIT ?)",
  );
  while (some.run(generation, DELETE_ROWS).changes > 0);
}

interface WalState {
  busy: number;
  log: number;
  checkpointed: number;
}

/** Beside writers first, which takes long and holds no writer; then, if it has grown long, with them held. */
function moveWal(db: Database): void {
  const { log } = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as WalState;
  if (log > RESTART_FRAMES) db.prepare("PRAGMA wal_checkpoint(RESTART)").get();
}

/** Everything into the database, and an empty log. */
function flush(db: Database): void {
  const { busy } = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as WalState;
  if (busy !== 0) throw Object.assign(new Error("database is locked"), { errcode: 5 });
}
