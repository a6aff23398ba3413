/** `Approve, and the next ones like this`: a decision on one request, and a grant filled in from its call. */

import type { z } from "zod";
import { approve } from "../../app/operations/approvals.ts";
import type { grantInput } from "../../app/operations/grants/grant-input.ts";
import { checkGrant, createGrant } from "../../app/operations/grants.ts";
import { unknownRun } from "../../engine/load-run.ts";
import { forbidden, invalid, notFound, SvcError } from "../../kernel/errors.ts";
import { isGlob } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { sentence } from "../../kernel/words.ts";
import { OPEN_APPROVAL } from "../../model/approval.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { button, checkbox, disclosed, form, input } from "../parts/forms.ts";
import { type ShownRequest, shownRequest } from "./approval-data.ts";
import { MOST_HOURS, readBudget, readExpiry, readUses } from "./grant-fields.ts";

export const alikeRoutes = [post("/approvals/:id/alike", createGrant, approveAlike)];

export const ALIKE = "Approve, and the next ones like this";

const USES = 10;
const HOURS = 8;

/** Nothing where sending it could only be refused, whatever were filled in. */
export async function alikeForm(ctx: Ctx, shown: ShownRequest): Promise<Html> {
  const { approval, card } = shown;
  if (card?.card_hash == null || !OPEN_APPROVAL.has(approval.status) || !ctx.may(createGrant)) return nothing;
  const expires_at = new Date(ctx.app.core.env.now() + HOURS * 3_600_000).toISOString();
  let like: LikeCall;
  try {
    like = await likeCall(ctx, shown);
    await ctx.call(checkGrant, { ...like, max_uses: USES, expires_at, reason: ALIKE });
  } catch (error) {
    if (error instanceof SvcError) return nothing;
    throw error;
  }
  return disclosed(
    ALIKE,
    form(
      ctx,
      { action: `/console/approvals/${approval.id}/alike` },
      html`<p class="soft">Calls of <code>${approval.tool}</code> by ${approval.actor} that ${like.rules.join(", ")} asks for, whatever their other arguments are. Anything else that asks still does.</p>
<input type="hidden" name="card_hash" value="${card.card_hash}">
<div class="row">${input({ label: "How many more", name: "max_uses", type: "number", value: String(USES), required: true, hint: `1 to ${LIMITS.grant_uses}` })}${input({ label: "For hours", name: "hours", type: "number", value: String(HOURS), required: true, hint: `at most ${MOST_HOURS}` })}</div>`,
      input({
        label: "Only up to",
        name: "budget_max",
        placeholder: "no budget",
        hint: "adds up the argument below",
      }),
      input({ label: "Argument that adds up", name: "budget_path", placeholder: "$args.amount" }),
      input({ label: "Reason", name: "reason", required: true, maxlength: LIMITS.reason_chars }),
      like.irreversible ? checkbox("irreversible", "Nothing can take these calls back.") : null,
      button("Approve and grant", "good"),
    ),
  );
}

type LikeCall = Pick<z.input<typeof grantInput>, "match" | "rules" | "irreversible">;

/** The grant as far as the call fills it in; rules that other entries share their ids with are looked up as rules. */
async function likeCall({ app }: Ctx, { approval, alone }: ShownRequest): Promise<LikeCall> {
  const { store, rules } = app.core;
  const { tool, actor, run_id, kind, internal } = approval;
  const run = await store.get("runs", run_id);
  if (run === undefined) throw unknownRun(run_id);
  if (kind !== "call") throw invalid("only a call can be granted ahead: approve this request by itself");
  if (!alone)
    throw forbidden("your approval alone does not decide this request, and a grant is one person's");
  const { tenant, environment } = run;
  if ([tool, actor, tenant, environment].some((name) => name !== null && isGlob(name)))
    throw invalid(
      "a name in this call would be read as a pattern for others: approve this request by itself",
    );
  const { policy, manifests } = rules();
  const asking = new Set(
    policy.rules.all().flatMap(({ id, action }) => (action === "require_approval" ? [id] : [])),
  );
  const asked = internal.because?.causes.map(({ rule }) => rule) ?? [approval.rule];
  return {
    match: { tool, actor, tenant, environment },
    rules: asked.filter((rule) => rule !== null && asking.has(rule)) as string[],
    irreversible: manifests.active(tool)?.effect === "irreversible",
  };
}

async function approveAlike(ctx: Ctx): Promise<Answer> {
  ctx.demand(createGrant);
  const id = ctx.params["id"]!;
  const shown = await shownRequest(ctx, id);
  if (shown === null) throw notFound(`unknown approval request ${id}`);
  const like = await likeCall(ctx, shown);
  if (like.irreversible && !ctx.form.checked("irreversible"))
    throw invalid("irreversible: tick that nothing can take these calls back");
  const grant = {
    ...like,
    max_uses: readUses(ctx.form),
    budget: readBudget(ctx.form),
    expires_at: readExpiry(ctx),
    reason: ctx.form.text("reason"),
  };
  await ctx.call(checkGrant, grant);
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
