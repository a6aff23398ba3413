/**
 * Search. An exact id redirects to its page. Other text is searched in runs, tools, actors, requests and the newest
 * records. Each list is short and links to the full one.
 */

import type { ApprovalView } from "../../../govern/approvals/approval.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { isIdleActor } from "../../../operations/actors/actor.ts";
import { listApprovals } from "../../../operations/approvals/approvals.ts";
import { findApproval, findIncident, findPlan, findRun } from "../../../operations/documents.ts";
import { ledgerOf } from "../../../operations/ledger-reader.ts";
import { searchRuns } from "../../../operations/runs/search.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { cardBlock, emptyState, pageHead } from "../../parts/blocks.ts";
import { runPath } from "../../parts/ids.ts";
import { approvalMark, effectMark } from "../../parts/marks.ts";
import { checkRecordLines, trailList } from "../../parts/records.ts";
import { formatAgo } from "../../parts/time.ts";
import { runsTable, waitingRuns } from "./runs.ts";

export const searchRoutes = [getRoute("/search", search)];

const FEW = 8;
/** Number of newest records to search here. The Evidence page searches all records. */
const NEWEST_RECORDS = 20_000;

async function search(ctx: PageContext): Promise<PageAnswer> {
  const q = ctx.query["q"]?.trim().slice(0, 512) ?? "";
  if (q === "") return shown("", asked());
  const to = await pageOf(ctx, q);
  if (to !== null) return { to };
  const word = q.toLowerCase();
  const [runs, requests, records] = await Promise.all([
    ctx.call(searchRuns, { q, limit: FEW }),
    foundRequests(ctx, word),
    foundRecords(ctx, q),
  ]);
  const tools = foundTools(ctx, word);
  const named = [...runs.runs, ...requests].map(({ actor }) => actor);
  if (await isIdleActor(ctx.app, q)) named.push(q);
  const actors = [...new Set(named)].filter((actor) => actor.toLowerCase().includes(word));
  const at = encodeURIComponent(q);
  const parts = [
    actors.length === 0
      ? emptyHtml
      : cardBlock({ title: "Actors" }, items(actors.map((actor) => actorItem(actor)))),
    tools.length === 0
      ? emptyHtml
      : cardBlock({ title: "Tools", aside: all(`/console/tools?q=${at}`) }, items(tools)),
    requests.length === 0
      ? emptyHtml
      : cardBlock(
          { title: "Requests", aside: all("/console/approvals/decided") },
          items(requests.map((one) => requestItem(ctx, one))),
        ),
    runs.runs.length === 0
      ? emptyHtml
      : cardBlock(
          { title: "Runs", aside: all(`/console/runs?q=${at}`) },
          runsTable(runs.runs, ctx.app.core.env.now(), await waitingRuns(ctx)),
        ),
    records.length === 0
      ? emptyHtml
      : cardBlock(
          { title: "Records", aside: all(`/console/evidence?q=${at}#ledger`) },
          trailList(checkRecordLines(records), { runs: true }),
        ),
  ].filter((part) => part !== emptyHtml);
  return shown(q, parts.length === 0 ? nowhere(at) : safeHtml`${parts}`);
}

const shown = (q: string, body: HtmlFragment): PageAnswer => ({
  page: {
    title: "Search",
    nav: null,
    body: safeHtml`${pageHead("Search", q === "" ? undefined : safeHtml`Results for <b>${q}</b>.`)}${body}`,
  },
});

const all = (to: string): HtmlFragment => safeHtml`<a href="${to}">All</a>`;
const items = (list: readonly HtmlFragment[]): HtmlFragment => safeHtml`<ul class="items">${list}</ul>`;

/** Page that the text names exactly, or null. */
async function pageOf({ app }: PageContext, q: string): Promise<string | null> {
  if (q.startsWith("apr_") && (await findApproval(app, q)) !== undefined)
    return `/console/approvals/${encodeURIComponent(q)}`;
  if (q.startsWith("pln_") && (await findPlan(app, q)) !== undefined)
    return `/console/plans/${encodeURIComponent(q)}`;
  if (q.startsWith("inc_") && (await findIncident(app, q)) !== undefined)
    return `/console/incidents/${encodeURIComponent(q)}`;
  if (app.core.rules().manifests.active(q) !== undefined) return `/console/tools/${encodeURIComponent(q)}`;
  return (await findRun(app, q)) === undefined ? null : runPath(q);
}

function foundTools({ app }: PageContext, word: string): HtmlFragment[] {
  const { manifests } = app.core.rules();
  const names = [...new Set(manifests.all.map(({ tool }) => tool))].filter((tool) =>
    tool.toLowerCase().includes(word),
  );
  return names
    .sort()
    .slice(0, FEW)
    .map(
      (tool) =>
        safeHtml`<li><a class="item" href="/console/tools/${encodeURIComponent(tool)}"><span class="item-main"><code>${tool}</code></span><span class="item-side">${effectMark(manifests.active(tool)!.effect)}</span></a></li>`,
    );
}

const actorItem = (actor: string): HtmlFragment =>
  safeHtml`<li><a class="item" href="/console/actors/${encodeURIComponent(actor)}"><span class="item-main">${actor}</span><span class="item-side">agent</span></a></li>`;

/** Searches the newest requests in any status. */
async function foundRequests(ctx: PageContext, word: string): Promise<ApprovalView[]> {
  const { approvals } = await ctx.call(listApprovals, { limit: SERVICE_LIMITS.page_max });
  return approvals
    .filter(({ tool, actor, reason, run_id, id }) =>
      [tool, actor, reason, run_id, id].join("\n").toLowerCase().includes(word),
    )
    .slice(0, FEW);
}

const requestItem = ({ app }: PageContext, one: ApprovalView): HtmlFragment =>
  safeHtml`<li><a class="item" href="/console/approvals/${one.id}"><span class="item-main"><code>${one.tool}</code> <span class="soft">for ${one.actor}</span></span><span class="item-side">${approvalMark(one.status)} ${formatAgo(one.requested_ms, app.core.env.now())}</span><span class="item-note">${one.reason}</span></a></li>`;

async function foundRecords({ app }: PageContext, q: string): Promise<string[]> {
  const ledger = ledgerOf(app);
  const { records } = await ledger.head();
  return ledger.records({ q, from: Math.max(0, records - NEWEST_RECORDS), order: "desc", limit: FEW });
}

function asked(): HtmlFragment {
  return emptyState(
    "Search everything",
    safeHtml`<p>Find a run, a tool, an actor, a request or any text of a record. Press <kbd>/</kbd> on any page to go to the search field.</p>`,
  );
}

function nowhere(at: string): HtmlFragment {
  return emptyState(
    "No results",
    safeHtml`<p>To search older records, use the <a href="/console/evidence?q=${at}#ledger">Evidence page</a>.</p>`,
  );
}
