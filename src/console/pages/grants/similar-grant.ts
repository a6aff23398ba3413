/**
 * `Approve, and the next ones like this`: approves one request and creates a grant from its call. The form states in
 * one sentence which calls the grant would allow. A grant is created only if it matches the sentence that the user saw.
 */

import type { z } from "zod";
import { nextEventLoopTurn, runInSlices } from "../../../child-process/event-loop-slices.ts";
import { OPEN_APPROVAL_STATUSES } from "../../../govern/approvals/approval.ts";
import {
  ARGUMENT_HOLDS,
  type ArgumentChoice,
  budgetArgument,
  type LikeArgument,
  likeConditions,
  likeSentence,
  presetChoice,
  readingLikeArguments,
} from "../../../govern/approvals/grant-from-call.ts";
import { unknownRun } from "../../../govern/runs/load-run.ts";
import { isSignatureRequired } from "../../../govern/signing/draft.ts";
import {
  conflictError,
  forbiddenError,
  invalidError,
  notFoundError,
  SvcError,
} from "../../../kernel/errors.ts";
import { sha256Hex } from "../../../kernel/hash.ts";
import { isGlob } from "../../../kernel/text/glob.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import { approveRequest } from "../../../operations/approvals/approvals.ts";
import { findRun } from "../../../operations/documents.ts";
import type { grantInput } from "../../../operations/grants/grant-input.ts";
import { checkGrant, createGrant } from "../../../operations/grants/grants.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute, SubmittedForm } from "../../page-context.ts";
import { pageHead } from "../../parts/blocks.ts";
import { foldedForm } from "../../parts/forms.ts";
import { type ShownRequest, shownRequest } from "../approvals/approval-data.ts";
import { readBudget, readExpiry, readUses } from "./grant-fields.ts";
import {
  APPROVE_SIMILAR_LABEL,
  type SimilarCall,
  type SimilarGrantDraft,
  similarGrantFields,
} from "./similar-grant-form.ts";

export const alikeRoutes = [postRoute("/approvals/:id/alike", createGrant, approveAlike)];

/** Defaults for fields that the user left out. */
const PRESET = { max_uses: "3", hours: "1" };
const NOTHING_SENT = new SubmittedForm({});

/** Empty if any submission would be rejected. */
export async function similarGrantForm(ctx: PageContext, shown: ShownRequest): Promise<HtmlFragment> {
  const { approval, card } = shown;
  if (card?.card_hash == null || !OPEN_APPROVAL_STATUSES.has(approval.status) || !ctx.may(createGrant))
    return emptyHtml;
  // The approval and the grant would each need a signature.
  if (isSignatureRequired(ctx.app.core, approval)) return emptyHtml;
  try {
    const like = await likeCall(ctx, shown);
    // Yield: reading, drafting and drawing a call can each look through a megabyte.
    await nextEventLoopTurn();
    const draft = draftOf({ ...ctx, form: NOTHING_SENT }, like);
    await ctx.call(checkGrant, { ...grantOf(draft), reason: APPROVE_SIMILAR_LABEL });
    await nextEventLoopTurn();
    return foldedForm(APPROVE_SIMILAR_LABEL, similarGrantFields(ctx, { shown, like, draft }));
  } catch (error) {
    if (error instanceof SvcError) return emptyHtml;
    throw error;
  }
}

/** Collects the facts that prefill the grant. Ids that rules share with other policy entries are looked up as rules. */
async function likeCall({ app }: PageContext, { approval, card, alone }: ShownRequest): Promise<SimilarCall> {
  const { rules } = app.core;
  const { tool, actor, run_id, kind, internal } = approval;
  const run = await findRun(app, run_id);
  if (run === undefined) throw unknownRun(run_id);
  if (kind !== "call")
    throw invalidError("only calls can be covered by a grant: approve this request on its own");
  if (!alone || card === null)
    throw forbiddenError(
      "your approval alone does not decide this request, so you cannot grant calls like it",
    );
  // A run without a tenant or environment is not similar to one that has them.
  const [tenant, environment] = [run.tenant ?? "", run.environment ?? ""];
  if ([tool, actor, tenant, environment].some(isGlob))
    throw invalidError(
      "a name in this call contains wildcard characters, so a grant would match other names: approve this request on its own",
    );
  const { policy, manifests } = rules();
  const asking = new Set(
    policy.rules.all().flatMap(({ id, action }) => (action === "require_approval" ? [id] : [])),
  );
  const asked = internal.because?.causes.map(({ rule }) => rule) ?? [approval.rule];
  const money = new Set(card.money);
  if (card.args === "large")
    throw invalidError("the arguments are too large for a grant: approve this request on its own");
  const reading = readingLikeArguments(card.args?.value, approval.arg_names, money);
  const found = await runInSlices(reading);
  return {
    match: { tool, actor, tenant, environment },
    rules: asked.filter((rule) => rule !== null && asking.has(rule)) as string[],
    irreversible: manifests.active(tool)?.effect === "irreversible",
    found,
    budget: budgetArgument(found, money),
  };
}

function draftOf(ctx: PageContext, { found, budget, ...call }: SimilarCall): SimilarGrantDraft {
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

/** Fields that were not sent get a default; an empty field counts as the user's choice. */
function withPreset(form: SubmittedForm, budget: LikeArgument | undefined): SubmittedForm {
  const isSent = (name: string) => form.all(name).length > 0;
  const fields = ["max_uses", "hours", "budget_path", "budget_max"] as const;
  const sent = fields.flatMap((name) => (isSent(name) ? [[name, form.text(name)]] : []));
  const isBudgetSent = isSent("budget_path") || isSent("budget_max");
  const limit =
    isBudgetSent || budget === undefined
      ? {}
      : { budget_path: budget.path, budget_max: String(budget.value) };
  return new SubmittedForm({ ...PRESET, ...limit, ...Object.fromEntries(sent) });
}

/** An argument without a field in the form stays as narrow as in the call. */
function readChoice(form: SubmittedForm, one: LikeArgument, i: number): ArgumentChoice {
  const preset = presetChoice(one);
  const holds = ARGUMENT_HOLDS.find((name) => name === form.text(`holds_${i}`)) ?? preset.holds;
  const most = form.optional(`most_${i}`);
  return { holds, most: most === undefined ? preset.most : Number(most) };
}

/** Input for the grant. While a choice is missing, the narrowest possible grant is checked. */
function grantOf({ grant, allowed }: SimilarGrantDraft): Omit<z.input<typeof grantInput>, "reason"> {
  return { ...grant, ...(allowed?.terms ?? { when: [], args_only: [] }) };
}

async function approveAlike(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"]!;
  const shown = await shownRequest(ctx, id);
  if (shown === null) throw notFoundError(`unknown approval request ${id}`);
  const like = await likeCall(ctx, shown);
  const draft = draftOf(ctx, like);
  // Throws if a choice is missing.
  likeConditions(like.found, draft.choices);
  const isShown = ctx.form.text("show") === "" && ctx.form.text("allows") === draft.allowed?.hash;
  const reason = ctx.form.text("reason");
  const grant = { ...grantOf(draft), reason: isShown ? reason : reason || APPROVE_SIMILAR_LABEL };
  await ctx.call(checkGrant, grant);
  if (ctx.form.text("card_hash") !== shown.card?.card_hash)
    throw conflictError(
      "card_changed",
      "the card has changed since it was shown; read it again, then decide",
    );
  if (!isShown) return shownFirst(ctx, shown, like, draft);
  if (like.irreversible && !ctx.form.checked("irreversible"))
    throw invalidError("irreversible: confirm that these calls cannot be undone");
  // Approve first: if the approval fails, for example because the card changed, no grant is created.
  const { tool, actor, status } = await ctx.call(approveRequest, {
    approval_id: id,
    card_hash: ctx.form.optional("card_hash"),
  });
  const warn = (text: string): PageAnswer => ({ to: "/console/approvals", notice: { kind: "warn", text } });
  if (OPEN_APPROVAL_STATUSES.has(status))
    return warn(`Your approval of ${tool} was recorded; others must approve too. No grant was created.`);
  try {
    const { max_uses } = await ctx.call(createGrant, grant);
    const text = `Approved: ${tool} for ${actor}, and the next ${max_uses} like it.`;
    return { to: "/console/approvals", notice: { kind: "ok", text } };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return warn(`Approved: ${tool} for ${actor}. No grant was created: ${capitalizeFirst(error.message)}.`);
  }
}

/** Shows the sentence again because the form has changed since. Decides nothing. */
function shownFirst(
  ctx: PageContext,
  shown: ShownRequest,
  like: SimilarCall,
  draft: SimilarGrantDraft,
): PageAnswer {
  const body = safeHtml`${pageHead(APPROVE_SIMILAR_LABEL, "Nothing is approved yet. Check which calls would be allowed, then approve and grant.")}
<section class="card">${similarGrantFields(ctx, { shown, like, draft })}</section>
<p><a class="button" href="/console/approvals/${shown.approval.id}">Back to the request</a></p>`;
  return { page: { title: APPROVE_SIMILAR_LABEL, nav: "approvals", body } };
}
