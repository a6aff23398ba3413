/** Plans in the console: what agents propose, each call with its card, decided by one form. */
import { approvePlan, denyPlan, getPlan, listPlans, type PlanShown } from "../../app/operations/plans.ts";
import { ENGINE } from "../../engine/core.ts";
import { invalid } from "../../kernel/errors.ts";
import type { PlanStatus } from "../../model/plan.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, empty, factList, notice, pageHead, pager, table } from "../parts/blocks.ts";
import { checkbox, decision, form, secondGesture } from "../parts/forms.ts";
import { nameText, runLink } from "../parts/ids.ts";
import { mark, plural, rulingMark, type Tone } from "../parts/marks.ts";
import { ago, when } from "../parts/time.ts";
import { judgedParts } from "./approval-card.ts";
import { sentenceHtml } from "./approval-list.ts";
import { approvalTabs } from "./approval-tabs.ts";

const PATH = "/console/plans";

export const planRoutes = [
  get("/plans", plans),
  get("/plans/:id", plan),
  post("/plans/:id", approvePlan, decide),
];

const TONES: Record<PlanStatus, Tone> = {
  pending: "warn",
  approved: "good",
  denied: "bad",
  expired: "quiet",
  ended: "quiet",
  done: "good",
};

async function plans(ctx: Ctx): Promise<Answer> {
  const query = ctx.query["cursor"] === undefined ? {} : { cursor: ctx.query["cursor"] };
  const { plans, next_cursor } = await ctx.call(listPlans, query);
  const rows = plans.map((one) => [
    mark(TONES[one.status], one.status),
    html`<a href="${PATH}/${one.id}">${one.reason}</a>`,
    plural(one.calls.length, "call"),
    nameText(one.actor),
    runLink(one.run_id),
    when(one.requested_ms),
  ]);
  const list =
    rows.length === 0
      ? empty(
          "No plans",
          html`<p>An agent may propose its calls before it makes them. One decision then covers those that need one, in their order, for exactly their arguments.</p>`,
        )
      : table("Plans", ["Status", "Plan", "Calls", "Actor", "Run", "When"], rows);
  const body = html`${pageHead("Plans", "What agents propose to do, decided as a whole.")}${await approvalTabs(ctx, "plans")}
${card({ title: "Plans", id: "plans", live: true }, list, pager(PATH, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Plans", nav: "approvals", body, live: PATH } };
}

async function plan(ctx: Ctx): Promise<Answer> {
  const shown = await ctx.call(getPlan, { plan_id: ctx.params["id"]! });
  const now = ctx.app.core.env.now();
  const body = html`${pageHead("Plan", shown.reason, mark(TONES[shown.status], shown.status))}${await approvalTabs(ctx, "plans")}
${card(
  { title: "The plan", id: "plan" },
  factList([
    ["Who", html`${shown.actor} in ${runLink(shown.run_id)}`],
    ["Proposed", ago(shown.requested_ms, now)],
    ["Expires", ago(shown.expires_ms, now)],
    ["Can be undone as a whole", shown.fully_reversible ? "yes" : "no"],
    shown.irreversible.length === 0
      ? null
      : ["Cannot be taken back", html`<strong>${shown.irreversible.join(", ")}</strong>`],
    shown.decided_by === null ? null : ["Decided by", shown.decided_by],
    shown.note === null ? null : ["Note", shown.note],
  ]),
  shown.residue.length === 0
    ? nothing
    : html`<p class="soft">What cannot be undone:</p>${bullets(shown.residue, "residue")}`,
  shown.status === "pending" && shown.card_hash !== undefined
    ? html`<p><a href="#decide">Decide below the calls</a></p>`
    : nothing,
)}
${isDeniedAtOnce(shown) ? notice("warn", html`<p>A call of this plan would be refused, so nobody was asked and no values were kept.</p>`) : nothing}
${callCards(ctx, shown)}
${shown.status === "pending" && shown.card_hash !== undefined ? card({ title: "Decide the plan", id: "decide" }, decisionForm(ctx, shown)) : nothing}`;
  return { page: { title: "Plan", nav: "approvals", body } };
}

/** How many lines of cards a page draws; a person opens what comes behind them call by call. */
const MOST_DRAWN = 4_000;
const LINE_CHARS = 200;

function callCards(ctx: Ctx, shown: PlanShown): Html[] {
  const closed = closedCalls(shown, Number(ctx.query["open"] ?? Number.NaN));
  return shown.calls.map((_, i) => (closed.has(i) ? closedCard(shown, i) : callCard(shown, i)));
}

/** The calls that the page has no room for; there is always room for the one that was asked for. */
function closedCalls(shown: PlanShown, open: number): ReadonlySet<number> {
  const cost = (i: number): number => drawnLines(shown.cards?.[i] ?? null);
  const closed = new Set<number>();
  let left = MOST_DRAWN - (shown.calls[open] === undefined ? 0 : cost(open));
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

/** Lines of a text as a page draws it: long ones are wrapped. */
function linesIn(text: string): number {
  let lines = Math.ceil(text.length / LINE_CHARS);
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** A call that the page has no room for: what it is, and where all of it is shown. */
function closedCard(shown: PlanShown, i: number): Html {
  const { tool, decision } = shown.calls[i]!;
  const judged = shown.cards?.[i];
  const to = `${PATH}/${shown.id}?open=${i}#call-${i}`;
  return card(
    { title: `${i + 1}. ${tool}`, id: `call-${i}`, aside: rulingMark(decision) },
    judged ? html`<p>${sentenceHtml(judged.parts)}</p>` : nothing,
    html`<p><a href="${to}">Show this call</a> <span class="soft">${plural(drawnLines(judged ?? null), "line")}</span></p>`,
  );
}

const isDeniedAtOnce = ({ status, decided_by }: PlanShown): boolean =>
  status === "denied" && decided_by === ENGINE;

function callCard(shown: PlanShown, i: number): Html {
  const call = shown.calls[i]!;
  const judged = shown.cards?.[i] ?? null;
  return card(
    { title: `${i + 1}. ${call.tool}`, id: `call-${i}`, aside: rulingMark(call.decision) },
    judged === null
      ? html`<p class="chips">${call.arg_names.map((name) => html`<code class="chip">${name}</code> `)}</p>${isDeniedAtOnce(shown) ? nothing : html`<p class="soft">Their values are for those who may decide this call.</p>`}`
      : html`<div class="judged"><p>${sentenceHtml(judged.parts)}</p>${judgedParts(judged, `${shown.card_hash ?? shown.id}-${i}`)}</div>`,
    judged === null ? html`<p class="soft">${call.reason}</p>` : nothing,
    // The card tells why a person is asked, and of the risk, itself.
    judged === null || call.decision === "block" ? bullets(call.reasons, "reasons") : nothing,
    judged?.risk ? nothing : html`<p class="soft">risk ${call.risk_score}</p>`,
    call.depends_on.length === 0
      ? nothing
      : html`<p class="soft">after call ${call.depends_on.map((n) => n + 1).join(", ")}</p>`,
  );
}

/** By what its cards show now, and by what it was when it was proposed. */
const nothingTakesBack = ({ irreversible, cards }: PlanShown): boolean =>
  irreversible.length > 0 || (cards ?? []).some((one) => one?.irreversible);

function decisionForm(ctx: Ctx, shown: PlanShown): Html {
  const { id, card_hash } = shown;
  const closed = closedCalls(shown, Number.NaN).size;
  return form(
    ctx,
    { action: `${PATH}/${id}`, class: "decide" },
    html`<input type="hidden" name="card_hash" value="${card_hash ?? ""}">`,
    closed === 0
      ? null
      : checkbox("opened", `I have opened the ${plural(closed, "call")} that this page has no room for.`),
    nothingTakesBack(shown)
      ? secondGesture("I have read every call. Nothing can take some of them back.", "main")
      : null,
    decision("Approve the plan", "Deny the plan"),
  );
}

/** What the person has not confirmed of a plan that is decided by its cards; null if nothing is missing. */
function missingGesture(ctx: Ctx, shown: PlanShown): string | null {
  if (shown.card_hash === undefined) return null;
  if (nothingTakesBack(shown) && !ctx.form.checked("irreversible"))
    return "Not approved yet: tick that nothing can take some of the calls back, then approve.";
  if (closedCalls(shown, Number.NaN).size > 0 && !ctx.form.checked("opened"))
    return "Not approved yet: open the calls that the page does not show, tick that you did, then approve.";
  return null;
}

async function decide(ctx: Ctx): Promise<Answer> {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalid("choose approve or deny");
  const plan_id = ctx.params["id"]!;
  if (verb === "approve" && !(ctx.form.checked("irreversible") && ctx.form.checked("opened"))) {
    const text = missingGesture(ctx, await ctx.call(getPlan, { plan_id }));
    if (text !== null) return { to: `${PATH}/${plan_id}`, notice: { kind: "warn", text } };
  }
  const { status, reason, id } = await ctx.call(verb === "approve" ? approvePlan : denyPlan, {
    plan_id,
    note: ctx.form.optional("note"),
    card_hash: ctx.form.optional("card_hash"),
  });
  const text =
    status === "pending" ? "Your approval counts; others must approve too." : `Plan ${status}: ${reason}`;
  return { to: `${PATH}/${id}`, notice: { kind: "ok", text } };
}
