/** The list of incidents: what needs a person, newest first. */
import { INCIDENT_CAUSES } from "../../../govern/incidents/incident.ts";
import { listIncidents } from "../../../operations/incidents/incidents.ts";
import type { IncidentView } from "../../../operations/incidents/report.ts";
import { type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { emptyState, pageHead, pagerLinks, tableBlock } from "../../parts/blocks.ts";
import { formatCountOf, markLabel } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";

export const incidentListRoutes = [getRoute("/incidents", incidents)];

export const incidentPath = (id: string): string => `/console/incidents/${encodeURIComponent(id)}`;

export const actorPath = (actor: string): string => `/console/actors/${encodeURIComponent(actor)}`;

export function incidentMark({ status, left }: Pick<IncidentView, "status" | "left">): HtmlFragment {
  return status === "open"
    ? markLabel("warn", `${formatCountOf(left, "task")} left`)
    : markLabel("good", "closed");
}

async function incidents(ctx: PageContext): Promise<PageAnswer> {
  const all = ctx.query["status"] === "all";
  const query = { status: all ? undefined : ("open" as const), cursor: ctx.query["cursor"] };
  const { incidents: found, next_cursor } = await ctx.call(listIncidents, query);
  const other = all
    ? safeHtml`<a class="button" href="/console/incidents">Open only</a>`
    : safeHtml`<a class="button" href="/console/incidents?status=all">Include closed</a>`;
  const lead = "An incident collects everything about one agent that a person has to finish.";
  const body = safeHtml`${pageHead("Incidents", lead, other)}
<div id="incidents" data-live>${found.length === 0 ? noIncidents(all) : incidentTable(ctx, found)}</div>
${pagerLinks("/console/incidents", ctx.query, next_cursor)}`;
  const live = all ? "/console/incidents?status=all" : "/console/incidents";
  return { page: { title: "Incidents", nav: "alerts", body, live } };
}

function noIncidents(all: boolean): HtmlFragment {
  return emptyState(
    all ? "No incidents yet" : "No incident is open",
    safeHtml`<p>Takeback opens one after a containment, a halt of one agent, a failed undo, an outcome that stays unknown, a call without a decision, or a failed probe. <a href="/console/alerts">See the alerts</a></p>`,
  );
}

function incidentTable(ctx: PageContext, found: readonly IncidentView[]): HtmlFragment {
  const now = ctx.app.core.env.now();
  const rows = found.map((one) => [
    safeHtml`<a href="${incidentPath(one.id)}">${one.actor}</a>${one.tenant === null ? null : safeHtml` <span class="soft">${one.tenant}</span>`}`,
    incidentMark(one),
    one.causes[0] === undefined ? "" : INCIDENT_CAUSES[one.causes[0].kind].label,
    formatAgo(one.opened_ms, now),
    one.assigned_to ?? safeHtml`<span class="soft">nobody</span>`,
  ]);
  return tableBlock("Incidents", ["Agent", "State", "Opened because", "Opened", "Assigned to"], rows);
}
