/** Page of an agent: permissions, past calls, open items, and the buttons that stop it. */

import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { type ActorView, getActor } from "../../../operations/actors/actor.ts";
import { haltCalls } from "../../../operations/halts.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, pageHead, tableBlock } from "../../parts/blocks.ts";
import { foldedBlock, foldedForm, formElement, inputField, submitButton } from "../../parts/forms.ts";
import { scopeText } from "../../parts/halt-form.ts";
import { runLink } from "../../parts/ids.ts";
import { formatCountOf, markLabel, runStateMark } from "../../parts/marks.ts";
import { formatAgo, formatTimesIn } from "../../parts/time.ts";
import { containLink } from "../contain.ts";
import { actorCharts } from "./actor-charts.ts";
import { incidentPath } from "./incident-list.ts";

export const actorRoutes = [getRoute("/actors/:name", actorPage)];

async function actorPage(ctx: PageContext): Promise<PageAnswer> {
  const view = await ctx.call(getActor, { actor: ctx.params["name"] ?? "" });
  const state = HALTED_MARKS[view.halted];
  const lead = safeHtml`${state} ${formatCountOf(view.runs.length, "run")}${view.more_runs ? " and older ones" : ""}, ${formatCountOf(view.requests.length, "open request")}`;
  const now = ctx.app.core.env.now();
  const body = safeHtml`${pageHead(view.actor, lead, actorButtons(ctx, view))}
<div id="actor" data-live>${openCard(view, now)}${actorCharts(view, now)}${permissionsCard(view)}${runsCard(view, now)}${standingCard(view)}${grantsCard(view, now)}</div>`;
  const live = `/console/actors/${encodeURIComponent(view.actor)}`;
  return { page: { title: view.actor, nav: "runs", body, live } };
}

const HALTED_MARKS = {
  yes: markLabel("bad", "halted"),
  in_part: markLabel("warn", "halted in part"),
  no: markLabel("good", "not halted"),
};

function actorButtons(ctx: PageContext, { actor }: ActorView): HtmlFragment {
  const links = safeHtml`<div class="links"><a class="button" href="/console/policy">See its policy</a><a class="button" href="/console/runs?actor=${encodeURIComponent(actor)}">All runs</a>${containLink(ctx, actor)}</div>`;
  if (!ctx.may(haltCalls)) return links;
  const ask = formElement(
    ctx,
    {
      action: "/console/evidence/halt",
      class: "form",
      confirm: `Block new calls of ${actor} now. Rollbacks keep working.`,
      verb: "Halt",
    },
    safeHtml`<input type="hidden" name="actor" value="${actor}">`,
    inputField({ label: "Reason", name: "reason", required: true, maxlength: SERVICE_LIMITS.reason_chars }),
    submitButton("Halt this agent", "danger"),
  );
  return safeHtml`${links}${foldedForm("Halt this agent", ask)}`;
}

function openCard({ incidents, halts, alerts, requests, runs }: ActorView, now: number): HtmlFragment {
  const lines: TemplateValue[] = [
    ...incidents
      .filter(({ status }) => status === "open")
      .map(
        ({ id, opened_ms }) =>
          safeHtml`${markLabel("bad", "incident")} <a href="${incidentPath(id)}">Opened ${formatAgo(opened_ms, now)}</a>`,
      ),
    ...halts.map(
      (one) =>
        safeHtml`${markLabel("bad", "halt")} <a href="/console/evidence#halt">${scopeText(one)}</a> ${one.reason}`,
    ),
    ...alerts.map(({ message }) => safeHtml`${markLabel("warn", "alert")} ${formatTimesIn(message)}`),
    ...runs
      .filter(({ state }) => state === "needs attention")
      .map(
        ({ run_id, reason }) =>
          safeHtml`${markLabel("warn", "needs attention")} ${runLink(run_id)} ${reason}`,
      ),
    ...requests.map(
      ({ id, tool, requested_ms }) =>
        safeHtml`${markLabel("info", "request")} <a href="/console/approvals/${id}"><code>${tool}</code></a> ${formatAgo(requested_ms, now)}`,
    ),
  ];
  if (lines.length === 0) return cardBlock({ title: "Open" }, emptyState("Nothing is open"));
  return cardBlock({ title: "Open" }, bulletList(lines));
}

function permissionsCard({ permissions: { used, unused }, keys }: ActorView): HtmlFragment {
  const names = (list: readonly string[]): TemplateValue =>
    list.length === 0
      ? safeHtml`<span class="soft">none</span>`
      : safeHtml`${list.map((one) => safeHtml`<code>${one}</code> `)}`;
  const disabled = keys.filter((key) => key.disabled).length;
  const aside = keys.length === 0 ? "no key" : `${formatCountOf(keys.length, "key")}, ${disabled} disabled`;
  return cardBlock(
    { title: "Permissions", aside },
    safeHtml`<p><b>Used</b> ${names(used)}</p><p><b>Unused</b> ${names(unused)}</p>`,
  );
}

function runsCard({ runs }: ActorView, now: number): HtmlFragment {
  if (runs.length === 0) return cardBlock({ title: "Runs" }, emptyState("No runs yet"));
  const rows = runs.map(({ run_id, state, steps, created_ms, reason }) => [
    runLink(run_id),
    runStateMark(state),
    String(steps),
    formatAgo(created_ms, now),
    reason ?? "",
  ]);
  return cardBlock(
    { title: "Runs" },
    ...foldedTable("Runs", ["Run", "State", "Steps", "Opened", "Reason"], rows),
  );
}

/** Rows of a table before the folded ones. */
const ROWS_SHOWN = 10;

function foldedTable(caption: string, heads: readonly string[], rows: TemplateValue[][]): HtmlFragment[] {
  const shown = tableBlock(caption, heads, rows.slice(0, ROWS_SHOWN));
  const rest = rows.slice(ROWS_SHOWN);
  if (rest.length === 0) return [shown];
  return [
    shown,
    foldedBlock({ summary: `${rest.length} more` }, tableBlock(`More: ${caption}`, heads, rest)),
  ];
}

function standingCard({ standing }: ActorView): HtmlFragment {
  if (standing.length === 0) return emptyHtml;
  const rows = standing.map(({ run_id, step, tool, status }) => [
    runLink(run_id),
    safeHtml`<a href="/console/runs/${encodeURIComponent(run_id)}#step-${step}">${step}</a>`,
    safeHtml`<code>${tool}</code>`,
    status,
  ]);
  return cardBlock(
    { title: "Steps that are not undone" },
    ...foldedTable("Steps", ["Run", "Step", "Tool", "Status"], rows),
  );
}

function grantsCard({ grants }: ActorView, now: number): HtmlFragment {
  if (grants.length === 0) return emptyHtml;
  const rows = grants.map(({ tool, actor, uses, max_uses, expires_ms }) => [
    safeHtml`<code>${tool}</code>`,
    actor,
    `${uses} of ${max_uses}`,
    formatAgo(expires_ms, now),
  ]);
  return cardBlock(
    { title: "Grants", aside: safeHtml`<a href="/console/grants">All</a>` },
    tableBlock("Grants", ["Tool", "For", "Uses", "Expires"], rows),
  );
}
