/** The Approvals page: what waits for a person, decided one by one or together, and what was decided lately. */

import {
  approve as approveOp,
  breakGlass as breakGlassOp,
  deny as denyOp,
  listApprovals,
} from "../../app/operations/approvals.ts";
import { invalid, messageOf, notFound } from "../../kernel/errors.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { sentence } from "../../kernel/words.ts";
import { APPROVAL_STATUSES, OPEN_APPROVAL } from "../../model/approval.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, pageHead, pager, table } from "../parts/blocks.ts";
import { nameText, runLink } from "../parts/ids.ts";
import { approvalMark, plural } from "../parts/marks.ts";
import { when } from "../parts/time.ts";
import { approvalCard } from "./approval-card.ts";
import { requestLines, type ShownRequest, SORTS, type Sort, shownRequest } from "./approval-data.ts";
import { bulkBar, groupedList, requestList, sortLinks } from "./approval-list.ts";
import { approvalTabs } from "./approval-tabs.ts";
import { decideAs, decideMany, isIrreversibleRequest, readVerb } from "./approvals-together.ts";
import { delegationsCard } from "./delegations.ts";
import { alikeForm } from "./grant-alike.ts";

const MOST_LINES = 100;
/** With groups a page holds more: a flood is looked at, and decided, group by group. */
const MOST_GROUPED = LIMITS.page_max;
const PATH = "/console/approvals";

export const approvalRoutes = [
  get("/approvals", waiting),
  get("/approvals/decided", decided),
  get("/approvals/:id", oneRequest),
  post("/approvals", approveOp, decideMany),
  post("/approvals/:id", approveOp, decideOne),
  post("/approvals/:id/offer", denyOp, offer),
  post("/approvals/:id/break-glass", breakGlassOp, breakGlass),
];

/** Requests are grouped where the policy says what a flood is. */
const groupsAlike = ({ app }: Ctx): boolean => app.core.rules().policy.approvals.flood !== null;
const mostLines = (ctx: Ctx): number => (groupsAlike(ctx) ? MOST_GROUPED : MOST_LINES);

const sortOf = (ctx: Ctx): Sort =>
  (Object.keys(SORTS) as Sort[]).find((sort) => sort === ctx.query["sort"]) ?? "age";

/** The list, and beside it the first request's card; on a phone the list alone. */
async function waiting(ctx: Ctx): Promise<Answer> {
  const sort = sortOf(ctx);
  const found = await requestLines(ctx, sort, mostLines(ctx));
  const first = found.lines[0]?.approval.id;
  const shown = first === undefined ? null : await shownRequest(ctx, first);
  return desk(ctx, found, shown, {
    sort,
    live: sort === "age" ? PATH : `${PATH}?sort=${sort}`,
    kind: "at-list",
  });
}

/** One request beside the others; on a phone by itself. */
async function oneRequest(ctx: Ctx): Promise<Answer> {
  const id = ctx.params["id"]!;
  const sort = sortOf(ctx);
  const [found, shown] = await Promise.all([requestLines(ctx, sort, mostLines(ctx)), shownRequest(ctx, id)]);
  if (shown === null) throw notFound(`unknown approval request ${id}`);
  return desk(ctx, found, shown, { sort, live: `${PATH}/${encodeURIComponent(id)}`, kind: "at-card" });
}

interface DeskOptions {
  sort: Sort;
  live: string;
  /** Which half a phone shows. */
  kind: "at-list" | "at-card";
}

async function desk(
  ctx: Ctx,
  { lines, total }: Awaited<ReturnType<typeof requestLines>>,
  shown: ShownRequest | null,
  { sort, live, kind }: DeskOptions,
): Promise<Answer> {
  const at = shown?.approval.id ?? null;
  const alike = shown === null ? nothing : await alikeForm(ctx, shown);
  const list =
    lines.length === 0
      ? nobodyWaits()
      : html`${sortLinks(sort)}${bulkBar(ctx, lines)}${groupsAlike(ctx) ? groupedList(ctx, lines, at, sort) : requestList(ctx, lines, at, sort)}${
          total > lines.length
            ? html`<p class="soft">${lines.length} of ${total} are shown; the others come up as these are decided.</p>`
            : null
        }`;
  const body = html`${pageHead("Approvals", "Calls that wait for a person. The agent is told to try again once you decide.")}
${await approvalTabs(ctx, "waiting")}
<div class="desk ${shown === null ? "at-list alone" : kind}"><div id="waiting" data-live>${list}</div>
<div id="card" data-live>${shown === null ? null : html`<p class="back"><a href="${PATH}">All requests</a></p>${approvalCard(ctx, shown, alike)}`}</div></div>
${await delegationsCard(ctx)}`;
  return { page: { title: "Approvals", nav: "approvals", body, live } };
}

function nobodyWaits(): Html {
  return empty(
    "Nobody is waiting",
    html`<p>A request appears here when a policy rule says <code>action: require_approval</code>, when a risk score reaches <code>risk.require_approval_at</code>, or when an undo says <code>requires_approval: true</code>.</p>`,
    html`<p><a class="button" href="/console/policy">See the policy</a> <a class="button" href="/console/impact">Try a call</a></p>`,
  );
}

async function decided(ctx: Ctx): Promise<Answer> {
  const wanted = APPROVAL_STATUSES.find((status) => status === ctx.query["status"]);
  const query = { status: wanted, ...(ctx.query["cursor"] && { cursor: ctx.query["cursor"] }) };
  const { approvals, next_cursor } = await ctx.call(listApprovals, query);
  const rows = approvals
    .filter(({ status }) => wanted !== undefined || !OPEN_APPROVAL.has(status))
    .map((one) => [
      approvalMark(one.status),
      html`<a href="${PATH}/${one.id}"><code>${one.tool}</code></a>${one.arg_names.length === 0 ? null : html` <span class="soft">(${one.arg_names.join(", ")})</span>`}`,
      nameText(one.actor),
      runLink(one.run_id),
      one.decided_by === null ? "" : html`${one.decided_by}${one.break_glass ? " (break glass)" : ""}`,
      one.note ?? "",
      when(one.decided_ms ?? one.requested_ms),
    ]);
  const list =
    rows.length === 0
      ? empty(
          "Nothing was decided yet",
          html`<p>Requests come here once they are approved, denied, used or expired.</p>`,
        )
      : table("Decided requests", ["Status", "Tool", "Actor", "Run", "Decided by", "Note", "When"], rows);
  const body = html`${pageHead("Approvals", "What was decided, by whom, and what they noted.")}${await approvalTabs(ctx, "decided")}
${card({ title: "Decided", id: "decided", live: true }, list, pager(`${PATH}/decided`, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Decided approvals", nav: "approvals", body, live: `${PATH}/decided` } };
}

/** Nothing undoes the call, and the box that says so is not ticked. The decision itself refuses all others. */
async function lacksGesture(ctx: Ctx, id: string): Promise<boolean> {
  if (ctx.form.checked("irreversible") || !(await isIrreversibleRequest(ctx, id))) return false;
  return (await shownRequest(ctx, id))?.votes === true;
}

async function decideOne(ctx: Ctx): Promise<Answer> {
  const id = ctx.params["id"]!;
  const verb = readVerb(ctx);
  // A press alone is not enough where nothing takes the call back: the box is a gesture of another kind.
  if (verb === "approve" && (await lacksGesture(ctx, id))) {
    const text = "Not approved yet: tick that nothing can take this call back, then approve.";
    return { to: `${PATH}/${id}`, notice: { kind: "warn", text } };
  }
  const approval = await decideAs(ctx, verb, { approval_id: id, card_hash: ctx.form.optional("card_hash") });
  const { tool, actor, status } = approval;
  const text = OPEN_APPROVAL.has(status)
    ? `Your approval of ${tool} counts; ${plural(approval.approvers.quorum - approval.votes.length, "more is", "more are")} needed.`
    : `${sentence(status)}: ${tool} for ${actor}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}

/** The denial first, then what would be approved instead, in one decision. */
async function offer(ctx: Ctx): Promise<Answer> {
  const id = ctx.params["id"]!;
  if (await lacksGesture(ctx, id)) {
    const text = "Nothing was offered yet: tick that nothing can take the call back, then offer.";
    return { to: `${PATH}/${id}`, notice: { kind: "warn", text } };
  }
  let args: Json;
  try {
    args = parseJson(ctx.form.document("args"));
  } catch (error) {
    throw invalid(`the arguments are not JSON: ${messageOf(error)}`);
  }
  const { tool, actor } = await ctx.call(denyOp, {
    approval_id: id,
    note: ctx.form.optional("note"),
    card_hash: ctx.form.optional("card_hash"),
    offer: { args },
  });
  return {
    to: PATH,
    notice: { kind: "ok", text: `Denied: ${tool} for ${actor}. The offer stands in its place.` },
  };
}

async function breakGlass(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(breakGlassOp);
  const { tool } = await ctx.call(breakGlassOp, {
    approval_id: ctx.params["id"]!,
    reason: ctx.form.text("reason"),
  });
  return { to: PATH, notice: { kind: "warn", text: `Approved alone: ${tool}. An alert was raised.` } };
}
