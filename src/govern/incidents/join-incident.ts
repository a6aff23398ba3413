/**
 * Opens an incident, or adds a cause to the open one of the same agent and tenant. Both happen in the unit of the fact
 * itself, so no crash separates a halt or a failed undo from its incident.
 */
import { hmacHex, valueHash } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { EngineCore } from "../core.ts";
import type { DocKey, StoreTx } from "../port/store.ts";
import { isProbe } from "../roles.ts";
import { loadRun } from "../runs/load-run.ts";
import {
  INCIDENT_CAUSES,
  type IncidentCause,
  type IncidentDoc,
  type IncidentEntryDoc,
  type IncidentSubject,
} from "./incident.ts";

/** The `meta` key that holds the id of the last incident of an agent and tenant, open or not. */
const incidentSlot = ({ actor, tenant }: IncidentSubject): string =>
  `incident/${valueHash({ actor, tenant })}`;

const causeKey = ({ kind, ref }: Pick<IncidentCause, "kind" | "ref">, id: string): string =>
  INCIDENT_CAUSES[kind].once ? `${kind}/${ref}` : `${id}/${kind}/${ref}`;

/** The key of a cause that is recorded once in the whole store. */
export const onceCauseKey = (kind: "outcome" | "ungoverned" | "probe", ref: string): string =>
  causeKey({ kind, ref }, "");

export const incidentNeeds = (subjects: readonly IncidentSubject[]): DocKey[] =>
  subjects.map((subject) => ["meta", incidentSlot(subject)] as const);

/** Returns the id of the incident, or null if the cause was recorded before. */
export function joinIncident(
  core: Pick<EngineCore, "storeKey">,
  tx: StoreTx,
  { actor, tenant }: IncidentSubject,
  cause: IncidentCause,
  runs: readonly string[] = [],
): string | null {
  const slot = incidentSlot({ actor, tenant });
  const last = tx.get("meta", slot);
  const last_id = typeof last === "string" ? last : null;
  const known = last_id === null ? undefined : tx.get("incidents", last_id);
  const open = known?.status === "open" ? known : undefined;
  const incident = open ?? newIncident(nextId(core, slot, last_id), { actor, tenant }, cause.at_ms);
  const key = causeKey(cause, incident.id);
  const mayBeKnown = open !== undefined || INCIDENT_CAUSES[cause.kind].once;
  if (mayBeKnown && tx.get("incident_causes", key) !== undefined) return null;
  tx.put("incident_causes", key, { incident_id: incident.id, ...cause });
  const named = cause.run_id === null ? runs : [...runs, cause.run_id];
  tx.put("incidents", incident.id, {
    ...incident,
    runs: [...new Set([...incident.runs, ...named])].slice(0, SERVICE_LIMITS.incident_runs),
    causes: incident.causes + 1,
  });
  if (open === undefined) tx.put("meta", slot, incident.id);
  return incident.id;
}

/** A store can run a unit several times, so the id follows from what the unit reads: the same on each run. */
function nextId({ storeKey }: Pick<EngineCore, "storeKey">, slot: string, last_id: string | null): string {
  const hex = hmacHex(storeKey, `${slot} ${last_id ?? ""}`);
  return `inc_${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function newIncident(id: string, { actor, tenant }: IncidentSubject, opened_ms: number): IncidentDoc {
  return {
    id,
    actor,
    tenant,
    status: "open",
    opened_ms,
    closed_ms: null,
    closed_by: null,
    close_reason: null,
    assigned_to: null,
    runs: [],
    causes: 0,
    entries: 0,
  };
}

/** Steps that a rollback did not undo although it tried, with the reason. */
interface FailedUndos {
  failed: readonly number[];
  conflicts: readonly number[];
}

/** A rollback ended, or a worker's undo. If an undo failed or met a conflict, the run's agent has an incident. */
export function joinOnFailedUndos(
  core: Pick<EngineCore, "env" | "storeKey">,
  tx: StoreTx,
  run_id: string,
  { failed, conflicts }: FailedUndos,
): void {
  const first = failed[0] ?? conflicts[0];
  if (first === undefined) return;
  const run = loadRun(tx, run_id);
  if (isProbe(run.principal)) return;
  const parts = [
    failed.length === 0 ? [] : `could not undo step ${failed.join(", ")}`,
    conflicts.length === 0 ? [] : `conflict at step ${conflicts.join(", ")}`,
  ];
  joinIncident(core, tx, run, {
    kind: "rollback",
    ref: run_id,
    at_ms: core.env.now(),
    text: `run ${run_id}: ${parts.flat().join("; ")}`,
    run_id,
    step: first,
    tenant: run.tenant,
  });
}

/** Appends an entry of a person. The caller stores the incident. */
export function appendIncidentEntry(
  tx: StoreTx,
  incident: IncidentDoc,
  entry: Omit<IncidentEntryDoc, "incident_id">,
): void {
  const key = `${incident.id}/${String(incident.entries).padStart(6, "0")}`;
  tx.put("incident_entries", key, { incident_id: incident.id, ...entry });
  incident.entries++;
}

/** Ends an incident in place. The next fact opens another one. */
export function endIncident(
  tx: StoreTx,
  incident: IncidentDoc,
  closed: Pick<IncidentDoc, "closed_ms" | "closed_by" | "close_reason">,
): void {
  Object.assign(incident, closed, { status: "closed" });
  tx.put("incidents", incident.id, incident);
}
