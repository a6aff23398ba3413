/** Grants page: active and ended grants with their usage, and forms to give, preview and revoke grants. */
import type { z } from "zod";
import { type GrantView, grantState, parseGrantCondition, splitNames } from "../../../govern/grants/grant.ts";
import { hasRole } from "../../../govern/roles.ts";
import { anySignatureRequired } from "../../../govern/signing/draft.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { previewInput } from "../../../operations/grants/grant-input.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../../../operations/grants/grants.ts";
import { openChallenge } from "../../../operations/signing/challenges.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, emptyState, nextAction, pageHead, pagerLinks, tableBlock } from "../../parts/blocks.ts";
import { checkboxField, formElement, inputField, submitButton, textareaField } from "../../parts/forms.ts";
import { nameText, runLink } from "../../parts/ids.ts";
import { formatCountOf, markLabel, rulingMark } from "../../parts/marks.ts";
import { formatAgo, formatTime } from "../../parts/time.ts";
import { approvalTabs } from "../approvals/approval-tabs.ts";
import { givenSignature, jsonContent, signedAt, signedExpiry } from "../sign.ts";
import { MAX_GRANT_HOURS, readBudget, readExpiry, readUses } from "./grant-fields.ts";

const PATH = "/console/grants";

export const grantRoutes = [
  getRoute("/grants", grants),
  postRoute("/grants", createGrant, give),
  postRoute("/grants/challenge", createGrant, challenge),
  postRoute("/grants/preview", previewGrant, preview),
  postRoute("/grants/:id/revoke", revokeGrant, revoke),
];

async function grants(ctx: PageContext): Promise<PageAnswer> {
  return page(ctx, emptyHtml);
}

async function page(ctx: PageContext, above: HtmlFragment): Promise<PageAnswer> {
  const query = ctx.query["cursor"] === undefined ? {} : { cursor: ctx.query["cursor"] };
  const { grants, next_cursor } = await ctx.call(listGrants, query);
  const list =
    grants.length === 0
      ? emptyState(
          "No grants",
          safeHtml`<p>A grant approves a limited number of future calls of the tools and actors that you choose. It covers only requests that its creator could decide alone at that time.</p>`,
          nextAction("/console/approvals", "Show pending requests"),
        )
      : tableBlock(
          "Grants",
          ["State", "Calls", "Rules", "Used", "Until", "Created by", "Reason", "Action"],
          grants.map((one) => rowOf(ctx, one)),
        );
  const body = safeHtml`${pageHead("Grants", "Standing approvals for future calls.")}${await approvalTabs(ctx, "grants")}
${above}${cardBlock({ title: "Grants", id: "grants", live: true }, list, pagerLinks(PATH, ctx.query, next_cursor ?? null))}
${ctx.may(createGrant) ? cardBlock({ title: "Create a grant", id: "give" }, giveForm(ctx)) : emptyHtml}`;
  return { page: { title: "Grants", nav: "approvals", body, live: PATH } };
}

function rowOf(ctx: PageContext, grant: GrantView): (HtmlFragment | string)[] {
  const { match, when: conditions, budget } = grant;
  const now = ctx.app.core.env.now();
  const state = grantState(grant, now);
  const live = state === "active";
  const narrowed = [
    ...(["tenant", "environment"] as const).flatMap((field) => {
      if (match[field] === null) return [];
      return [match[field] === "" ? safeHtml`no ${field}` : safeHtml`${field} <code>${match[field]}</code>`];
    }),
    ...conditions.map((one) => safeHtml`<code>${conditionText(one)}</code>`),
    ...(grant.args_only === undefined ? [] : [safeHtml`no other arguments`]),
    ...(budget === null ? [] : [safeHtml`<code>${budget.path}</code> ${grant.spent} of ${budget.max}`]),
    ...(grant.irreversible ? [markLabel("bad", "irreversible calls too")] : []),
  ];
  const may = live && ctx.may(revokeGrant) && (grant.by === ctx.principal.name || ctx.is("admin"));
  return [
    markLabel(live ? "good" : "quiet", state),
    safeHtml`<code>${match.tool}</code> by ${nameText(match.actor)}${narrowed.length === 0 ? null : safeHtml`<br><span class="soft">${joinHtml(narrowed, ", ")}</span>`}`,
    safeHtml`${joinHtml(
      grant.rules.map((rule) => safeHtml`<code>${rule}</code>`),
      ", ",
    )}`,
    `${grant.uses} of ${grant.max_uses}`,
    formatAgo(grant.expires_ms, now),
    nameText(grant.by),
    grant.reason,
    may
      ? formElement(
          ctx,
          { action: `${PATH}/${grant.id}/revoke`, class: "inline" },
          submitButton("Revoke", "danger"),
        )
      : "",
  ];
}

function conditionText({ path, op, value }: GrantView["when"][number]): string {
  return value === undefined ? `${path} ${op}` : `${path} ${op} ${JSON.stringify(value)}`;
}

function giveForm(ctx: PageContext): HtmlFragment {
  const value = (name: string) => ctx.form.document(name);
  const rules = ctx.app.core
    .rules()
    .policy.rules.all()
    .filter(({ action }) => action === "require_approval");
  const signs = anySignatureRequired(ctx.app.core) ? signedAt(`${PATH}/challenge`) : {};
  return formElement(
    ctx,
    { action: PATH, ...signs },
    safeHtml`<div class="row">${inputField({ label: "Tools", name: "tool", value: value("tool"), required: true, maxlength: 256, hint: "a name or a glob, not *" })}${inputField({ label: "Actors", name: "actor", value: value("actor"), required: true, maxlength: 256, hint: "a name or a glob, not *" })}${inputField({ label: "Rules", name: "rules", value: value("rules"), required: true, list: "asking-rules", hint: "rules whose approval it replaces, comma-separated" })}</div>
<datalist id="asking-rules">${rules.slice(0, 200).map(({ id }) => safeHtml`<option value="${id}"></option>`)}</datalist>
<div class="row">${inputField({ label: "Uses", name: "max_uses", type: "number", value: value("max_uses") || "10", required: true, hint: `1 to ${SERVICE_LIMITS.grant_uses}` })}${inputField({ label: "Valid for hours", name: "hours", type: "number", value: value("hours") || "8", required: true, hint: `at most ${MAX_GRANT_HOURS}` })}${inputField({ label: "Tenant", name: "tenant", value: value("tenant"), placeholder: "any" })}${inputField({ label: "Environment", name: "environment", value: value("environment"), placeholder: "any" })}</div>`,
    textareaField({
      label: "Only when",
      name: "when",
      value: value("when"),
      rows: 2,
      mono: true,
      hint: "one condition per line, such as $args.amount lte 50",
    }),
    inputField({
      label: "Allowed arguments",
      name: "args_only",
      value: value("args_only"),
      placeholder: "any",
      hint: "comma-separated names",
    }),
    safeHtml`<div class="row">${inputField({ label: "Budget path", name: "budget_path", value: value("budget_path"), placeholder: "$args.amount" })}${inputField({ label: "Budget", name: "budget_max", value: value("budget_max"), placeholder: "500" })}</div>`,
    hasRole(ctx.principal, "admin")
      ? checkboxField("irreversible", "Also irreversible calls", ctx.form.checked("irreversible"))
      : emptyHtml,
    inputField({
      label: "Reason",
      name: "reason",
      value: value("reason"),
      maxlength: SERVICE_LIMITS.reason_chars,
    }),
    submitButton("Create grant", "primary"),
    ctx.has(previewGrant)
      ? submitButton("Preview on captured calls", "plain", safeHtml` formaction="${PATH}/preview"`)
      : emptyHtml,
  );
}

/** Reads the grant's terms from the form. The operation reports invalid values. */
function termsOf(ctx: PageContext): z.input<typeof previewInput> {
  const { form } = ctx;
  return {
    match: {
      tool: form.text("tool"),
      actor: form.text("actor"),
      tenant: form.optional("tenant"),
      environment: form.optional("environment"),
    },
    rules: splitNames(form.text("rules")),
    when: form
      .text("when")
      .split("\n")
      .flatMap((line) => (line.trim() === "" ? [] : [parseGrantCondition(line)])),
    args_only: form.optional("args_only") === undefined ? undefined : splitNames(form.text("args_only")),
    max_uses: readUses(form),
    budget: readBudget(form),
    irreversible: form.checked("irreversible"),
  };
}

async function give(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(createGrant);
  const given = givenSignature(ctx);
  const expires_at = signedExpiry(given) ?? readExpiry(ctx);
  const grant = await ctx.call(createGrant, {
    ...termsOf(ctx),
    expires_at,
    reason: ctx.form.text("reason"),
    ...given,
  });
  const { tool, actor } = grant.match;
  const text = `Granted: the next ${formatCountOf(grant.max_uses, "call")} of ${tool} by ${actor}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}

async function challenge(ctx: PageContext): Promise<PageAnswer> {
  const body = { ...termsOf(ctx), expires_at: readExpiry(ctx), reason: ctx.form.text("reason") };
  return jsonContent(await ctx.call(openChallenge, { kind: "grant", decision: "grant", body }));
}

async function preview(ctx: PageContext): Promise<PageAnswer> {
  const { calls, covered, rules } = await ctx.call(previewGrant, termsOf(ctx));
  const rows = covered
    .slice(-100)
    .reverse()
    .map((one) => [
      formatTime(one.captured_ms),
      safeHtml`<code>${one.tool}</code>`,
      nameText(one.actor),
      runLink(one.run_id),
      rulingMark(one.decision),
      one.rules.join(", "),
    ]);
  const found = safeHtml`<p>${covered.length} of the last ${formatCountOf(calls, "captured call")} would have been covered.${rules.length === 0 ? "" : ` Rules that required approval for such calls: ${rules.join(", ")}.`}</p>${
    rows.length === 0
      ? emptyHtml
      : tableBlock("Covered calls", ["When", "Tool", "Actor", "Run", "Was decided", "Rules"], rows)
  }`;
  return page(ctx, cardBlock({ title: "Preview", id: "preview" }, found));
}

async function revoke(ctx: PageContext): Promise<PageAnswer> {
  const { match, uses, max_uses } = await ctx.call(revokeGrant, { grant_id: ctx.params["id"]! });
  const text = `Revoked: ${match.tool} by ${match.actor}, ${uses} of ${max_uses} used.`;
  return { to: PATH, notice: { kind: "ok", text } };
}
