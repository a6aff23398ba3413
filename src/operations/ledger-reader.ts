/** Lets a surface read the ledger, as far as its view of the app shows it. */
import { checkLedgerOf } from "../evidence/ledger-check.ts";
import type { LedgerCheck } from "../evidence/verify-ledger.ts";
import type { EngineCore } from "../govern/core.ts";
import type { StateStore } from "../govern/port/store.ts";
import { countVisibleRecords, tenantOf, unconfinedStore } from "../store/tenant-store.ts";
import type { ServiceApp } from "./app.ts";

export interface CoreHolder {
  core: Pick<EngineCore, "store">;
}

export type LedgerReader = Pick<StateStore, "head" | "records" | "changed">;

export function ledgerOf({ core }: CoreHolder): LedgerReader {
  return core.store;
}

export function countRecords({ core }: CoreHolder): Promise<number> {
  return countVisibleRecords(core.store);
}

export function verifyLedger({
  core,
  settings,
}: Pick<ServiceApp, "core" | "settings">): Promise<LedgerCheck> {
  return checkLedgerOf(core.store, settings.data);
}

/** Whether this view shows one tenant only. */
export function isTenantView({ core }: CoreHolder): boolean {
  return tenantOf(core.store) !== null;
}

/** Whether records within these positions matter to a tenant's view: its own records, and all halts. */
export async function hasTenantNews({ core }: CoreHolder, from: number, to: number): Promise<boolean> {
  const added = { from, to, limit: 1 };
  if ((await core.store.records(added)).length > 0) return true;
  const halts = { ...added, event: ["halted", "resumed"] };
  return (await unconfinedStore(core.store).records(halts)).length > 0;
}
