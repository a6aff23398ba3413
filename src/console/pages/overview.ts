/**
 * Overview page: calls of the last day by decision, pending requests, alerts, runs that need attention, latest records.
 */

import { groupAlerts, groupMessage } from "../../alerts/groups.ts";
import type { ApprovalView } from "../../govern/approvals/approval.ts";
import { listAlerts } from "../../operations/alerts.ts";
import { approveRequest } from "../../operations/approvals/approvals.ts";
import { activeHalts } from "../../operations/halts.ts";
import { listIncidents } from "../../operations/incidents/incidents.ts";
import type { IncidentView } from "../../operations/incidents/report.ts";
import { countRecords, ledgerOf } from "../../operations/ledger-reader.ts";
import { listUndoDeadlines } from "../../operations/runs/horizon.ts";
import type { FoundRun } from "../../operations/runs/run-search.ts";
import { searchRuns } from "../../operations/runs/search.ts";
import { COUNTED_DECISIONS, type DecisionName, type HourDecisions } from "../hour-counts.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../page-context.ts";
import { cardBlock, commandBlock, emptyState, pageHead } from "../parts/blocks.ts";
import { decisionsChart } from "../parts/decisions-chart.ts";
import { hashText, runLink } from "../parts/ids.ts";
import { formatCountOf, markLabel, severityMark } from "../parts/marks.ts";
import { checkRecordLines, trailList } from "../parts/records.ts";
import { formatAgo, formatSpan, formatTimesIn } from "../parts/time.ts";
import { type ListedAlert, sortBySeverity } from "./alerts.ts";
import { openApprovals } from "./approvals/approval-data.ts";
import { incidentPath } from "./incidents/incident-list.ts";

const FEW = 6;

export const overviewRoutes = [getRoute("/", overview), getRoute("/edge", edge)];

async function overview(ctx: PageContext): Promise<PageAnswer> {
  const { core } = ctx.app;
  const now = core.env.now();
  const [day, open, alerts, attention, records, { undos }, { incidents }] = await Promise.all([
    ctx.counts.lastDay(now),
    openApprovals(ctx),
    recentAlerts(ctx),
    ctx.call(searchRuns, { attention: true, limit: FEW }),
    countRecords(ctx.app),
    ctx.call(listUndoDeadlines, { limit: FEW }),
    ctx.call(listIncidents, { status: "open", limit: FEW }),
  ]);
  const newest = await ledgerOf(ctx.app).records({ order: "desc", limit: 8 });
  const totals = sum(day.hours);
  const body = safeHtml`${pageHead("Overview", "The last 24 hours, and everything that needs you now.")}
<div id="overview" data-live>
<div class="tiles">${tiles(ctx, { totals, open, alerts, wanting: attention.runs.length, records })}${horizonTile(undos, now)}</div>
${
  records === 0
    ? firstSteps(ctx)
    : safeHtml`${cardBlock({ title: "Calls per hour" }, decisionsChart("day", chartWords(totals), day.hours), day.whole ? null : safeHtml`<p class="soft">Older hours are still being counted. They appear when this page refreshes.</p>`)}
<div class="columns">${waitingCard(ctx, open, now)}${attentionCard({ incidents, alerts, runs: attention.runs }, now)}</div>
${cardBlock({ title: "Latest records", aside: safeHtml`<a href="/console/evidence#ledger">All records</a>` }, trailList(checkRecordLines(newest), { runs: true }))}`
}</div>`;
  return { page: { title: "Overview", nav: "overview", body, live: "/console" } };
}

const ALERTS_MS = 2_000;
const evaluated = new WeakMap<object, { at: number; halts: string; alerts: Promise<ListedAlert[]> }>();

/**
 * Returns the active alerts, worst first. Evaluating them reads the ledger's last minutes, so requests within two
 * seconds share one result. A new halt invalidates it.
 */
async function recentAlerts(ctx: PageContext): Promise<ListedAlert[]> {
  const at = ctx.app.core.env.elapsed();
  const halts = (await activeHalts(ctx.app)).map(({ id }) => id).join();
  const known = evaluated.get(ctx.app);
  if (known !== undefined && known.halts === halts && at - known.at < ALERTS_MS) return known.alerts;
  const alerts = ctx.call(listAlerts, {}).then((found) => sortBySeverity(found.alerts));
  evaluated.set(ctx.app, { at, halts, alerts });
  return alerts;
}

/** Empty page for live refresh: pages without live regions fetch it to update their frame. */
async function edge(): Promise<PageAnswer> {
  return { page: { title: "svc", nav: null, body: safeHtml`<h1>Console</h1>` } };
}

function sum(hours: readonly HourDecisions[]): Record<DecisionName, number> {
  return Object.fromEntries(
    COUNTED_DECISIONS.map((name) => [
      name,
      hours.reduce((total, hour) => total + Math.max(0, hour[name]), 0),
    ]),
  ) as Record<DecisionName, number>;
}

function chartWords(totals: Record<DecisionName, number>): string {
  const { allowed, would_block, waiting, refused } = totals;
  return `Calls of the last 24 hours by decision: ${allowed} allowed, ${would_block} would be blocked, ${waiting} held for approval, ${refused} refused.`;
}

function tile(label: string, value: TemplateValue, note: TemplateValue, to: string, tone = ""): HtmlFragment {
  return safeHtml`<a class="tile ${tone}" href="${to}"><span class="tile-label">${label}</span><span class="tile-value">${value}</span><span class="tile-note">${note}</span></a>`;
}

interface Glanced {
  totals: Record<DecisionName, number>;
  open: readonly ApprovalView[];
  alerts: readonly ListedAlert[];
  /** Number of runs that need attention. */
  wanting: number;
  records: number;
}

function tiles(ctx: PageContext, { totals, open, alerts, wanting, records }: Glanced): HtmlFragment[] {
  const now = ctx.app.core.env.now();
  const calls = COUNTED_DECISIONS.reduce((total, name) => total + totals[name], 0);
  const { waiting, refused } = totals;
  const oldest = open[0];
  const { last } = ctx.checkup;
  return [
    tile(
      "Calls in 24 hours",
      calls.toLocaleString("en"),
      waiting + refused === 0
        ? "none blocked"
        : `${waiting + refused} blocked: ${waiting} held for approval, ${refused} refused`,
      "/console/runs",
    ),
    tile(
      "Waiting for approval",
      open.length.toLocaleString("en"),
      oldest === undefined
        ? "no pending requests"
        : `the oldest for ${formatSpan(now - oldest.requested_ms)}`,
      "/console/approvals",
      open.length > 0 ? "warn" : "",
    ),
    tile(
      "Alerts",
      String(groupAlerts(alerts).length),
      alerts.length > 0
        ? alerts[0]!.title
        : wanting === 0
          ? "none active"
          : `${formatCountOf(wanting, "run needs", "runs need")} attention`,
      "/console/alerts",
      alerts.length > 0 ? "bad" : "",
    ),
    tile(
      "Ledger",
      records.toLocaleString("en"),
      last === null
        ? safeHtml`records; not verified here yet`
        : last.ok
          ? safeHtml`records; verified ${formatAgo(last.at_ms, now)}`
          : safeHtml`record ${last.first_bad?.seq ?? ""} is bad`,
      "/console/evidence",
      last?.ok === false ? "bad" : "",
    ),
  ];
}

/** Tile for the undo that expires next. Empty if no undo expires. */
function horizonTile(
  undos: readonly { run_id: string; tool: string; closes_ms: number }[],
  now: number,
): HtmlFragment {
  const [next] = undos;
  if (next === undefined) return emptyHtml;
  return tile(
    "Next undo to expire",
    formatSpan(next.closes_ms - now),
    next.tool,
    `/console/runs/${encodeURIComponent(next.run_id)}#rollback`,
    "warn",
  );
}

/** Only users who can decide are asked to. */
function waitingCard(ctx: PageContext, open: readonly ApprovalView[], now: number): HtmlFragment {
  const word = open.length > 0 && ctx.may(approveRequest) ? "Decide" : "All requests";
  const items = open
    .slice(0, FEW)
    .map(
      (one) =>
        safeHtml`<li><a class="item" href="/console/approvals/${one.id}"><span class="item-main"><code>${one.tool}</code> <span class="soft">for ${one.actor}</span></span><span class="item-side">${formatAgo(one.requested_ms, now)}</span><span class="item-note">${one.reason}</span></a></li>`,
    );
  return cardBlock(
    { title: "Pending requests", aside: safeHtml`<a href="/console/approvals">${word}</a>` },
    items.length === 0
      ? safeHtml`<p class="calm">No pending requests.</p>`
      : safeHtml`<ul class="items">${items}</ul>${open.length > FEW ? safeHtml`<p class="soft">and ${open.length - FEW} more</p>` : null}`,
  );
}

interface Attention {
  incidents: readonly IncidentView[];
  alerts: readonly ListedAlert[];
  runs: readonly FoundRun[];
}

function attentionCard({ incidents, alerts, runs }: Attention, now: number): HtmlFragment {
  const opened = incidents.map(
    (one) =>
      safeHtml`<li><a class="item" href="${incidentPath(one.id)}"><span class="item-main">${markLabel("bad", "incident")} ${one.actor}</span><span class="item-side">${formatAgo(one.opened_ms, now)}</span><span class="item-note">${formatCountOf(one.left, "task")} left, assigned to ${one.assigned_to ?? "nobody"}</span></a></li>`,
  );
  const grouped = groupAlerts(alerts)
    .slice(0, FEW)
    .map(
      ({ first: one, ...group }) =>
        safeHtml`<li><a class="item" href="/console/alerts#${encodeURIComponent(one.id)}"><span class="item-main">${severityMark(one.severity)} ${one.title}</span><span class="item-side">${formatAgo(one.since_ms, now)}</span><span class="item-note">${formatTimesIn(groupMessage({ first: one, ...group }))}</span></a></li>`,
    );
  const known = new Set(alerts.map(({ run_id }) => run_id));
  const others = runs
    .filter(({ run_id }) => !known.has(run_id))
    .map(
      (run) =>
        safeHtml`<li><span class="item"><span class="item-main">${markLabel("warn", "attention")} ${runLink(run.run_id)}</span><span class="item-side">${formatAgo(run.created_ms, now)}</span><span class="item-note">${run.actor}, ${run.unresolved > 0 ? formatCountOf(run.unresolved, "unknown outcome") : "an undo is left"}</span></span></li>`,
    );
  return cardBlock(
    { title: "Needs attention", aside: safeHtml`<a href="/console/runs?attention=1">Runs</a>` },
    opened.length + grouped.length + others.length === 0
      ? safeHtml`<p class="calm">Nothing needs attention.</p>`
      : safeHtml`<ul class="items">${opened}${grouped}${others.slice(0, FEW)}</ul>`,
  );
}

/** First steps for a service without decisions. */
function firstSteps(ctx: PageContext): HtmlFragment {
  const { manifests } = ctx.app.core.rules();
  return cardBlock(
    { title: "No decisions yet" },
    emptyState(
      "Three steps to the first decision",
      safeHtml`<ol class="steps-list"><li>${
        manifests.all.length === 0
          ? safeHtml`Describe your tools in manifests and pass their directory: ${commandBlock("svc server -m manifests/")}`
          : safeHtml`${formatCountOf(manifests.all.length, "manifest is", "manifests are")} loaded: <a href="/console/tools">see the tools</a>.`
      }</li><li>Create a key for an agent (<a href="/console/settings#keys">Settings</a>, as an admin) and let it open a run: <code>POST /v1/runs</code>.</li><li>Before each call, the agent sends <code>POST /v1/runs/{id}/intents</code> and makes the call only on <code>allow</code>.</li></ol>`,
      safeHtml`<p class="soft">Every decision then appears here and in the ledger. Until then, the ledger head is ${hashText("0".repeat(64), "the head")}</p>`,
    ),
  );
}
