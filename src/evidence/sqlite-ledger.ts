/**
 * The ledger of a sqlite store, opened for reading only: verifying must not migrate, repair or lock anything,
 * and must work on a copy that is not writable.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { SvcError } from "../kernel/errors.ts";
import { GENESIS } from "../ledger/record.ts";
import { LineFile } from "./chain/region.ts";
import type { LedgerReader } from "./verify-ledger.ts";

const HEAD = "SELECT records, hash FROM head WHERE id = 0";
const LINES = "SELECT line FROM ledger WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?";

export function openSqliteLedger(data: string): LedgerReader & { close(): void } {
  const path = join(data, "svc.db");
  // Says in words what is no file at all.
  new LineFile(path).close();
  const db = openReadOnly(path);
  try {
    const lines = db.prepare(LINES);
    return {
      async head() {
        const row = db.prepare(HEAD).get() as { records: number; hash: string } | undefined;
        return row === undefined ? { records: 0, hash: GENESIS } : { records: row.records, hash: row.hash };
      },
      async records({ from = 0, to = Number.MAX_SAFE_INTEGER, limit }) {
        return (lines.all(from, to, limit) as { line: string }[]).map(({ line }) => line);
      },
      close: () => db.close(),
    };
  } catch (error) {
    db.close();
    throw noLedger(path, error);
  }
}

function openReadOnly(path: string): DatabaseSyncInstance {
  try {
    const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
    try {
      db.prepare("SELECT 1 FROM sqlite_master").get();
      return db;
    } catch (error) {
      db.close();
      throw error;
    }
  } catch {
    // Without a shared-memory file, and no right to make one, only a database that is said not to change can be read.
    try {
      return new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true });
    } catch (error) {
      throw noLedger(path, error);
    }
  }
}

function noLedger(path: string, cause: unknown): SvcError {
  return new SvcError("invalid", `${path}: is not the database of a sqlite store, or cannot be read`, {
    cause,
  });
}
