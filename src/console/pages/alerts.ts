/** Alerts page: the active alerts, evaluated when the page is rendered. */
import { type AlertGroup, groupAlerts, groupMessage } from "../../alerts/groups.ts";
import { type ActiveAlert, ALERT_KINDS } from "../../alerts/kinds.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { listAlerts } from "../../operations/alerts.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../page-context.ts";
import { cardBlock, emptyState, nextAction, pageHead, tableBlock } from "../parts/blocks.ts";
import { containmentsCard, readContainments } from "../parts/containments.ts";
import { runPath } from "../parts/ids.ts";
import { formatCountOf, markLabel, severityMark } from "../parts/marks.ts";
import { formatAgo, formatSpan, formatTimesIn } from "../parts/time.ts";

export const alertRoutes = [getRoute("/alerts", alerts)];

/** An alert as the service lists it. */
export type ListedAlert = Omit<ActiveAlert, "actor">;

const ORDER = ["critical", "error", "warning", "info"];

/** Sorts by severity, then by age. */
export const sortBySeverity = (alerts: readonly ListedAlert[]): ListedAlert[] =>
  alerts.toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) || a.since_ms - b.since_ms);

async function alerts(ctx: PageContext): Promise<PageAnswer> {
  const found = await ctx.call(listAlerts, {});
  const sorted = sortBySeverity(found.alerts);
  const contained = await readContainments(ctx);
  const body = safeHtml`${pageHead("Alerts", "Active alerts, evaluated live.", safeHtml`<a class="button" href="/console/incidents">Incidents</a>`)}
<div id="alerts" data-live>${sorted.length === 0 ? quiet() : safeHtml`<ul class="alerts">${groupAlerts(sorted).map((group) => alertItem(ctx, group))}</ul>`}</div>
${containmentsCard(contained)}${kindsCard(ctx)}`;
  return { page: { title: "Alerts", nav: "alerts", body, live: "/console/alerts" } };
}

function quiet(): HtmlFragment {
  return emptyState(
    "No active alerts",
    safeHtml`<p>Alerts that need your attention appear here.</p>`,
    nextAction("/console/runs", "Open the runs"),
  );
}

function alertItem(ctx: PageContext, group: AlertGroup<ListedAlert>): HtmlFragment {
  const { first: one, alerts } = group;
  return safeHtml`<li class="alert ${one.severity}" id="${one.id}"><div class="alert-head">${severityMark(one.severity)}<h2>${one.title}</h2>${alerts.length === 1 ? null : markLabel("quiet", `${alerts.length} times`)}<span class="soft">${formatAgo(one.since_ms, ctx.app.core.env.now())}</span></div><p>${formatTimesIn(groupMessage(group))}</p>${whatToDo(one)}</li>`;
}

function whatToDo(one: ListedAlert): HtmlFragment {
  if (one.run_id !== null)
    return safeHtml`<p class="actions"><a class="button" href="${runPath(one.run_id)}${one.step === null ? "" : `#step-${one.step}`}">${one.kind === "unresolved_outcome" ? "Resolve it" : "Open the run"}</a></p>`;
  if (one.kind === "halted")
    return safeHtml`<p class="actions"><a class="button" href="/console/evidence#halt">View the halt</a></p>`;
  if (one.kind === "approval_flood")
    return safeHtml`<p class="actions"><a class="button" href="/console/approvals">View pending requests</a></p>`;
  if (one.kind === "denial_spike")
    return safeHtml`<p class="actions"><a class="button" href="/console/evidence?event=blocked#ledger">View blocked calls</a></p>`;
  if (one.tool !== null)
    return safeHtml`<p class="actions"><a class="button" href="/console/tools/${encodeURIComponent(one.tool)}">Open the tool</a></p>`;
  return safeHtml``;
}

/** Lists all kinds of alerts with their triggers, also while none is active. */
function kindsCard(ctx: PageContext): HtmlFragment {
  const { denial_spike, remind_ms, undo_closing_ms } = ctx.app.settings.alerts;
  const minutes = SERVICE_LIMITS.alert_window_ms / 60_000;
  const watched: Record<keyof typeof ALERT_KINDS, string> = {
    denial_spike: `${denial_spike} or more refused calls in ${minutes} minutes, not counting calls that wait for approval`,
    approval_expired: "an approval request expired before it was decided or used",
    verification_failed: "the check after an undo did not find the expected state",
    break_glass: "an admin approved a request alone",
    unmanifested_call: "a tool without a manifest was called (observe mode)",
    probe_failed: "the last probe found a guarantee that does not hold",
    ungoverned_calls: "a client's transcript and the ledger name different calls",
    effect_missing: "a call reported success, but a read did not show its effect",
    tool_changed:
      "the definition of an upstream's tool has changed since it was first seen, or another upstream offers its name",
    auth_failures: `${SERVICE_LIMITS.auth_failures} or more rejected credentials in ${minutes} minutes`,
    approval_flood: "an agent opened more requests than the policy's approvals.flood",
    compensation_failed: "an undo did not succeed",
    unresolved_outcome: "the outcome of a call has been unknown for an hour",
    undo_closing: `an undo expires within ${formatSpan(undo_closing_ms)}, and at most a tenth of its time is left`,
    halted: "a halt or the kill switch is active",
  };
  const rows = (Object.keys(ALERT_KINDS) as (keyof typeof ALERT_KINDS)[]).map((kind) => [
    safeHtml`<code>${kind}</code>`,
    severityMark(ALERT_KINDS[kind].severity),
    watched[kind],
    ALERT_KINDS[kind].basis === "state"
      ? markLabel("quiet", "until fixed")
      : markLabel("quiet", `for ${minutes} min`),
  ]);
  const channels = ctx.app.notifier?.channels().length ?? 0;
  return cardBlock(
    {
      title: "Monitored conditions",
      aside: safeHtml`<a href="/console/settings#channels">${channels === 0 ? "Nobody is notified: add a channel" : `Sent to ${formatCountOf(channels, "channel")}`}</a>`,
    },
    tableBlock("Alert kinds", ["Kind", "Severity", "Raised when", "Active"], rows),
    safeHtml`<p class="soft">While an alert is active, it is sent again every ${Math.round(remind_ms / 60_000)} minutes.</p>`,
  );
}
