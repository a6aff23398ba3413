/**
 * Opens incidents for facts that time alone creates, and ends incidents with nothing left. The server sweeps every few
 * seconds, and each listing sweeps first, so a command on local data needs no server.
 */

import { stepKey } from "../../govern/document-keys.ts";
import type { IncidentCause, IncidentDoc, IncidentSubject } from "../../govern/incidents/incident.ts";
import {
  endIncident,
  incidentNeeds,
  joinIncident,
  onceCauseKey,
} from "../../govern/incidents/join-incident.ts";
import { PROBE_KEY, type ProbeState } from "../../govern/port/docs.ts";
import { allRows } from "../../govern/port/pages.ts";
import { isProbe, PROBE_ACTOR } from "../../govern/roles.ts";
import type { StepDoc } from "../../govern/runs/run.ts";
import { messageOf } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { type IncidentContext, incidentTasks } from "./tasks.ts";

interface FoundCause {
  subject: IncidentSubject;
  cause: IncidentCause;
}

/** The app without a tenant filter. Remaining tasks of every tenant decide whether an incident ends. */
export function wholeApp(app: ServiceApp): ServiceApp {
  const store = unconfinedStore(app.core.store);
  if (store === app.core.store) return app;
  return Object.create(app, { core: { value: { ...app.core, store }, enumerable: true } }) as ServiceApp;
}

export async function sweepIncidents(within: ServiceApp): Promise<void> {
  const app = wholeApp(within);
  await openFound(app);
  for await (const { doc } of allRows(app.core.store, "incidents", { tag: "open" }))
    await endIfDone(app, doc);
}

/** Sweeps before a listing. A store that takes no writes must not hide the incidents. */
export async function trySweep(app: ServiceApp): Promise<void> {
  await sweepIncidents(app).catch((error: unknown) =>
    app.log.warn("incidents could not be swept", { error: messageOf(error) }),
  );
}

async function openFound({ core }: ServiceApp): Promise<void> {
  for (const source of [unknownOutcomes, brokenProbe])
    for await (const { subject, cause } of source(core))
      await core.store.transact({
        needs: incidentNeeds([subject]),
        run: (tx) => joinIncident(core, tx, subject, cause),
      });
}

/** Steps without a known outcome for as long as their alert needs. A cause is recorded once, and then passed over. */
async function* unknownOutcomes({ store, env }: ServiceApp["core"]): AsyncGenerator<FoundCause> {
  const until = env.now() - SERVICE_LIMITS.unresolved_after_ms;
  for (const query of [{ tag: "attention" }, { tag: "open", to: until }])
    for await (const { doc: run } of allRows(store, "runs", query)) {
      if (run.open + run.uncertain === 0 || isProbe(run.principal)) continue;
      const tag = ["intended", "uncertain"];
      for await (const { doc } of allRows(store, "steps", { owner: run.run_id, tag })) {
        const since_ms = unknownSince(doc);
        const ref = stepKey(run.run_id, doc.step);
        if (since_ms > until || (await store.get("incident_causes", onceCauseKey("outcome", ref)))) continue;
        const text = `Outcome still unknown: ${doc.tool} in ${run.run_id}`;
        const { run_id, step } = doc;
        const cause = { kind: "outcome", ref, at_ms: env.now(), text, run_id, step } as const;
        yield { subject: run, cause: { ...cause, tenant: run.tenant } };
      }
    }
}

const unknownSince = ({ status, finished_ms, intended_ms }: StepDoc): number =>
  status === "uncertain" ? (finished_ms ?? intended_ms) : intended_ms;

async function* brokenProbe({ store }: ServiceApp["core"]): AsyncGenerator<FoundCause> {
  const last = (await store.get("meta", PROBE_KEY)) as ProbeState | undefined;
  if (last === undefined || last.broken.length === 0) return;
  const { at_ms, broken } = last;
  const ref = String(at_ms);
  if ((await store.get("incident_causes", onceCauseKey("probe", ref))) !== undefined) return;
  const text = `The probe found BROKEN: ${broken.join("; ")}`;
  yield {
    subject: { actor: PROBE_ACTOR, tenant: null },
    cause: { kind: "probe", ref, at_ms, text, run_id: null, step: null, tenant: null },
  };
}

export async function incidentContext({ core }: ServiceApp, incident: IncidentDoc): Promise<IncidentContext> {
  const causes = [];
  for await (const { doc } of allRows(core.store, "incident_causes", { owner: incident.id }))
    causes.push(doc);
  return { incident, causes };
}

/** Ends it unless something is left, a containment is running, or another fact joined in the meantime. */
async function endIfDone(app: ServiceApp, incident: IncidentDoc): Promise<void> {
  const { store, env } = app.core;
  const context = await incidentContext(app, incident);
  if ((await incidentTasks(app, context)).length > 0 || (await isContaining(app, context))) return;
  await store.transact({
    needs: [["incidents", incident.id]],
    run(tx) {
      const now = tx.get("incidents", incident.id);
      if (now?.status !== "open" || now.causes !== incident.causes) return;
      endIncident(tx, { ...now }, { closed_ms: env.now(), closed_by: null, close_reason: null });
    },
  });
}

async function isContaining({ core }: ServiceApp, { causes }: IncidentContext): Promise<boolean> {
  for (const { kind, ref } of causes)
    if (kind === "containment" && (await core.store.get("containments", ref))?.state === "running")
      return true;
  return false;
}
