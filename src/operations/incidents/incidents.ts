/** Incidents: a view over the records of one agent, with notes, an assignee and a closing by people. */
import * as z from "zod";
import {
  INCIDENT_ENTRY_KINDS,
  INCIDENT_STATUSES,
  type IncidentDoc,
  type IncidentEntryDoc,
} from "../../govern/incidents/incident.ts";
import { appendIncidentEntry, endIncident } from "../../govern/incidents/join-incident.ts";
import { conflictError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { drawPdf } from "../pdf/host.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { boundedText, givenId, pagingFields, personsReason } from "../schemas.ts";
import { INCIDENT_FORMATS, INCIDENT_TYPES, writeIncident } from "./formats.ts";
import { type IncidentView, incidentReport, incidentShape, incidentView } from "./report.ts";
import { incidentContext, trySweep, wholeApp } from "./sweep.ts";
import { incidentTasks } from "./tasks.ts";

const entryShape = z.strictObject({
  kind: z.enum(INCIDENT_ENTRY_KINDS),
  text: z.string(),
  by: z.string(),
  at_ms: z.int(),
});
const incidentId = givenId("inc_<uuid>");

export const listIncidents = defineOperation({
  id: "list_incidents",
  summary: "List incidents, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({ status: z.enum(INCIDENT_STATUSES).optional(), ...pagingFields }),
  output: z.strictObject({ incidents: z.array(incidentShape), next_cursor: nullableSchema(z.string()) }),
  async run({ app }, { status, limit = SERVICE_LIMITS.page_default, cursor }) {
    await trySweep(app);
    const after = positionOf(cursor);
    const query = { tag: status, order: "desc", limit: limit + 1, after } as const;
    const rows = await app.core.store.list("incidents", query);
    const { page, next } = cutPage(rows, limit);
    const incidents: IncidentView[] = [];
    for (const { doc } of page) incidents.push(await incidentView(app, doc));
    return { incidents, next_cursor: next };
  },
});

async function knownIncident({ core }: Pick<ServiceApp, "core">, id: string): Promise<IncidentDoc> {
  const incident = await core.store.get("incidents", id);
  if (incident === undefined) throw unknownIncident(id);
  return incident;
}

const unknownIncident = (id: string) => notFoundError(`unknown incident ${id}`, "unknown_incident");

export const getIncident = defineOperation({
  id: "get_incident",
  summary: "An incident with its timeline and remaining tasks, as JSON, Markdown or a PDF",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    incident_id: incidentId,
    format: z
      .enum([...INCIDENT_FORMATS, "pdf"])
      .optional()
      .meta({ description: "json by default" }),
  }),
  output: { content_types: ["application/json", "text/markdown", "application/pdf"] },
  errors: { not_found: "unknown incident, or another tenant's" },
  async run({ app, signal }, { incident_id, format = "json" }) {
    await knownIncident(app, incident_id);
    await trySweep(app);
    const report = await incidentReport(app, await knownIncident(app, incident_id));
    if (format === "pdf")
      return new DocumentContent(
        "application/pdf",
        await drawPdf("incident", report, signal),
        `${incident_id}.pdf`,
      );
    return new DocumentContent(INCIDENT_TYPES[format], writeIncident(report, format));
  },
});

/** Changes an open incident in one unit. */
function changeIncident(
  { core }: ServiceApp,
  id: string,
  entry: Pick<IncidentEntryDoc, "kind" | "text" | "by">,
  change: (incident: IncidentDoc) => IncidentDoc = (incident) => incident,
) {
  return core.store.transact({
    needs: [["incidents", id]],
    run(tx) {
      const stored = tx.get("incidents", id);
      if (stored === undefined) throw unknownIncident(id);
      if (stored.status === "closed")
        throw conflictError("incident_closed", `incident ${id} is closed; it is not reopened`);
      if (entry.kind !== "closed" && stored.entries >= SERVICE_LIMITS.incident_entries)
        throw conflictError("incident_full", `incident ${id} holds ${stored.entries} entries; close it`);
      const incident = change({ ...stored });
      const written = { ...entry, at_ms: core.env.now() };
      appendIncidentEntry(tx, incident, written);
      if (entry.kind !== "closed") tx.put("incidents", id, incident);
      else
        endIncident(tx, incident, {
          closed_ms: written.at_ms,
          closed_by: entry.by,
          close_reason: entry.text === "" ? null : entry.text,
        });
      return written;
    },
  });
}

const closedOrFull = "the incident is closed, or holds the most entries it can";

export const addIncidentNote = defineOperation({
  id: "add_incident_note",
  summary: "Add a note to an open incident; notes cannot be changed",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({ incident_id: incidentId, text: personsReason.describe("The note.") }),
  output: entryShape,
  errors: { not_found: "unknown incident, or another tenant's", conflict: closedOrFull },
  async run({ app, principal }, { incident_id, text }) {
    const entry = { kind: "note", text: app.core.redact(text), by: principal.name } as const;
    return changeIncident(app, incident_id, entry);
  },
});

export const assignIncident = defineOperation({
  id: "assign_incident",
  summary: "Assign an open incident to a person",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({ incident_id: incidentId, to: boundedText(256) }),
  output: entryShape,
  errors: { not_found: "unknown incident, or another tenant's", conflict: closedOrFull },
  async run({ app, principal }, { incident_id, to }) {
    const assigned_to = app.core.redact(to);
    const entry = { kind: "assigned", text: assigned_to, by: principal.name } as const;
    return changeIncident(app, incident_id, entry, (incident) => ({ ...incident, assigned_to }));
  },
});

/** Tasks of the whole service count too, but within a tenant the message gives no number of them. */
async function assertNothingLeft(app: ServiceApp, incident: IncidentDoc): Promise<void> {
  const whole = wholeApp(app);
  if ((await incidentTasks(whole, await incidentContext(whole, incident))).length === 0) return;
  const { left } = await incidentView(app, incident);
  const what = left === 0 ? "the service has tasks" : formatCountOf(left, "task is", "tasks are");
  throw invalidError(`reason: ${what} left; give a reason to close it`);
}

export const closeIncident = defineOperation({
  id: "close_incident",
  summary: "Close an incident; with something left it needs a reason",
  role: "operator",
  within_tenant: true,
  input: z.strictObject({ incident_id: incidentId, reason: personsReason.optional() }),
  output: entryShape,
  errors: { not_found: "unknown incident, or another tenant's", conflict: "it is closed" },
  async run({ app, principal }, { incident_id, reason }) {
    const incident = await knownIncident(app, incident_id);
    if (reason === undefined && incident.status === "open") await assertNothingLeft(app, incident);
    const why = reason === undefined ? "" : app.core.redact(reason);
    return changeIncident(app, incident_id, { kind: "closed", text: why, by: principal.name });
  },
});
