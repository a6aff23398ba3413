/**
 * Which way a store's ledger is verified: files by their file, sqlite by its database opened for reading only,
 * postgres by reading alone, so that a standby will do.
 */
import { join } from "node:path";
import type { Store } from "../port/store.ts";
import { openDatabaseLedger, openStore, type StoreSettings } from "../store/open.ts";
import { openSqliteLedger } from "./sqlite-ledger.ts";
import {
  type LedgerCheck,
  type VerifyOptions,
  verifyLedgerFile,
  verifyStoreLedger,
} from "./verify-ledger.ts";

/** The ledger of a files store, inside its data folder. */
export function ledgerFile(data: string): string {
  return join(data, "ledger.jsonl");
}

const RUNNING = new WeakMap<Store, Promise<LedgerCheck>>();

/** Verifies an open store's ledger. Those who ask while a check runs share its answer. */
export function checkLedgerOf(store: Store, data: string): Promise<LedgerCheck> {
  const running = RUNNING.get(store);
  if (running !== undefined) return running;
  const check = verifyOpen(store, data).finally(() => RUNNING.delete(store));
  RUNNING.set(store, check);
  return check;
}

function verifyOpen(store: Store, data: string, options: VerifyOptions = {}): Promise<LedgerCheck> {
  return store.kind === "files"
    ? verifyLedgerFile(ledgerFile(data), options)
    : verifyStoreLedger(store, options);
}

/** Verifies the ledger that the settings name, without opening files or sqlite for writing. */
export async function verifyNamed(
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

/** What was verified, for people. */
export function ledgerName({ store, data }: Pick<StoreSettings, "store" | "data">): string {
  if (store === "files") return ledgerFile(data);
  return store === "sqlite" ? join(data, "svc.db") : `the ${store} store`;
}
