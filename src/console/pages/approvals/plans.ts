/** Plans pages: calls that agents propose, each with its card, approved or denied as a whole. */
import type { PlanStatus, PlanView } from "../../../govern/plans/plan.ts";
import { actorText } from "../../../govern/roles.ts";
import { anySignatureRequired } from "../../../govern/signing/draft.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { approvePlan, denyPlan, listPlans, planCards } from "../../../operations/plans.ts";
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
import { formatCountOf, type MarkTone, markLabel } from "../../parts/marks.ts";
import { formatAgo, formatTime } from "../../parts/time.ts";
import { givenSignature, signedForm } from "../sign.ts";
import { approvalTabs } from "./approval-tabs.ts";
import { drawPage } from "./card-thread.ts";
import { callCards, isDeniedAtOnce, PLANS_PATH } from "./plan-calls.ts";

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
    safeHtml`<a href="${PLANS_PATH}/${one.id}">${one.reason}</a>`,
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
${cardBlock({ title: "Plans", id: "plans", live: true }, list, pagerLinks(PLANS_PATH, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Plans", nav: "approvals", body, live: PLANS_PATH } };
}

async function plan(ctx: PageContext): Promise<PageAnswer> {
  const shown = await shownPlan(ctx, ctx.params["id"]!);
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
${shown.calls_html}
${shown.status === "pending" && shown.card_hash !== undefined ? cardBlock({ title: "Decide the plan", id: "decide" }, decisionForm(ctx, shown)) : emptyHtml}`;
  return { page: { title: "Plan", nav: "approvals", body } };
}

/** A plan as this user sees it. */
interface ShownPlanPage extends PlanView {
  card_hash?: string;
  calls_html: HtmlFragment;
  /** Number of calls that do not fit on the page. */
  closed: number;
  /** Whether a card that this user sees is irreversible. */
  is_irreversible: boolean;
}

async function shownPlan(ctx: PageContext, plan_id: string): Promise<ShownPlanPage> {
  const { facts, cards, remember } = await ctx.call(planCards, { plan_id });
  const { view, sees } = facts;
  const open = Number(ctx.query["open"] ?? Number.NaN);
  if (cards === null)
    return { ...view, calls_html: safeHtml`${callCards(view, open)}`, closed: 0, is_irreversible: false };
  const { summaries, html, hash, closed } = await drawPage(
    { cards, of: { plan: { ...facts, open } } },
    ctx.embedded,
  );
  remember(summaries);
  const is_irreversible = summaries.some(({ irreversible }, i) => sees[i] && irreversible);
  return { ...view, card_hash: hash, calls_html: html, closed, is_irreversible };
}

/** Whether any call is irreversible, by its current card or when it was proposed. */
const nothingTakesBack = ({ irreversible, is_irreversible }: ShownPlanPage): boolean =>
  irreversible.length > 0 || is_irreversible;

/** Asked for whenever the policy signs anything: a signature that no call needs does no harm. */
const signs = ({ app }: PageContext, { calls }: ShownPlanPage): boolean =>
  anySignatureRequired(app.core) && calls.some(({ approval_id }) => approval_id !== null);

function decisionForm(ctx: PageContext, shown: ShownPlanPage): HtmlFragment {
  const { id, card_hash } = shown;
  const { closed } = shown;
  return formElement(
    ctx,
    { action: `${PLANS_PATH}/${id}`, class: "decide", ...(signs(ctx, shown) ? signedForm("plan", id) : {}) },
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
function missingGesture(ctx: PageContext, shown: ShownPlanPage): string | null {
  if (shown.card_hash === undefined) return null;
  if (nothingTakesBack(shown) && !ctx.form.checked("irreversible"))
    return "Not approved yet: confirm that some of the calls cannot be undone, then approve.";
  if (shown.closed > 0 && !ctx.form.checked("opened"))
    return "Not approved yet: open the calls that the page does not show in full, confirm that you did, then approve.";
  return null;
}

async function decide(ctx: PageContext): Promise<PageAnswer> {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalidError("choose approve or deny");
  const plan_id = ctx.params["id"]!;
  if (verb === "approve" && !(ctx.form.checked("irreversible") && ctx.form.checked("opened"))) {
    const text = missingGesture(ctx, await shownPlan(ctx, plan_id));
    if (text !== null) return { to: `${PLANS_PATH}/${plan_id}`, notice: { kind: "warn", text } };
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
  return { to: `${PLANS_PATH}/${id}`, notice: { kind: "ok", text } };
}
