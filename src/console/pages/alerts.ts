/** The Alerts page: what stands now, evaluated as the page is drawn. */
import { ALERT_KINDS, type Alert } from "../../alerts/kinds.ts";
import { listAlerts } from "../../app/operations/alerts.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { card, empty, pageHead, table } from "../parts/blocks.ts";
import { containmentsCard, readContainments } from "../parts/containments.ts";
import { runPath } from "../parts/ids.ts";
import { mark, plural, severityMark } from "../parts/marks.ts";
import { ago, span, timed } from "../parts/time.ts";

export const alertRoutes = [get("/alerts", alerts)];

const ORDER = ["critical", "error", "warning", "info"];

/** The worst first, then the oldest. */
export const worstFirst = (alerts: readonly Alert[]): Alert[] =>
  alerts.toSorted((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity) || a.since_ms - b.since_ms);

async function alerts(ctx: Ctx): Promise<Answer> {
  const found = await ctx.call(listAlerts, {});
  const sorted = worstFirst(found.alerts);
  const contained = await readContainments(ctx);
  const body = html`${pageHead("Alerts", "Evaluated live: what is listed here stands now.")}
<div id="alerts" data-live>${sorted.length === 0 ? quiet() : html`<ul class="alerts">${sorted.map((one) => alertItem(ctx, one))}</ul>`}</div>
${containmentsCard(contained)}${kindsCard(ctx)}`;
  return { page: { title: "Alerts", nav: "alerts", body, live: "/console/alerts" } };
}

function quiet(): Html {
  return empty("All quiet", html`<p>Nothing stands that anybody would have to look at.</p>`);
}

function alertItem(ctx: Ctx, one: Alert): Html {
  return html`<li class="alert ${one.severity}" id="${one.id}"><div class="alert-head">${severityMark(one.severity)}<h2>${one.title}</h2><span class="soft">${ago(one.since_ms, ctx.app.core.env.now())}</span></div><p>${timed(one.message)}</p>${whatToDo(one)}</li>`;
}

function whatToDo(one: Alert): Html {
  if (one.run_id !== null)
    return html`<p class="actions"><a class="button" href="${runPath(one.run_id)}${one.step === null ? "" : `#step-${one.step}`}">${one.kind === "unresolved_outcome" ? "Resolve it" : "Open the run"}</a></p>`;
  if (one.kind === "halted")
    return html`<p class="actions"><a class="button" href="/console/evidence#halt">See the halt</a></p>`;
  if (one.kind === "approval_flood")
    return html`<p class="actions"><a class="button" href="/console/approvals">See what waits</a></p>`;
  if (one.kind === "denial_spike")
    return html`<p class="actions"><a class="button" href="/console/evidence?event=blocked#ledger">See what was blocked</a></p>`;
  if (one.tool !== null)
    return html`<p class="actions"><a class="button" href="/console/tools/${encodeURIComponent(one.tool)}">Open the tool</a></p>`;
  return html``;
}

/** What is watched, so that a quiet page also teaches. */
function kindsCard(ctx: Ctx): Html {
  const { denial_spike, remind_ms, undo_closing_ms } = ctx.app.settings.alerts;
  const minutes = LIMITS.alert_window_ms / 60_000;
  const watched: Record<keyof typeof ALERT_KINDS, string> = {
    denial_spike: `${denial_spike} or more refused calls in ${minutes} minutes; calls that wait for approval do not count`,
    approval_expired: "a request ran out of time undecided or unused",
    verification_failed: "an undo was read back, and the state was not the expected one",
    break_glass: "an admin approved alone",
    unmanifested_call: "a tool without a manifest was called (observe mode)",
    probe_failed: "the last probe found a guarantee that does not hold",
    tool_changed:
      "an upstream's tool is not defined as it was first seen, or another upstream offers its name",
    auth_failures: `${LIMITS.auth_failures} or more refused credentials in ${minutes} minutes`,
    approval_flood: "an agent opened more requests than the policy's approvals.flood",
    compensation_failed: "an undo did not succeed",
    unresolved_outcome: "nobody has said for an hour how a call ended",
    undo_closing: `an undo stops working within ${span(undo_closing_ms)}, and at most a tenth of its time is left`,
    halted: "a halt or the kill switch is in force",
  };
  const rows = (Object.keys(ALERT_KINDS) as (keyof typeof ALERT_KINDS)[]).map((kind) => [
    html`<code>${kind}</code>`,
    severityMark(ALERT_KINDS[kind].severity),
    watched[kind],
    ALERT_KINDS[kind].basis === "state"
      ? mark("quiet", "until fixed")
      : mark("quiet", `clears after ${minutes} min`),
  ]);
  const channels = ctx.app.notifier?.channels().length ?? 0;
  return card(
    {
      title: "What is watched",
      aside: html`<a href="/console/settings#channels">${channels === 0 ? "Nobody is told: add a channel" : `Sent to ${plural(channels, "channel")}`}</a>`,
    },
    table("Alert kinds", ["Kind", "Severity", "Raised when", "Stays"], rows),
    html`<p class="soft">A lasting alert is sent again every ${Math.round(remind_ms / 60_000)} minutes.</p>`,
  );
}
