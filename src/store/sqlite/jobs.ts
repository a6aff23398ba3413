/**
 * The jobs of a sqlite store's thread: applies closed journals to `svc.checkpoint`, and maintains the write-ahead log.
 */
import { SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { applyJournal, type ClosedJournal } from "../journal/apply.ts";
import { readBase } from "../journal/checkpoint/checkpoint.ts";
import { openCheckpointWriter, truncateWal } from "../journal/checkpoint/checkpoint-writer.ts";
import type { WorkerJobs } from "../journal/checkpoint/worker-handle.ts";
import { closeDatabase, openDatabase, type SqliteDatabase } from "../journal/connection.ts";
import type { UnitBlock } from "../journal/lines/block.ts";
import { parseJournal } from "../journal/lines/parse-journal.ts";
import type { JournalRow } from "./connections.ts";
import { databasePath, sqliteCheckpointPath } from "./paths.ts";

/**
 * Length of the write-ahead log, in frames, above which a job briefly blocks writers so that the log can start over.
 */
const RESTART_FRAMES = 4_000;
/** Rows per delete, so that a delete holds the write lock no longer than a batch does. */
const DELETE_ROWS = 8;

/** `wait_ms` is how long a job can block on a lock. Jobs run in their own thread, so they can block. */
export function sqliteJobs(folder: string, wait_ms: number = SERVICE_LIMITS.store_deadline_ms): WorkerJobs {
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
      truncateWal(state);
      truncateWal(ledger);
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
  db: SqliteDatabase,
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

function deleteJournals(db: SqliteDatabase, generation: number): void {
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

/**
 * First checkpoints alongside writers, which is slow but does not block them. If the log has become long, a second
 * checkpoint blocks them.
 */
function moveWal(db: SqliteDatabase): void {
  const { log } = db.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as WalState;
  if (log > RESTART_FRAMES) db.prepare("PRAGMA wal_checkpoint(RESTART)").get();
}

/** Moves everything into the database, and empties the log. */
function flush(db: SqliteDatabase): void {
  const { busy } = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as WalState;
  if (busy !== 0) throw Object.assign(new Error("database is locked"), { errcode: 5 });
}
