/**
 * `Approve, and the next ones like this`: a decision on one request, and a grant that starts from its call. What the
 * form would allow is said in one sentence; a grant is given only as the sentence that was shown says it.
 */
import type { z } from "zod";
import { approve } from "../../app/operations/approvals.ts";
import type { grantInput } from "../../app/operations/grants/grant-input.ts";
import { checkGrant, createGrant } from "../../app/operations/grants.ts";
import { unknownRun } from "../../engine/load-run.ts";
import { conflict, forbidden, invalid, notFound, SvcError } from "../../kernel/errors.ts";
import { isGlob } from "../../kernel/glob.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { sentence } from "../../kernel/words.ts";
import { OPEN_APPROVAL } from "../../model/approval.ts";
import {
  ARGUMENT_HOLDS,
  type ArgumentChoice,
  budgetArgument,
  type LikeArgument,
  likeArguments,
  likeConditions,
  likeSentence,
  presetChoice,
} from "../../model/like-call.ts";
import { type Answer, type Ctx, Form, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { pageHead } from "../parts/blocks.ts";
import { disclosed } from "../parts/forms.ts";
import { type ShownRequest, shownRequest } from "./approval-data.ts";
import { ALIKE, type AlikeDraft, alikeFields, type LikeCall } from "./grant-alike-form.ts";
import { readBudget, readExpiry, readUses } from "./grant-fields.ts";

export const alikeRoutes = [post("/approvals/:id/alike", createGrant, approveAlike)];

/** What the form starts from where nothing was filled in. */
const PRESET = { max_uses: "3", hours: "1" };
const NOTHING_SENT = new Form({});

/** Nothing where sending it could only be refused, whatever were filled in. */
export async function alikeForm(ctx: Ctx, shown: ShownRequest): Promise<Html> {
  const { approval, card } = shown;
  if (card?.card_hash == null || !OPEN_APPROVAL.has(approval.status) || !ctx.may(createGrant)) return nothing;
  try {
    const like = await likeCall(ctx, shown);
    const draft = draftOf({ ...ctx, form: NOTHING_SENT }, like);
    await ctx.call(checkGrant, { ...grantOf(draft), reason: ALIKE });
    return disclosed(ALIKE, alikeFields(ctx, { shown, like, draft }));
  } catch (error) {
    if (error instanceof SvcError) return nothing;
    throw error;
  }
}

/** Rules that other entries share their ids with are looked up as rules. */
async function likeCall({ app }: Ctx, { approval, card, alone }: ShownRequest): Promise<LikeCall> {
  const { store, rules } = app.core;
  const { tool, actor, run_id, kind, internal } = approval;
  const run = await store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  if (kind !== "call") throw invalid("only a call can be granted ahead: approve this request by itself");
  if (!alone || card === null)
    throw forbidden("your approval alone does not decide this request, and a grant is one person's");
  // A run that names no tenant or no environment is not like one that does.
  const [tenant, environment] = [run.tenant ?? "", run.environment ?? ""];
  if ([tool, actor, tenant, environment].some(isGlob))
    throw invalid(
      "a name in this call would be read as a pattern for others: approve this request by itself",
    );
  const { policy, manifests } = rules();
  const asking = new Set(
    policy.rules.all().flatMap(({ id, action }) => (action === "require_approval" ? [id] : [])),
  );
  const asked = internal.because?.causes.map(({ rule }) => rule) ?? [approval.rule];
  const money = new Set(card.fields.flatMap(({ as, path }) => (as === "money" ? [path] : [])));
  const found = likeArguments(card.arguments ?? undefined, approval.arg_names, money);
  return {
    match: { tool, actor, tenant, environment },
    rules: asked.filter((rule) => rule !== null && asking.has(rule)) as string[],
    irreversible: manifests.active(tool)?.effect === "irreversible",
    found,
    budget: budgetArgument(found, money),
  };
}

function draftOf(ctx: Ctx, { found, budget, ...call }: LikeCall): AlikeDraft {
  const form = withPreset(ctx.form, budget);
  const choices = found.map((one, i) => readChoice(ctx.form, one, i));
  const grant = {
    ...call,
    max_uses: readUses(form),
    budget: readBudget(form) ?? null,
    expires_at: readExpiry({ ...ctx, form }),
  };
  const hours = Number(form.text("hours"));
  const isOpen = choices.some(({ holds }) => holds === null);
  if (isOpen) return { choices, grant, hours, allowed: null };
  const terms = likeConditions(found, choices);
  const { expires_at: _, ...fixed } = grant;
  const hash = sha256Hex(JSON.stringify({ ...fixed, ...terms, hours }));
  const said = likeSentence(found, choices, { ...call, ...terms, ...grant, hours });
  return { choices, grant, hours, allowed: { terms, sentence: said, hash } };
}

/** A field that was not sent is as the call has it; one that was sent empty is what the person said. */
function withPreset(form: Form, budget: LikeArgument | undefined): Form {
  const isSent = (name: string) => form.all(name).length > 0;
  const fields = ["max_uses", "hours", "budget_path", "budget_max"] as const;
  const sent = fields.flatMap((name) => (isSent(name) ? [[name, form.text(name)]] : []));
  const isBudgetSent = isSent("budget_path") || isSent("budget_max");
  const limit =
    isBudgetSent || budget === undefined
      ? {}
      : { budget_path: budget.path, budget_max: String(budget.value) };
  return new Form({ ...PRESET, ...limit, ...Object.fromEntries(sent) });
}

/** An argument that the form does not speak of stays as narrow as the call. */
function readChoice(form: Form, one: LikeArgument, i: number): ArgumentChoice {
  const preset = presetChoice(one);
  const holds = ARGUMENT_HOLDS.find((name) => name === form.text(`holds_${i}`)) ?? preset.holds;
  const most = form.optional(`most_${i}`);
  return { holds, most: most === undefined ? preset.most : Number(most) };
}

/** While something is still to be said, the narrowest that could come of it is what is checked. */
function grantOf({ grant, allowed }: AlikeDraft): Omit<z.input<typeof grantInput>, "reason"> {
  return { ...grant, ...(allowed?.terms ?? { when: [], args_only: [] }) };
}

async function approveAlike(ctx: Ctx): Promise<Answer> {
  const id = ctx.params["id"]!;
  const shown = await shownRequest(ctx, id);
  if (shown === null) throw notFound(`unknown approval request ${id}`);
  const like = await likeCall(ctx, shown);
  const draft = draftOf(ctx, like);
  // Throws where something is still to be said.
  likeConditions(like.found, draft.choices);
  const isShown = ctx.form.text("show") === "" && ctx.form.text("allows") === draft.allowed?.hash;
  const reason = ctx.form.text("reason");
  const grant = { ...grantOf(draft), reason: isShown ? reason : reason || ALIKE };
  await ctx.call(checkGrant, grant);
  if (ctx.form.text("card_hash") !== shown.card?.card_hash)
    throw conflict(
      "card_changed",
      "the card has changed since it was shown; look at it again and decide on what it says now",
    );
  if (!isShown) return shownFirst(ctx, shown, like, draft);
  if (like.irreversible && !ctx.form.checked("irreversible"))
    throw invalid("irreversible: tick that nothing can take these calls back");
  // The decision comes before the grant: whatever is wrong with the card, no grant may come of it.
  const { tool, actor, status } = await ctx.call(approve, {
    approval_id: id,
    card_hash: ctx.form.optional("card_hash"),
  });
  const warn = (text: string): Answer => ({ to: "/console/approvals", notice: { kind: "warn", text } });
  if (OPEN_APPROVAL.has(status))
    return warn(`Your approval of ${tool} counts; others must approve too. There is no grant.`);
  try {
    const { max_uses } = await ctx.call(createGrant, grant);
    const text = `Approved: ${tool} for ${actor}, and the next ${max_uses} like it.`;
    return { to: "/console/approvals", notice: { kind: "ok", text } };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return warn(`Approved: ${tool} for ${actor}. There is no grant: ${sentence(error.message)}.`);
  }
}

/** What was filled in is not what the last sentence said: it is said again, and nothing is decided yet. */
function shownFirst(ctx: Ctx, shown: ShownRequest, like: LikeCall, draft: AlikeDraft): Answer {
  const body = html`${pageHead(ALIKE, "Nothing is approved yet. Read what would be allowed, then approve and grant.")}
<section class="card">${alikeFields(ctx, { shown, like, draft })}</section>
<p><a class="button" href="/console/approvals/${shown.approval.id}">Back to the request</a></p>`;
  return { page: { title: ALIKE, nav: "approvals", body } };
}
