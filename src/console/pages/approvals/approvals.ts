/** Approvals page: pending requests, decided one by one or together, and recent decisions. */
import { APPROVAL_STATUSES, OPEN_APPROVAL_STATUSES } from "../../../govern/approvals/approval.ts";
import { invalidError, messageOf, notFoundError, SvcError } from "../../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import {
  approveRequest as approveOp,
  breakGlass as breakGlassOp,
  denyRequest as denyOp,
  listApprovals,
} from "../../../operations/approvals/approvals.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import {
  type ConsolePage,
  getRoute,
  type PageAnswer,
  type PageContext,
  postRoute,
} from "../../page-context.ts";
import { cardBlock, emptyState, nextAction, pageHead, pagerLinks, tableBlock } from "../../parts/blocks.ts";
import { nameText, runLink } from "../../parts/ids.ts";
import { approvalMark, formatCountOf } from "../../parts/marks.ts";
import { formatTime } from "../../parts/time.ts";
import { similarGrantForm } from "../grants/similar-grant.ts";
import { givenSignature } from "../sign.ts";
import { decideAs, decideMany, needsSecondGesture, readVerb } from "./approval-batch.ts";
import { approvalCard, type RefusedOffer } from "./approval-card.ts";
import {
  APPROVAL_SORTS,
  type ApprovalLine,
  type ApprovalSort,
  requestLines,
  type ShownRequest,
  shownRequest,
} from "./approval-data.ts";
import { bulkBar, groupedList, requestList, sortLinks } from "./approval-list.ts";
import { approvalTabs } from "./approval-tabs.ts";
import { delegationsCard } from "./delegations.ts";
import { latestDecisions } from "./latest-decisions.ts";

const MAX_LINES = 100;
/** Grouped pages hold more, because a burst of requests is reviewed and decided by group. */
const MAX_GROUPED_LINES = SERVICE_LIMITS.page_max;
const PATH = "/console/approvals";

export const approvalRoutes = [
  getRoute("/approvals", waiting),
  getRoute("/approvals/decided", decided),
  getRoute("/approvals/:id", oneRequest),
  postRoute("/approvals", approveOp, decideMany),
  postRoute("/approvals/:id", approveOp, decideOne),
  postRoute("/approvals/:id/offer", denyOp, offer),
  postRoute("/approvals/:id/break-glass", breakGlassOp, breakGlass),
];

/** Requests are grouped if the policy sets `approvals.flood`. */
const groupsAlike = ({ app }: PageContext): boolean => app.core.rules().policy.approvals.flood !== null;
const lineLimit = (ctx: PageContext): number => (groupsAlike(ctx) ? MAX_GROUPED_LINES : MAX_LINES);

const sortOf = (ctx: PageContext): ApprovalSort =>
  (Object.keys(APPROVAL_SORTS) as ApprovalSort[]).find((sort) => sort === ctx.query["sort"]) ?? "age";

/** Shows the list and the first request's card. A phone shows only the list. */
async function waiting(ctx: PageContext): Promise<PageAnswer> {
  const sort = sortOf(ctx);
  const found = await requestLines(ctx, sort, lineLimit(ctx));
  const first = found.lines[0]?.approval.id;
  const shown = first === undefined ? null : await shownRequest(ctx, first);
  return desk(ctx, found, shown, {
    sort,
    live: sort === "age" ? PATH : `${PATH}?sort=${sort}`,
    kind: "at-list",
  });
}

/** Shows the list and one request. A phone shows only the request. */
async function oneRequest(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"]!;
  const sort = sortOf(ctx);
  const [found, shown] = await Promise.all([requestLines(ctx, sort, lineLimit(ctx)), shownRequest(ctx, id)]);
  if (shown === null) throw notFoundError(`unknown approval request ${id}`);
  return desk(ctx, found, shown, { sort, live: `${PATH}/${encodeURIComponent(id)}`, kind: "at-card" });
}

interface DeskOptions {
  sort: ApprovalSort;
  live: string | null;
  /** Half of the page that a phone shows. */
  kind: "at-list" | "at-card";
  refused?: RefusedOffer;
}

async function desk(
  ctx: PageContext,
  { lines, total }: Awaited<ReturnType<typeof requestLines>>,
  shown: ShownRequest | null,
  { sort, live, kind, refused }: DeskOptions,
): Promise<{ page: ConsolePage }> {
  const at = shown?.approval.id ?? null;
  const alike = shown === null ? emptyHtml : await similarGrantForm(ctx, shown);
  const list =
    lines.length === 0
      ? nobodyWaits()
      : safeHtml`${sortLinks(sort)}${bulkBar(ctx, lines)}${groupsAlike(ctx) ? groupedList(ctx, lines, at, sort) : requestList(ctx, lines, at, sort)}${
          total > lines.length
            ? safeHtml`<p class="soft">Showing ${lines.length} of ${total} requests. The others appear as you decide these.</p>`
            : null
        }`;
  const body = safeHtml`${pageHead("Approvals", "Calls that need approval. The agent can retry once you decide.")}
${await approvalTabs(ctx, "waiting")}
<div id="between" data-live>${shown === null ? null : betweenRequests(lines, shown.approval.id, sort)}</div>
<div class="desk ${shown === null ? "at-list alone" : kind}"><div id="waiting" data-live>${list}</div>
<div id="card" data-live>${shown === null ? null : safeHtml`${approvalCard(ctx, shown, alike, refused ?? null)}`}</div></div>
${await latestDecisions(ctx)}
${await delegationsCard(ctx)}`;
  return { page: { title: "Approvals", nav: "approvals", body, live } };
}

/** A phone shows one request at a time: links to the list, and to the requests before and after this one. */
function betweenRequests(lines: readonly ApprovalLine[], id: string, sort: ApprovalSort): HtmlFragment {
  const at = lines.findIndex(({ approval }) => approval.id === id);
  const query = sort === "age" ? "" : `?sort=${sort}`;
  const link = (to: ApprovalLine | undefined, label: string, rel: string) =>
    to === undefined
      ? safeHtml`<span class="soft">${label}</span>`
      : safeHtml`<a href="${PATH}/${to.approval.id}${query}" rel="${rel}">${label}</a>`;
  const steps =
    at < 0 || lines.length === 1
      ? emptyHtml
      : safeHtml`${link(lines[at - 1], "Previous", "prev")}<span class="soft">${at + 1} of ${lines.length}</span>${link(lines[at + 1], "Next", "next")}`;
  return safeHtml`<nav class="back" aria-label="Requests"><a href="${PATH}${query}">All requests</a>${steps}</nav>`;
}

function nobodyWaits(): HtmlFragment {
  return emptyState(
    "No pending requests",
    safeHtml`<p>A request appears here when a policy rule sets <code>action: require_approval</code>, a risk score reaches <code>risk.require_approval_at</code>, or an undo sets <code>requires_approval: true</code>.</p>`,
    nextAction("/console/impact", "Preview a call"),
  );
}

async function decided(ctx: PageContext): Promise<PageAnswer> {
  const wanted = APPROVAL_STATUSES.find((status) => status === ctx.query["status"]);
  const query = { status: wanted, ...(ctx.query["cursor"] && { cursor: ctx.query["cursor"] }) };
  const { approvals, next_cursor } = await ctx.call(listApprovals, query);
  const rows = approvals
    .filter(({ status }) => wanted !== undefined || !OPEN_APPROVAL_STATUSES.has(status))
    .map((one) => [
      approvalMark(one.status),
      safeHtml`<a href="${PATH}/${one.id}"><code>${one.tool}</code></a>${one.arg_names.length === 0 ? null : safeHtml` <span class="soft">(${one.arg_names.join(", ")})</span>`}`,
      nameText(one.actor),
      runLink(one.run_id),
      one.decided_by === null ? "" : safeHtml`${one.decided_by}${one.break_glass ? " (break glass)" : ""}`,
      one.note ?? "",
      formatTime(one.decided_ms ?? one.requested_ms),
    ]);
  const list =
    rows.length === 0
      ? emptyState(
          "No decided requests",
          safeHtml`<p>Requests appear here once they are approved, denied, used or expired.</p>`,
          nextAction(PATH, "Show pending requests"),
        )
      : tableBlock(
          "Decided requests",
          ["Status", "Tool", "Actor", "Run", "Decided by", "Note", "When"],
          rows,
        );
  const body = safeHtml`${pageHead("Approvals", "Past decisions, with the approver and their note.")}${await approvalTabs(ctx, "decided")}
${cardBlock({ title: "Decided", id: "decided", live: true }, list, pagerLinks(`${PATH}/decided`, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Decided approvals", nav: "approvals", body, live: `${PATH}/decided` } };
}

/**
 * Whether the confirmation for an irreversible call is missing. Users who cannot decide get an error from the decision.
 */
async function lacksGesture(ctx: PageContext, id: string): Promise<boolean> {
  if (ctx.form.checked("irreversible") || !(await needsSecondGesture(ctx, id))) return false;
  return (await shownRequest(ctx, id))?.votes === true;
}

async function decideOne(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"]!;
  const verb = readVerb(ctx);
  // An irreversible call needs the checkbox in addition to the button.
  if (verb === "approve" && (await lacksGesture(ctx, id))) {
    const text = "Not approved yet: confirm that you have read the values, then approve.";
    return { to: `${PATH}/${id}`, notice: { kind: "warn", text } };
  }
  const approval = await decideAs(ctx, verb, { approval_id: id, card_hash: ctx.form.optional("card_hash") });
  const { tool, actor, status } = approval;
  const text = OPEN_APPROVAL_STATUSES.has(status)
    ? `Your approval of ${tool} was recorded; ${formatCountOf(approval.approvers.quorum - approval.votes.length, "more is", "more are")} needed.`
    : `${capitalizeFirst(status)}: ${tool} for ${actor}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}

/** Denies the request and records the arguments that the user would approve instead, in one decision. */
async function offer(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"]!;
  if (await lacksGesture(ctx, id))
    return refusedOffer(ctx, id, "confirm that the call cannot be undone, then offer.");
  try {
    const { tool, actor } = await ctx.call(denyOp, {
      approval_id: id,
      note: ctx.form.optional("note"),
      card_hash: ctx.form.optional("card_hash"),
      offer: { args: offeredArgs(ctx) },
      ...givenSignature(ctx),
    });
    const text = `Denied: ${tool} for ${actor}. The agent can use your offer instead.`;
    return { to: PATH, notice: { kind: "ok", text } };
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "invalid") throw error;
    return refusedOffer(ctx, id, error.message);
  }
}

function offeredArgs({ form }: PageContext): JsonValue {
  try {
    return parseJson(form.document("args"));
  } catch (error) {
    throw invalidError(`the arguments are not JSON: ${messageOf(error)}`);
  }
}

/** The request's page with the form as it was filled in. Nothing replaces the typed text while the page is open. */
async function refusedOffer(ctx: PageContext, id: string, problem: string): Promise<PageAnswer> {
  const [found, shown] = await Promise.all([requestLines(ctx, "age", lineLimit(ctx)), shownRequest(ctx, id)]);
  const refused = {
    args: ctx.form.document("args"),
    note: ctx.form.optional("note") ?? "",
    problem,
  };
  const { page } = await desk(ctx, found, shown, { sort: "age", live: null, kind: "at-card", refused });
  return { page, status: 400 };
}

async function breakGlass(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(breakGlassOp);
  const { tool } = await ctx.call(breakGlassOp, {
    approval_id: ctx.params["id"]!,
    reason: ctx.form.text("reason"),
    ...givenSignature(ctx),
  });
  return { to: PATH, notice: { kind: "warn", text: `Approved alone: ${tool}. An alert was raised.` } };
}
