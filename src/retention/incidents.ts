/**
 * Retention of incidents: one is deleted with the last run that it names. A hold keeps its runs, and so the incident.
 * An incident that never named a run is deleted once it is as old as the default allows.
 */
import type { EngineCore } from "../govern/core.ts";
import type { IncidentDoc } from "../govern/incidents/incident.ts";
import { allRows } from "../govern/port/pages.ts";
import type { StateStore, StoreTx } from "../govern/port/store.ts";
import type { TableName } from "../govern/port/tables.ts";
import type { RunDoc } from "../govern/runs/run.ts";
import { coveringHold, readHolds } from "./holds.ts";

type Owned = (readonly [TableName, string])[];

/** An incident that names the run, with the keys of everything that belongs to it. */
export interface NamingIncident {
  id: string;
  owned: Owned;
}

export async function incidentsNaming(
  store: StateStore,
  { run_id, actor }: Pick<RunDoc, "run_id" | "actor">,
): Promise<NamingIncident[]> {
  const found: NamingIncident[] = [];
  for await (const { doc } of allRows(store, "incidents", { owner: actor }))
    if (doc.runs.includes(run_id)) found.push({ id: doc.id, owned: await ownedBy(store, doc.id) });
  return found;
}

async function ownedBy(store: StateStore, owner: string): Promise<Owned> {
  const owned: Owned = [["incidents", owner]];
  for (const table of ["incident_causes", "incident_entries"] as const)
    for await (const { key } of allRows(store, table, { owner })) owned.push([table, key]);
  return owned;
}

/** The run is deleted in this unit. An open incident stays until it ends. */
export function forgetRunOfIncidents(
  tx: StoreTx,
  run_id: string,
  incidents: readonly NamingIncident[],
): void {
  for (const { id, owned } of incidents) {
    const incident = tx.get("incidents", id);
    if (incident === undefined) continue;
    const runs = incident.runs.filter((one) => one !== run_id);
    if (runs.length > 0 || incident.status === "open") tx.put("incidents", id, { ...incident, runs });
    else for (const [table, key] of owned) tx.delete(table, key);
  }
}

const DAY_MS = 86_400_000;

/** Deletes closed incidents without a run that are older than `days`, unless a hold covers their agent or tenant. */
export async function dropRunlessIncidents({ store, env }: EngineCore, days: number): Promise<void> {
  const holds = await readHolds(store);
  const to = env.now() - days * DAY_MS;
  const isHeld = ({ actor, tenant }: IncidentDoc) =>
    coveringHold(holds, { run_id: "", actor, tenant }, () => false) !== undefined;
  for await (const { doc } of allRows(store, "incidents", { tag: "closed", to })) {
    if (doc.runs.length > 0 || (doc.closed_ms ?? 0) > to || isHeld(doc)) continue;
    const owned = await ownedBy(store, doc.id);
    await store.transact({
      needs: [["incidents", doc.id]],
      run(tx) {
        if (tx.get("incidents", doc.id)?.runs.length !== 0) return;
        for (const [table, key] of owned) tx.delete(table, key);
      },
    });
  }
}
