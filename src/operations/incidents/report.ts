/** Views of an incident: one shape in lists, and one with tasks, notes and timeline. */
import * as z from "zod";
import {
  INCIDENT_CAUSE_KINDS,
  INCIDENT_STATUSES,
  type IncidentDoc,
} from "../../govern/incidents/incident.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { tenantOf } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { incidentAlerts } from "./incident-alerts.ts";
import { permanentSteps } from "./permanent-steps.ts";
import { incidentContext } from "./sweep.ts";
import { type IncidentContext, incidentTasks } from "./tasks.ts";
import { incidentEntries, incidentTimeline } from "./timeline.ts";

export const incidentShape = z.strictObject({
  id: z.string(),
  actor: z.string(),
  tenant: nullableSchema(z.string()),
  status: z.enum(INCIDENT_STATUSES),
  opened_ms: z.int(),
  closed_ms: nullableSchema(z.int()),
  closed_by: nullableSchema(z.string()).meta({ description: "null if it ended because no task was left" }),
  close_reason: nullableSchema(z.string()),
  assigned_to: nullableSchema(z.string()),
  runs: z.array(z.string()),
  causes: z.array(
    z.strictObject({
      kind: z.enum(INCIDENT_CAUSE_KINDS),
      at_ms: z.int(),
      text: z.string(),
      run_id: nullableSchema(z.string()),
      step: nullableSchema(z.int()),
    }),
  ),
  left: z.int().meta({ description: "the number of tasks" }),
});
export type IncidentView = z.infer<typeof incidentShape>;

const CAUSES_LISTED = 100;

/** What the caller may see of it: a cause that concerns the whole service is not shown within a tenant. */
async function visibleContext(app: ServiceApp, incident: IncidentDoc): Promise<IncidentContext> {
  const { causes } = await incidentContext(app, incident);
  const own = tenantOf(app.core.store);
  return { incident, causes: own === null ? causes : causes.filter(({ tenant }) => tenant === own) };
}

async function viewWith(app: ServiceApp, { incident, causes }: IncidentContext): Promise<IncidentView> {
  const { id, actor, tenant, status, opened_ms, closed_ms, closed_by, close_reason } = incident;
  const left = status === "open" ? (await incidentTasks(app, { incident, causes })).length : 0;
  const { assigned_to, runs } = incident;
  return {
    ...{ id, actor, tenant, status, opened_ms, closed_ms, closed_by, close_reason, assigned_to },
    runs: [...runs],
    causes: causes
      .slice(-CAUSES_LISTED)
      .map(({ kind, at_ms, text, run_id, step }) => ({ kind, at_ms, text, run_id, step })),
    left,
  };
}

/** The incident as lists show it to this caller. */
export const incidentView = async (app: ServiceApp, incident: IncidentDoc): Promise<IncidentView> =>
  viewWith(app, await visibleContext(app, incident));

/** The facts of an incident as they are now. */
export async function incidentReport(app: ServiceApp, incident: IncidentDoc) {
  const { core, version } = app;
  const context = await visibleContext(app, incident);
  const entries = await incidentEntries(core.store, incident.id);
  const { lines, more } = await incidentTimeline(core.store, context, entries);
  const tasks = context.incident.status === "open" ? await incidentTasks(app, context) : [];
  const permanent = await permanentSteps(core.store, incident.runs, core.env.now());
  return {
    ...(await viewWith(app, context)),
    tasks,
    cannot_undo: permanent.steps,
    cannot_undo_more: permanent.more,
    alerts: await incidentAlerts(app, incident),
    notes: entries.map(({ kind, text, by, at_ms }) => ({ kind, text, by, at_ms })),
    timeline: lines,
    more,
    generated_ms: core.env.now(),
    made_by: `svc ${version}`,
  };
}
export type IncidentReport = Awaited<ReturnType<typeof incidentReport>>;
