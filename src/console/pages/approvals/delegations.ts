/** Delegations card at the end of the Approvals page: who can decide for whom, and until when. */
import { anySignatureRequired } from "../../../govern/signing/draft.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import {
  createDelegation,
  listDelegations,
  revokeDelegation,
} from "../../../operations/approvals/delegations.ts";
import { openChallenge } from "../../../operations/signing/challenges.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, tableBlock } from "../../parts/blocks.ts";
import { foldedForm, formElement, inputField, submitButton } from "../../parts/forms.ts";
import { markLabel } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";
import { givenSignature, jsonContent, signedAt, signedExpiry } from "../sign.ts";

const PATH = "/console/approvals";

export const delegationRoutes = [
  postRoute("/delegations", createDelegation, lend),
  postRoute("/delegations/challenge", createDelegation, challenge),
  postRoute("/delegations/:id/revoke", revokeDelegation, revoke),
];

export async function delegationsCard(ctx: PageContext): Promise<HtmlFragment> {
  const { delegations } = await ctx.call(listDelegations, {});
  const now = ctx.app.core.env.now();
  const active = delegations.filter(({ in_force }) => in_force);
  const may = ctx.may(createDelegation);
  if (active.length === 0 && !may) return emptyHtml;
  const rows = active.map((one) => [
    one.from,
    one.to_principal.kind === "oidc" ? `${one.to} (by token)` : one.to,
    safeHtml`<code>${one.tools}</code>`,
    one.reason,
    safeHtml`${markLabel("info", "active")} ends ${formatAgo(one.expires_ms, now)}`,
    may
      ? formElement(
          ctx,
          { action: `/console/delegations/${one.id}/revoke`, class: "inline" },
          submitButton("Revoke"),
        )
      : "",
  ]);
  return cardBlock(
    { title: "Delegations", id: "delegations" },
    safeHtml`<p class="soft">Away for a while? Delegate your authority to decide. Decisions then name both of you.</p>`,
    rows.length === 0
      ? emptyHtml
      : tableBlock("Active delegations", ["From", "To", "Tools", "Reason", "Until", "Action"], rows),
    may ? lendForm(ctx) : emptyHtml,
  );
}

function lendForm(ctx: PageContext): HtmlFragment {
  return foldedForm(
    "Delegate my authority",
    formElement(
      ctx,
      {
        action: "/console/delegations",
        ...(anySignatureRequired(ctx.app.core) ? signedAt("/console/delegations/challenge") : {}),
      },
      safeHtml`<div class="row">${inputField({ label: "To (name of a key or user)", name: "to", required: true, maxlength: 256 })}${inputField({ label: "Tools", name: "tools", placeholder: "*", hint: "a glob; empty means all", maxlength: 256 })}${inputField({ label: "For days", name: "days", type: "number", value: "7", required: true, hint: `1 to ${SERVICE_LIMITS.delegation_days}` })}</div>`,
      inputField({ label: "Reason", name: "reason", required: true, maxlength: 4_000 }),
      submitButton("Delegate", "primary"),
    ),
  );
}

async function lend(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(createDelegation);
  const given = givenSignature(ctx);
  const terms = termsOf(ctx);
  const expires_at = signedExpiry(given) ?? terms.expires_at;
  const { to } = await ctx.call(createDelegation, { ...terms, expires_at, ...given });
  return { to: `${PATH}#delegations`, notice: { kind: "ok", text: `${to} can now decide for you.` } };
}

function termsOf(ctx: PageContext) {
  const days = Number(ctx.form.text("days"));
  if (!Number.isInteger(days) || days < 1 || days > SERVICE_LIMITS.delegation_days)
    throw invalidError(`days: must be a whole number from 1 to ${SERVICE_LIMITS.delegation_days}`);
  return {
    to: ctx.form.text("to"),
    tools: ctx.form.optional("tools"),
    reason: ctx.form.text("reason"),
    expires_at: new Date(ctx.app.core.env.now() + days * 86_400_000 - 60_000).toISOString(),
  };
}

async function challenge(ctx: PageContext): Promise<PageAnswer> {
  const input = { kind: "delegation", decision: "delegate", body: termsOf(ctx) } as const;
  return jsonContent(await ctx.call(openChallenge, input));
}

async function revoke(ctx: PageContext): Promise<PageAnswer> {
  const { to } = await ctx.call(revokeDelegation, { delegation_id: ctx.params["id"]! });
  return { to: `${PATH}#delegations`, notice: { kind: "ok", text: `${to} can no longer decide for you.` } };
}
