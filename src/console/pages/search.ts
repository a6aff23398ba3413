/**
 * Finding anything from anywhere: an id leads straight to its page; a word is looked for in runs, tools, actors,
 * requests and the newest records. Each list is short, and says where all of them are.
 */
import { listApprovals } from "../../app/operations/approvals.ts";
import { searchRuns } from "../../app/operations/search.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalView } from "../../model/approval.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, pageHead } from "../parts/blocks.ts";
import { runPath } from "../parts/ids.ts";
import { approvalMark, effectMark } from "../parts/marks.ts";
import { trail, trailOf } from "../parts/records.ts";
import { ago } from "../parts/time.ts";
import { runsTable, waitingRuns } from "./runs.ts";

export const searchRoutes = [get("/search", search)];

const FEW = 8;
/** Words are looked for in this many records here; the Evidence page looks through all of them. */
const NEWEST_RECORDS = 20_000;

async function search(ctx: Ctx): Promise<Answer> {
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
  const actors = [...new Set([...runs.runs, ...requests].map(({ actor }) => actor))].filter((actor) =>
    actor.toLowerCase().includes(word),
  );
  const at = encodeURIComponent(q);
  const parts = [
    actors.length === 0 ? nothing : card({ title: "Actors" }, items(actors.map((actor) => actorItem(actor)))),
    tools.length === 0
      ? nothing
      : card({ title: "Tools", aside: all(`/console/tools?q=${at}`) }, items(tools)),
    requests.length === 0
      ? nothing
      : card(
          { title: "Requests", aside: all("/console/approvals/decided") },
          items(requests.map((one) => requestItem(ctx, one))),
        ),
    runs.runs.length === 0
      ? nothing
      : card(
          { title: "Runs", aside: all(`/console/runs?q=${at}`) },
          runsTable(runs.runs, ctx.app.core.env.now(), await waitingRuns(ctx)),
        ),
    records.length === 0
      ? nothing
      : card(
          { title: "Records", aside: all(`/console/evidence?q=${at}#ledger`) },
          trail(trailOf(records), { runs: true }),
        ),
  ].filter((part) => part !== nothing);
  return shown(q, parts.length === 0 ? nowhere(at) : html`${parts}`);
}

const shown = (q: string, body: Html): Answer => ({
  page: {
    title: "Search",
    nav: null,
    body: html`${pageHead("Search", q === "" ? undefined : html`What has <b>${q}</b> in it.`)}${body}`,
  },
});

const all = (to: string): Html => html`<a href="${to}">All</a>`;
const items = (list: readonly Html[]): Html => html`<ul class="items">${list}</ul>`;

/** The page of what the text names exactly; null where it names nothing. */
async function pageOf({ app }: Ctx, q: string): Promise<string | null> {
  const { store } = app.core;
  if (q.startsWith("apr_") && (await store.get("approvals", q)) !== undefined)
    return `/console/approvals/${encodeURIComponent(q)}`;
  if (q.startsWith("pln_") && (await store.get("plans", q)) !== undefined)
    return `/console/plans/${encodeURIComponent(q)}`;
  if (app.core.rules().manifests.active(q) !== undefined) return `/console/tools/${encodeURIComponent(q)}`;
  return (await store.get("runs", q)) === undefined ? null : runPath(q);
}

function foundTools({ app }: Ctx, word: string): Html[] {
  const { manifests } = app.core.rules();
  const names = [...new Set(manifests.all.map(({ tool }) => tool))].filter((tool) =>
    tool.toLowerCase().includes(word),
  );
  return names
    .sort()
    .slice(0, FEW)
    .map(
      (tool) =>
        html`<li><a class="item" href="/console/tools/${encodeURIComponent(tool)}"><span class="item-main"><code>${tool}</code></span><span class="item-side">${effectMark(manifests.active(tool)!.effect)}</span></a></li>`,
    );
}

const actorItem = (actor: string): Html =>
  html`<li><a class="item" href="/console/runs?actor=${encodeURIComponent(actor)}"><span class="item-main">${actor}</span><span class="item-side">its runs</span></a></li>`;

/** Among the newest, whatever became of them. */
async function foundRequests(ctx: Ctx, word: string): Promise<ApprovalView[]> {
  const { approvals } = await ctx.call(listApprovals, { limit: LIMITS.page_max });
  return approvals
    .filter(({ tool, actor, reason, run_id, id }) =>
      [tool, actor, reason, run_id, id].join("\n").toLowerCase().includes(word),
    )
    .slice(0, FEW);
}

const requestItem = ({ app }: Ctx, one: ApprovalView): Html =>
  html`<li><a class="item" href="/console/approvals/${one.id}"><span class="item-main"><code>${one.tool}</code> <span class="soft">for ${one.actor}</span></span><span class="item-side">${approvalMark(one.status)} ${ago(one.requested_ms, app.core.env.now())}</span><span class="item-note">${one.reason}</span></a></li>`;

async function foundRecords({ app }: Ctx, q: string): Promise<string[]> {
  const { store } = app.core;
  const { records } = await store.head();
  return store.records({ q, from: Math.max(0, records - NEWEST_RECORDS), order: "desc", limit: FEW });
}

function asked(): Html {
  return empty(
    "What are you looking for?",
    html`<p>A run, a tool, an actor, a request or any word of a record. The key <kbd>/</kbd> leads to the field above from every page.</p>`,
  );
}

function nowhere(at: string): Html {
  return empty(
    "Nothing has that in it",
    html`<p>Older records are looked through on the <a href="/console/evidence?q=${at}#ledger">Evidence page</a>.</p>`,
  );
}
