/**
 * Chooses how to verify a store's ledger: `files` through its file, `sqlite` through a read-only database, `postgres`
 * with reads only, so a standby is sufficient.
 */
import { join } from "node:path";
import type { StateStore } from "../govern/port/store.ts";
import { openDatabaseLedger, openStore, type StoreSettings } from "../store/open.ts";
import { openSqliteLedger } from "./sqlite-ledger.ts";
import {
  type LedgerCheck,
  type VerifyOptions,
  verifyLedgerFile,
  verifyStoreLedger,
} from "./verify-ledger.ts";

/** Path of the ledger of a files store in its data directory. */
export function ledgerFile(data: string): string {
  return join(data, "ledger.jsonl");
}

const RUNNING = new WeakMap<StateStore, Promise<LedgerCheck>>();

/** Verifies an open store's ledger. Concurrent callers share one check. */
export function checkLedgerOf(store: StateStore, data: string): Promise<LedgerCheck> {
  const running = RUNNING.get(store);
  if (running !== undefined) return running;
  const check = verifyOpen(store, data).finally(() => RUNNING.delete(store));
  RUNNING.set(store, check);
  return check;
}

function verifyOpen(store: StateStore, data: string, options: VerifyOptions = {}): Promise<LedgerCheck> {
  return store.kind === "files"
    ? verifyLedgerFile(ledgerFile(data), options)
    : verifyStoreLedger(store, options);
}

/** Verifies the ledger from the settings, without opening files or sqlite for writing. */
export async function verifyConfiguredLedger(
  settings: StoreSettings,
  options: VerifyOptions = {},
): Promise<LedgerCheck> {
  if (settings.store === "files") return verifyLedgerFile(ledgerFile(settings.data), options);
  if (settings.store === "sqlite") {
    const ledger = openSqliteLedger(settings.data);
    try {
      return await verifyStoreLedger(ledger, options);
    } finally {
      ledger.close();
    }
  }
  const store = await (settings.store === "postgres" ? openDatabaseLedger(settings) : openStore(settings));
  try {
    return await verifyStoreLedger(store, options);
  } finally {
    await store.close();
  }
}

/** Display name of the verified ledger. */
export function ledgerName({ store, data }: Pick<StoreSettings, "store" | "data">): string {
  if (store === "files") return ledgerFile(data);
  return store === "sqlite" ? join(data, "svc.db") : `the ${store} store`;
}
