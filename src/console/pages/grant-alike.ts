/** `Approve, and the next ones like this`: a decision on one request, and a grant filled in from its call. */
import { approve } from "../../app/operations/approvals.ts";
import { createGrant } from "../../app/operations/grants.ts";
import { invalid, notFound, SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalView } from "../../model/approval.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { sentence } from "../errors.ts";
import { type Html, html, nothing } from "../html.ts";
import { button, checkbox, disclosed, form, input } from "../parts/forms.ts";

export const alikeRoutes = [post("/approvals/:id/alike", approveAlike)];

export const ALIKE = "Approve, and the next ones like this";

/** Nothing where a grant could not help: an undo, a call that no rule asks for, or whoever may not give one. */
export async function alikeForm(ctx: Ctx, approval: ApprovalView, card_hash?: string): Promise<Html> {
  if (approval.kind !== "call" || !ctx.may(createGrant)) return nothing;
  const call = await callOf(ctx, approval.id);
  if (call === null || call.rules.length === 0 || (call.irreversible && !ctx.is("admin"))) return nothing;
  return disclosed(
    ALIKE,
    form(
      ctx,
      { action: `/console/approvals/${approval.id}/alike` },
      html`<p class="soft">Calls of <code>${approval.tool}</code> by ${approval.actor} that ${call.rules.join(", ")} asks for, whatever their other arguments are. Anything else that asks still does.</p>
${card_hash === undefined ? null : html`<input type="hidden" name="card_hash" value="${card_hash}">`}
<div class="row">${input({ label: "How many more", name: "max_uses", type: "number", value: "10", required: true, hint: `1 to ${LIMITS.grant_uses}` })}${input({ label: "For hours", name: "hours", type: "number", value: "8", required: true, hint: `at most ${LIMITS.grant_days * 24}` })}</div>`,
      input({
        label: "Only up to",
        name: "budget_max",
        placeholder: "no budget",
        hint: "adds up the argument below",
      }),
      input({ label: "Argument that adds up", name: "budget_path", placeholder: "$args.amount" }),
      input({ label: "Reason", name: "reason", required: true, maxlength: LIMITS.reason_chars }),
      call.irreversible ? checkbox("irreversible", "Nothing can take these calls back.") : null,
      button("Approve and grant", "good"),
    ),
  );
}

interface LikeCall {
  tenant: string | null;
  environment: string | null;
  rules: string[];
  irreversible: boolean;
}

/** What of the call a grant is filled in from; rules that other entries share their ids with are looked up as rules. */
async function callOf({ app }: Ctx, id: string): Promise<LikeCall | null> {
  const { store, rules } = app.core;
  const approval = await store.get("approvals", id);
  const run = approval === undefined ? undefined : await store.get("runs", approval.run_id);
  if (approval === undefined || run === undefined) return null;
  const { policy, manifests } = rules();
  const asking = new Set(
    policy.rules.all().flatMap(({ id, action }) => (action === "require_approval" ? [id] : [])),
  );
  const asked = approval.internal.because?.causes.map(({ rule }) => rule) ?? [approval.rule];
  return {
    tenant: run.tenant,
    environment: run.environment,
    rules: asked.filter((rule) => rule !== null && asking.has(rule)) as string[],
    irreversible: manifests.active(approval.tool)?.effect === "irreversible",
  };
}

async function approveAlike(ctx: Ctx): Promise<Answer> {
  ctx.demand(createGrant);
  const id = ctx.params["id"]!;
  const call = await callOf(ctx, id);
  if (call === null) throw notFound(`unknown approval request ${id}`);
  const hours = Number(ctx.form.text("hours"));
  if (!(hours > 0)) throw invalid("hours: for how long?");
  if (call.irreversible && !ctx.form.checked("irreversible"))
    throw invalid("irreversible: tick that nothing can take these calls back");
  const path = ctx.form.optional("budget_path");
  // The decision comes first: whatever is wrong with the card, no grant may come of it.
  const {
    tool,
    actor,
    run_id: _run,
  } = await ctx.call(approve, {
    approval_id: id,
    card_hash: ctx.form.optional("card_hash"),
  });
  try {
    const { max_uses } = await ctx.call(createGrant, {
      match: { tool, actor, tenant: call.tenant, environment: call.environment },
      rules: call.rules,
      max_uses: Number(ctx.form.text("max_uses")),
      budget: path === undefined ? undefined : { path, max: Number(ctx.form.text("budget_max")) },
      irreversible: call.irreversible,
      expires_at: new Date(ctx.app.core.env.now() + hours * 3_600_000).toISOString(),
      reason: ctx.form.text("reason"),
    });
    const text = `Approved: ${tool} for ${actor}, and the next ${max_uses} like it.`;
    return { to: "/console/approvals", notice: { kind: "ok", text } };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const text = `Approved: ${tool} for ${actor}. There is no grant: ${sentence(error.message)}.`;
    return { to: "/console/approvals", notice: { kind: "warn", text } };
  }
}
