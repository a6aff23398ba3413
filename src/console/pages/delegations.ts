/** Lent authority: who may decide for whom, until when. It stands at the foot of the Approvals page. */
import { createDelegation, listDelegations, revokeDelegation } from "../../app/operations/delegations.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, table } from "../parts/blocks.ts";
import { button, disclosed, form, input } from "../parts/forms.ts";
import { mark } from "../parts/marks.ts";
import { ago } from "../parts/time.ts";

const PATH = "/console/approvals";

export const delegationRoutes = [
  post("/delegations", createDelegation, lend),
  post("/delegations/:id/revoke", revokeDelegation, revoke),
];

export async function delegationsCard(ctx: Ctx): Promise<Html> {
  const { delegations } = await ctx.call(listDelegations, {});
  const now = ctx.app.core.env.now();
  const active = delegations.filter(({ in_force }) => in_force);
  const may = ctx.may(createDelegation);
  if (active.length === 0 && !may) return nothing;
  const rows = active.map((one) => [
    one.from,
    one.to_principal.kind === "oidc" ? `${one.to} (by token)` : one.to,
    html`<code>${one.tools}</code>`,
    one.reason,
    html`${mark("info", "active")} ends ${ago(one.expires_ms, now)}`,
    may
      ? form(ctx, { action: `/console/delegations/${one.id}/revoke`, class: "inline" }, button("Take back"))
      : "",
  ]);
  return card(
    { title: "Lent authority", id: "delegations" },
    html`<p class="soft">Going away? Lend your authority to decide, for a while. Decisions then name both of you.</p>`,
    rows.length === 0
      ? nothing
      : table("Active delegations", ["From", "To", "Tools", "Reason", "Until", "Action"], rows),
    may ? lendForm(ctx) : nothing,
  );
}

function lendForm(ctx: Ctx): Html {
  return disclosed(
    "Lend my authority",
    form(
      ctx,
      { action: "/console/delegations" },
      html`<div class="row">${input({ label: "To (name of a key or person)", name: "to", required: true, maxlength: 256 })}${input({ label: "Tools", name: "tools", placeholder: "*", hint: "a glob; all when empty", maxlength: 256 })}${input({ label: "For days", name: "days", type: "number", value: "7", required: true, hint: `1 to ${LIMITS.delegation_days}` })}</div>`,
      input({ label: "Reason", name: "reason", required: true, maxlength: 4_000 }),
      button("Lend", "primary"),
    ),
  );
}

async function lend(ctx: Ctx): Promise<Answer> {
  ctx.demand(createDelegation);
  const days = Number(ctx.form.text("days"));
  if (!Number.isInteger(days) || days < 1 || days > LIMITS.delegation_days)
    throw invalid(`days: a whole number from 1 to ${LIMITS.delegation_days}`);
  const tools = ctx.form.optional("tools");
  const { to } = await ctx.call(createDelegation, {
    to: ctx.form.text("to"),
    tools,
    reason: ctx.form.text("reason"),
    expires_at: new Date(ctx.app.core.env.now() + days * 86_400_000 - 60_000).toISOString(),
  });
  return { to: `${PATH}#delegations`, notice: { kind: "ok", text: `${to} may decide for you now.` } };
}

async function revoke(ctx: Ctx): Promise<Answer> {
  const { to } = await ctx.call(revokeDelegation, { delegation_id: ctx.params["id"]! });
  return { to: `${PATH}#delegations`, notice: { kind: "ok", text: `${to} may no longer decide for you.` } };
}
