/** The first page: how much is decided and how, what waits for a person, what needs attention, is the ledger sound. */
import type { Alert } from "../../alerts/kinds.ts";
import { listAlerts } from "../../app/operations/alerts.ts";
import { activeHalts } from "../../app/operations/halts.ts";
import { horizon } from "../../app/operations/horizon.ts";
import type { FoundRun } from "../../app/operations/search/run-search.ts";
import { searchRuns } from "../../app/operations/search.ts";
import type { ApprovalView } from "../../model/approval.ts";
import { shownRecords } from "../../store/confined.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { DECISIONS, type DecisionName, type Hour } from "../hour-counts.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { card, command, empty, pageHead } from "../parts/blocks.ts";
import { hoursChart, legend } from "../parts/charts.ts";
import { hashText, runLink } from "../parts/ids.ts";
import { mark, plural, severityMark } from "../parts/marks.ts";
import { trail, trailOf } from "../parts/records.ts";
import { ago, span, timed } from "../parts/time.ts";
import { worstFirst } from "./alerts.ts";
import { openApprovals } from "./approval-data.ts";

const FEW = 6;

export const overviewRoutes = [get("/", overview), get("/edge", edge)];

async function overview(ctx: Ctx): Promise<Answer> {
  const { core } = ctx.app;
  const now = core.env.now();
  const [day, open, alerts, attention, records, { undos }] = await Promise.all([
    ctx.counts.lastDay(now),
    openApprovals(ctx),
    recentAlerts(ctx),
    ctx.call(searchRuns, { attention: true, limit: FEW }),
    shownRecords(core.store),
    ctx.call(horizon, { limit: FEW }),
  ]);
  const newest = await core.store.records({ order: "desc", limit: 8 });
  const totals = sum(day.hours);
  const body = html`${pageHead("Overview", "The last 24 hours, and what wants a person now.")}
<div id="overview" data-live>
<div class="tiles">${tiles(ctx, { totals, open, alerts, wanting: attention.runs.length, records })}${horizonTile(undos, now)}</div>
${
  records === 0
    ? firstSteps(ctx)
    : html`${card({ title: "Calls per hour", aside: legend(totals) }, hoursChart(day.hours, chartWords(totals)), day.whole ? null : html`<p class="soft">A long ledger: older hours are still being counted and fill in as this page is read again.</p>`)}
<div class="columns">${waitingCard(open, now)}${attentionCard(alerts, attention.runs, now)}</div>
${card({ title: "Latest records", aside: html`<a href="/console/evidence#ledger">All records</a>` }, trail(trailOf(newest), { runs: true }))}`
}</div>`;
  return { page: { title: "Overview", nav: "overview", body, live: "/console" } };
}

const ALERTS_MS = 2_000;
const evaluated = new WeakMap<object, { at: number; halts: string; alerts: Promise<Alert[]> }>();

/**
 * Evaluating alerts reads the ledger's last minutes; those who look at the same moment share one reading, but a halt
 * is shown at once.
 */
async function recentAlerts(ctx: Ctx): Promise<Alert[]> {
  const at = ctx.app.core.env.elapsed();
  const halts = (await activeHalts(ctx.app)).map(({ id }) => id).join();
  const known = evaluated.get(ctx.app);
  if (known !== undefined && known.halts === halts && at - known.at < ALERTS_MS) return known.alerts;
  const alerts = ctx.call(listAlerts, {}).then((found) => worstFirst(found.alerts));
  evaluated.set(ctx.app, { at, halts, alerts });
  return alerts;
}

/** Only what stands around every page, for pages of which nothing else is live. */
async function edge(): Promise<Answer> {
  return { page: { title: "svc", nav: null, body: html`<h1>Console</h1>` } };
}

function sum(hours: readonly Hour[]): Record<DecisionName, number> {
  return Object.fromEntries(
    DECISIONS.map((name) => [name, hours.reduce((total, hour) => total + Math.max(0, hour[name]), 0)]),
  ) as Record<DecisionName, number>;
}

function chartWords(totals: Record<DecisionName, number>): string {
  const { allowed, would_block, waiting, refused } = totals;
  return `Calls of the last 24 hours by decision: ${allowed} allowed, ${would_block} would be blocked, ${waiting} held for approval, ${refused} refused.`;
}

function tile(label: string, value: Part, note: Part, to: string, tone = ""): Html {
  return html`<a class="tile ${tone}" href="${to}"><span class="tile-label">${label}</span><span class="tile-value">${value}</span><span class="tile-note">${note}</span></a>`;
}

interface Glanced {
  totals: Record<DecisionName, number>;
  open: readonly ApprovalView[];
  alerts: readonly Alert[];
  /** Runs that want a look. */
  wanting: number;
  records: number;
}

function tiles(ctx: Ctx, { totals, open, alerts, wanting, records }: Glanced): Html[] {
  const now = ctx.app.core.env.now();
  const calls = DECISIONS.reduce((total, name) => total + totals[name], 0);
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
      oldest === undefined ? "nobody waits" : `the oldest for ${span(now - oldest.requested_ms)}`,
      "/console/approvals",
      open.length > 0 ? "warn" : "",
    ),
    tile(
      "Alerts",
      String(alerts.length),
      alerts.length > 0
        ? alerts[0]!.title
        : wanting === 0
          ? "all quiet"
          : `${plural(wanting, "run wants", "runs want")} a look`,
      "/console/alerts",
      alerts.length > 0 ? "bad" : "",
    ),
    tile(
      "Ledger",
      records.toLocaleString("en"),
      last === null
        ? html`records; not verified here yet`
        : last.ok
          ? html`records; verified ${ago(last.at_ms, now)}`
          : html`record ${last.first_bad?.seq ?? ""} is bad`,
      "/console/evidence",
      last?.ok === false ? "bad" : "",
    ),
  ];
}

/** Only where a manifest sets a time: most undos work for ever. */
function horizonTile(
  undos: readonly { run_id: string; tool: string; closes_ms: number }[],
  now: number,
): Html {
  const [next] = undos;
  if (next === undefined) return nothing;
  return tile(
    "Next undo to close",
    span(next.closes_ms - now),
    next.tool,
    `/console/runs/${encodeURIComponent(next.run_id)}#rollback`,
    "warn",
  );
}

function waitingCard(open: readonly ApprovalView[], now: number): Html {
  const items = open
    .slice(0, FEW)
    .map(
      (one) =>
        html`<li><a class="item" href="/console/approvals/${one.id}"><span class="item-main"><code>${one.tool}</code> <span class="soft">for ${one.actor}</span></span><span class="item-side">${ago(one.requested_ms, now)}</span><span class="item-note">${one.reason}</span></a></li>`,
    );
  return card(
    { title: "Waiting for a person", aside: html`<a href="/console/approvals">Decide</a>` },
    items.length === 0
      ? html`<p class="calm">Nobody waits.</p>`
      : html`<ul class="items">${items}</ul>${open.length > FEW ? html`<p class="soft">and ${open.length - FEW} more</p>` : null}`,
  );
}

function attentionCard(alerts: readonly Alert[], runs: readonly FoundRun[], now: number): Html {
  const told = alerts
    .slice(0, FEW)
    .map(
      (one) =>
        html`<li><a class="item" href="/console/alerts#${encodeURIComponent(one.id)}"><span class="item-main">${severityMark(one.severity)} ${one.title}</span><span class="item-side">${ago(one.since_ms, now)}</span><span class="item-note">${timed(one.message)}</span></a></li>`,
    );
  const known = new Set(alerts.map(({ run_id }) => run_id));
  const others = runs
    .filter(({ run_id }) => !known.has(run_id))
    .map(
      (run) =>
        html`<li><span class="item"><span class="item-main">${mark("warn", "attention")} ${runLink(run.run_id)}</span><span class="item-side">${ago(run.created_ms, now)}</span><span class="item-note">${run.actor}, ${plural(run.unresolved, "unknown outcome")}</span></span></li>`,
    );
  return card(
    { title: "Needs attention", aside: html`<a href="/console/runs?attention=1">Runs</a>` },
    told.length + others.length === 0
      ? html`<p class="calm">All quiet.</p>`
      : html`<ul class="items">${told}${others.slice(0, FEW)}</ul>`,
  );
}

/** A service that has decided nothing yet: how the first decision comes about. */
function firstSteps(ctx: Ctx): Html {
  const { manifests } = ctx.app.core.rules();
  return card(
    { title: "Nothing was decided yet" },
    empty(
      "Three steps to the first decision",
      html`<ol class="steps-list"><li>${
        manifests.all.length === 0
          ? html`Describe your tools in manifests and name their folder: ${command("svc server -m manifests/")}`
          : html`${plural(manifests.all.length, "manifest is", "manifests are")} loaded: <a href="/console/tools">see the tools</a>.`
      }</li><li>Give an agent a key (<a href="/console/settings#keys">Settings</a>, for admins), and let it open a run: <code>POST /v1/runs</code>.</li><li>Before each call the agent asks <code>POST /v1/runs/{id}/intents</code>, and goes ahead only on <code>allow</code>.</li></ol>`,
      html`<p class="soft">Every answer will stand here and on the ledger, whose head is ${hashText("0".repeat(64), "the head")} until then.</p>`,
    ),
  );
}
