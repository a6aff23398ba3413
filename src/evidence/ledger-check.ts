/** Which way a store's ledger is verified: a files store by its file, any other through the store. */
import { join } from "node:path";
import type { Store } from "../store/port.ts";
import { type LedgerCheck, type VerifyOptions, verifyLedgerFile, verifyStoreLedger } from "./verify-ledger.ts";

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

export function verifyOpen(store: Store, data: string, options: VerifyOptions = {}): Promise<LedgerCheck> {
  return store.kind === "files" ? verifyLedgerFile(ledgerFile(data), options) : verifyStoreLedger(store, options);
}
