/**
 * Read-only access to the ledger of a sqlite store. Verification must not migrate, repair or lock anything, and must
 * work on a copy that is not writable.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { SvcError } from "../kernel/errors.ts";
import { GENESIS_HASH } from "../ledger/record.ts";
import { LineFile } from "./chain/line-file.ts";
import type { LedgerReader } from "./verify-ledger.ts";

const HEAD = "SELECT records, hash FROM head WHERE id = 0";
const LINES = "SELECT line FROM ledger WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?";

export function openSqliteLedger(data: string): LedgerReader & { close(): void } {
  const path = join(data, "svc.db");
  // Reports a missing or special file clearly.
  new LineFile(path).close();
  const db = openReadOnly(path);
  try {
    const lines = db.prepare(LINES);
    return {
      async head() {
        const row = db.prepare(HEAD).get() as { records: number; hash: string } | undefined;
        return row === undefined
          ? { records: 0, hash: GENESIS_HASH }
          : { records: row.records, hash: row.hash };
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
    // Without a shared-memory file, and without permission to create one, SQLite can read only a database opened as
    // immutable.
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
