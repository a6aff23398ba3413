/** The agents, tenants and runs that a halt or a containment is about. A tenant bounds what its people see of it. */
import type { HaltScope, StoredHalt } from "../../govern/approvals/approval.ts";
import type { EngineCore } from "../../govern/core.ts";
import type { IncidentSubject } from "../../govern/incidents/incident.ts";
import { joinIncident } from "../../govern/incidents/join-incident.ts";
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import { PROBE_ACTOR } from "../../govern/roles.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { globMatches, isGlob } from "../../kernel/text/glob.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ServiceApp } from "../app.ts";

export interface NamedSubject extends IncidentSubject {
  runs: readonly string[];
}

/** The newest records of the agent that are read for its tenants and runs. */
const NEWEST_RECORDS = 500;
const DAY_MS = 86_400_000;

/** Returns nothing unless the halt names exactly one agent. The probe halts its own agent, which opens no incident. */
export async function subjectsOfHalt(
  app: ServiceApp,
  { actor, tenant }: HaltScope,
  literal = false,
): Promise<NamedSubject[]> {
  if (actor === undefined || actor === null || actor === "" || (isGlob(actor) && !literal)) return [];
  if (actor === PROBE_ACTOR) return [];
  return subjectsOf(app, actor, tenant ?? null, []);
}

export async function subjectsOfContainment(
  app: ServiceApp,
  { tenant }: { tenant: string | null },
  { actors, runs }: { actors: readonly string[]; runs: readonly RunDoc[] },
): Promise<NamedSubject[]> {
  const subjects: NamedSubject[] = [];
  for (const actor of actors) {
    if (actor === PROBE_ACTOR) continue;
    const own = runs.filter((run) => run.actor === actor);
    subjects.push(...(await subjectsOf(app, actor, tenant, own)));
  }
  return subjects;
}

/** One subject for each tenant in which the agent has a key, a run or a recent call. */
async function subjectsOf(
  app: ServiceApp,
  actor: string,
  within: string | null,
  known: readonly RunDoc[],
): Promise<NamedSubject[]> {
  const runs = new Map<string | null, Set<string>>();
  const add = (tenant: string | null, run_id?: string) => {
    if (within !== null && (tenant === null || !globMatches(within, tenant))) return;
    const ids = runs.get(tenant) ?? new Set<string>();
    runs.set(tenant, ids);
    if (run_id !== undefined) ids.add(run_id);
  };
  for (const { run_id, tenant } of known) add(tenant, run_id);
  for (const { run_id, tenant } of await recentCalls(app.core, actor)) add(tenant ?? null, run_id);
  for (const { name, tenant } of await (app.keys?.list() ?? Promise.resolve([])).catch(() => []))
    if (name === actor) add(tenant);
  if (runs.size === 0) runs.set(within !== null && isGlob(within) ? null : within, new Set());
  return [...runs].map(([tenant, ids]) => ({ actor, tenant, runs: [...ids] }));
}

async function recentCalls({ store, env }: EngineCore, actor: string): Promise<LedgerRecord[]> {
  const since_ms = env.now() - DAY_MS;
  const lines = await store.records({ actor, since_ms, order: "desc", limit: NEWEST_RECORDS });
  const records = lines.map((line) => JSON.parse(line) as LedgerRecord);
  return records.filter(({ run_id }) => run_id !== undefined).reverse();
}

export function joinOnHalt(
  core: EngineCore,
  tx: StoreTx,
  halt: StoredHalt,
  subjects: readonly NamedSubject[],
): void {
  for (const subject of subjects)
    joinIncident(
      core,
      tx,
      subject,
      {
        kind: "halt",
        ref: halt.id,
        at_ms: halt.created_ms,
        text: `${halt.by} halted ${subject.actor}: ${halt.reason}`,
        run_id: null,
        step: null,
        tenant: halt.scope.tenant,
      },
      subject.runs,
    );
}

export function joinOnContainment(
  core: EngineCore,
  tx: StoreTx,
  job: ContainmentDoc,
  subjects: readonly NamedSubject[],
): void {
  for (const subject of subjects)
    joinIncident(
      core,
      tx,
      subject,
      {
        kind: "containment",
        ref: job.id,
        at_ms: job.started_ms,
        text: `${job.by} contained ${subject.actor}: ${job.reason}`,
        run_id: null,
        step: null,
        tenant: job.tenant,
      },
      subject.runs,
    );
}
