/** What every page shows at its edge: halts, waiting requests, the head of the ledger. */
import type { App } from "../app/app.ts";
import { activeHalts } from "../app/operations/halts.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { Halt } from "../model/approval.ts";
import { PROBE_ACTOR } from "../model/roles.ts";
import { shownRecords, tenantOf } from "../store/confined.ts";

export interface Glance {
  halts: Halt[];
  /** Why the kill-switch file halts everything; null while it does not exist. */
  kill_file: string | null;
  pending: number;
  records: number;
  head: string;
  /** Another one whenever a page might look different. */
  pulse: string;
}

export async function glance(app: App): Promise<Glance> {
  const { store, killSwitch } = app.core;
  const [head, records, halts, pending, escalated] = await Promise.all([
    store.head(),
    shownRecords(store),
    activeHalts(app).then((all) => all.filter(({ scope }) => scope.actor !== PROBE_ACTOR)),
    store.count("approvals", { tag: "pending" }),
    store.count("approvals", { tag: "escalated" }),
  ]);
  const kill_file = killSwitch();
  const waiting = pending + escalated;
  // Of a neighbour's doings whoever is bound to a tenant hears nothing, and the head moves with them.
  const moved = tenantOf(store) === null ? head.hash : records;
  const state = [moved, waiting, ...halts.map(({ id }) => id), kill_file ?? ""];
  return {
    halts,
    kill_file,
    pending: waiting,
    records,
    head: head.hash,
    pulse: sha256Hex(state.join("\n")).slice(0, 16),
  };
}
