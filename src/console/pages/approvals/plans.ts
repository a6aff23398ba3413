/** Plans pages: calls that agents propose, each with its card, approved or denied as a whole. */
import { ENGINE_ACTOR } from "../../../govern/core.ts";
import type { PlanStatus } from "../../../govern/plans/plan.ts";
import { actorText } from "../../../govern/roles.ts";
import { anySignatureRequired } from "../../../govern/signing/draft.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { approvePlan, denyPlan, getPlan, listPlans, type PlanShown } from "../../../operations/plans.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import {
  bulletList,
  cardBlock,
  emptyState,
  factList,
  nextAction,
  noticeBox,
  pageHead,
  pagerLinks,
  tableBlock,
} from "../../parts/blocks.ts";
import { checkboxField, decisionFields, formElement, irreversibleCheckbox } from "../../parts/forms.ts";
import { nameText, runLink } from "../../parts/ids.ts";
import { formatCountOf, type MarkTone, markLabel, rulingMark } from "../../parts/marks.ts";
import { formatAgo, formatTime } from "../../parts/time.ts";
import { givenSignature, signedForm } from "../sign.ts";
import { cardSections } from "./approval-card.ts";
import { sentenceHtml } from "./approval-list.ts";
import { approvalTabs } from "./approval-tabs.ts";

const PATH = "/console/plans";

export const planRoutes = [
  getRoute("/plans", plans),
  getRoute("/plans/:id", plan),
  postRoute("/plans/:id", approvePlan, decide),
];

const TONES: Record<PlanStatus, MarkTone> = {
  pending: "warn",
  approved: "good",
  denied: "bad",
  expired: "quiet",
  ended: "quiet",
  done: "good",
};

async function plans(ctx: PageContext): Promise<PageAnswer> {
  const query = ctx.query["cursor"] === undefined ? {} : { cursor: ctx.query["cursor"] };
  const { plans, next_cursor } = await ctx.call(listPlans, query);
  const rows = plans.map((one) => [
    markLabel(TONES[one.status], one.status),
    safeHtml`<a href="${PATH}/${one.id}">${one.reason}</a>`,
    formatCountOf(one.calls.length, "call"),
    nameText(one.actor),
    runLink(one.run_id),
    formatTime(one.requested_ms),
  ]);
  const list =
    rows.length === 0
      ? emptyState(
          "No plans",
          safeHtml`<p>Agents can propose calls before they make them. One decision then covers all calls that need approval, in order and with exactly these arguments.</p>`,
          nextAction("/console/approvals", "Show pending requests"),
        )
      : tableBlock("Plans", ["Status", "Plan", "Calls", "Actor", "Run", "When"], rows);
  const body = safeHtml`${pageHead("Plans", "Calls that agents propose, approved or denied as a whole.")}${await approvalTabs(ctx, "plans")}
${cardBlock({ title: "Plans", id: "plans", live: true }, list, pagerLinks(PATH, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Plans", nav: "approvals", body, live: PATH } };
}

async function plan(ctx: PageContext): Promise<PageAnswer> {
  const shown = await ctx.call(getPlan, { plan_id: ctx.params["id"]! });
  const now = ctx.app.core.env.now();
  const body = safeHtml`${pageHead("Plan", shown.reason, markLabel(TONES[shown.status], shown.status))}${await approvalTabs(ctx, "plans")}
${cardBlock(
  { title: "The plan", id: "plan" },
  factList([
    ["Who", safeHtml`${actorText(shown)} in ${runLink(shown.run_id)}`],
    ["Proposed", formatAgo(shown.requested_ms, now)],
    ["Expires", formatAgo(shown.expires_ms, now)],
    ["Can be undone as a whole", shown.fully_reversible ? "yes" : "no"],
    shown.irreversible.length === 0
      ? null
      : ["Cannot be undone", safeHtml`<strong>${shown.irreversible.join(", ")}</strong>`],
    shown.decided_by === null ? null : ["Decided by", shown.decided_by],
    shown.note === null ? null : ["Note", shown.note],
  ]),
  shown.residue.length === 0
    ? emptyHtml
    : safeHtml`<p class="soft">What cannot be undone:</p>${bulletList(shown.residue, "residue")}`,
  shown.status === "pending" && shown.card_hash !== undefined
    ? safeHtml`<p><a href="#decide">Go to the decision</a></p>`
    : emptyHtml,
)}
${isDeniedAtOnce(shown) ? noticeBox("warn", safeHtml`<p>A call of this plan would be blocked, so the plan was denied automatically and no values were stored.</p>`) : emptyHtml}
${callCards(ctx, shown)}
${shown.status === "pending" && shown.card_hash !== undefined ? cardBlock({ title: "Decide the plan", id: "decide" }, decisionForm(ctx, shown)) : emptyHtml}`;
  return { page: { title: "Plan", nav: "approvals", body } };
}

/** Maximum number of card lines on a page. The user opens the remaining calls one by one. */
const MAX_DRAWN = 4_000;
const LINE_CHARS = 200;

function callCards(ctx: PageContext, shown: PlanShown): HtmlFragment[] {
  const closed = closedCalls(shown, Number(ctx.query["open"] ?? Number.NaN));
  return shown.calls.map((_, i) => (closed.has(i) ? closedCard(shown, i) : callCard(shown, i)));
}

/** Indexes of calls that do not fit on the page. The call named by `open` always fits. */
function closedCalls(shown: PlanShown, open: number): ReadonlySet<number> {
  const cost = (i: number): number => drawnLines(shown.cards?.[i] ?? null);
  const closed = new Set<number>();
  let left = MAX_DRAWN - (shown.calls[open] === undefined ? 0 : cost(open));
  for (const i of shown.calls.keys()) {
    if (i === open) continue;
    left -= cost(i);
    if (left < 0) closed.add(i);
  }
  return closed;
}

function drawnLines(judged: NonNullable<PlanShown["cards"]>[number]): number {
  if (judged === null) return 1;
  const fields = [...judged.fields, ...judged.more, ...judged.changes];
  const linesOf = (one: { lines?: readonly unknown[]; text?: string }) =>
    one.lines?.length ?? linesIn(one.text ?? "");
  return fields.reduce((sum, one) => sum + 1 + linesOf(one), 1);
}

/** Number of lines that a text takes on the page, with long lines wrapped. */
function linesIn(text: string): number {
  let lines = Math.ceil(text.length / LINE_CHARS);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** Short card for a call that does not fit on the page, with a link that opens it. */
function closedCard(shown: PlanShown, i: number): HtmlFragment {
  const { tool, decision } = shown.calls[i]!;
  const judged = shown.cards?.[i];
  const to = `${PATH}/${shown.id}?open=${i}#call-${i}`;
  return cardBlock(
    { title: `${i + 1}. ${tool}`, id: `call-${i}`, aside: rulingMark(decision) },
    judged ? safeHtml`<p>${sentenceHtml(judged.parts)}</p>` : emptyHtml,
    safeHtml`<p><a href="${to}">Show this call</a> <span class="soft">${formatCountOf(drawnLines(judged ?? null), "line")}</span></p>`,
  );
}

const isDeniedAtOnce = ({ status, decided_by }: PlanShown): boolean =>
  status === "denied" && decided_by === ENGINE_ACTOR;

function callCard(shown: PlanShown, i: number): HtmlFragment {
  const call = shown.calls[i]!;
  const judged = shown.cards?.[i] ?? null;
  return cardBlock(
    { title: `${i + 1}. ${call.tool}`, id: `call-${i}`, aside: rulingMark(call.decision) },
    judged === null
      ? safeHtml`<p class="chips">${call.arg_names.map((name) => safeHtml`<code class="chip">${name}</code> `)}</p>${isDeniedAtOnce(shown) ? emptyHtml : safeHtml`<p class="soft">Only users who can decide this call see the values.</p>`}`
      : safeHtml`<div class="judged"><p>${sentenceHtml(judged.parts)}</p>${cardSections(judged, `${shown.card_hash ?? shown.id}-${i}`)}</div>`,
    judged === null ? safeHtml`<p class="soft">${call.reason}</p>` : emptyHtml,
    // The card already shows the risk and the reason for approval.
    judged === null || call.decision === "block" ? bulletList(call.reasons, "reasons") : emptyHtml,
    judged?.risk ? emptyHtml : safeHtml`<p class="soft">risk ${call.risk_score}</p>`,
    call.depends_on.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">after call ${call.depends_on.map((n) => n + 1).join(", ")}</p>`,
  );
}

/** Whether any call is irreversible, by its current card or when it was proposed. */
const nothingTakesBack = ({ irreversible, cards }: PlanShown): boolean =>
  irreversible.length > 0 || (cards ?? []).some((one) => one?.irreversible);

/** Asked for whenever the policy signs anything: a signature that no call needs does no harm. */
const signs = ({ app }: PageContext, { calls }: PlanShown): boolean =>
  anySignatureRequired(app.core) && calls.some(({ approval_id }) => approval_id !== null);

function decisionForm(ctx: PageContext, shown: PlanShown): HtmlFragment {
  const { id, card_hash } = shown;
  const closed = closedCalls(shown, Number.NaN).size;
  return formElement(
    ctx,
    { action: `${PATH}/${id}`, class: "decide", ...(signs(ctx, shown) ? signedForm("plan", id) : {}) },
    safeHtml`<input type="hidden" name="card_hash" value="${card_hash ?? ""}">`,
    closed === 0
      ? null
      : checkboxField(
          "opened",
          `I have opened the ${formatCountOf(closed, "call")} that this page does not show in full.`,
        ),
    nothingTakesBack(shown)
      ? irreversibleCheckbox("I have read every call. Some of them cannot be undone.", "main")
      : null,
    decisionFields("Approve the plan", "Deny the plan"),
  );
}

/** Missing confirmation for the approval of a plan, as a message, or null if nothing is missing. */
function missingGesture(ctx: PageContext, shown: PlanShown): string | null {
  if (shown.card_hash === undefined) return null;
  if (nothingTakesBack(shown) && !ctx.form.checked("irreversible"))
    return "Not approved yet: confirm that some of the calls cannot be undone, then approve.";
  if (closedCalls(shown, Number.NaN).size > 0 && !ctx.form.checked("opened"))
    return "Not approved yet: open the calls that the page does not show in full, confirm that you did, then approve.";
  return null;
}

async function decide(ctx: PageContext): Promise<PageAnswer> {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalidError("choose approve or deny");
  const plan_id = ctx.params["id"]!;
  if (verb === "approve" && !(ctx.form.checked("irreversible") && ctx.form.checked("opened"))) {
    const text = missingGesture(ctx, await ctx.call(getPlan, { plan_id }));
    if (text !== null) return { to: `${PATH}/${plan_id}`, notice: { kind: "warn", text } };
  }
  const { status, reason, id } = await ctx.call(verb === "approve" ? approvePlan : denyPlan, {
    plan_id,
    note: ctx.form.optional("note"),
    card_hash: ctx.form.optional("card_hash"),
    ...(verb === "approve" ? givenSignature(ctx) : {}),
  });
  const text =
    status === "pending"
      ? "Your approval was recorded; others must approve too."
      : `Plan ${status}: ${reason}`;
  return { to: `${PATH}/${id}`, notice: { kind: "ok", text } };
}
