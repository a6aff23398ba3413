/** Status that every page shows in its frame: halts, pending requests, the ledger head. */

import type { StoredHalt } from "../govern/approvals/approval.ts";
import { PROBE_ACTOR } from "../govern/roles.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { ServiceApp } from "../operations/app.ts";
import { countOpenRequests } from "../operations/documents.ts";
import { activeHalts } from "../operations/halts.ts";
import { countRecords, isTenantView, ledgerOf } from "../operations/ledger-reader.ts";

export interface HeaderStatus {
  halts: StoredHalt[];
  /** Reason in the kill-switch file, which halts all calls, or null if the file does not exist. */
  kill_file: string | null;
  pending: number;
  records: number;
  head: string;
  /** Changes whenever a page might look different. */
  pulse: string;
}

export async function loadHeaderStatus(app: ServiceApp): Promise<HeaderStatus> {
  const { killSwitch } = app.core;
  const [head, records, halts, pending] = await Promise.all([
    ledgerOf(app).head(),
    countRecords(app),
    activeHalts(app).then((all) => all.filter(({ scope }) => scope.actor !== PROBE_ACTOR)),
    countOpenRequests(app),
  ]);
  const kill_file = killSwitch();
  // Tenant-bound users must not see other tenants' activity, and the ledger head changes with it. Use the tenant's
  // record count instead.
  const moved = isTenantView(app) ? records : head.hash;
  const state = [moved, pending, ...halts.map(({ id }) => id), kill_file ?? ""];
  return {
    halts,
    kill_file,
    pending,
    records,
    head: head.hash,
    pulse: sha256Hex(state.join("\n")).slice(0, 16),
  };
}
