/** The Grants page: what was approved ahead, by whom and how far it is used; giving, previewing and taking back. */
import type { z } from "zod";
import type { previewInput } from "../../app/operations/grants/grant-input.ts";
import { createGrant, listGrants, previewGrant, revokeGrant } from "../../app/operations/grants.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type GrantView, isLive, namesIn, readCondition } from "../../model/grant.ts";
import { hasRole } from "../../model/roles.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, joined, nothing } from "../html.ts";
import { card, empty, pageHead, pager, table } from "../parts/blocks.ts";
import { button, checkbox, form, input, textarea } from "../parts/forms.ts";
import { nameText, runLink } from "../parts/ids.ts";
import { mark, plural, rulingMark } from "../parts/marks.ts";
import { ago, when } from "../parts/time.ts";
import { approvalTabs } from "./approval-tabs.ts";
import { MOST_HOURS, readBudget, readExpiry, readUses } from "./grant-fields.ts";

const PATH = "/console/grants";

export const grantRoutes = [
  get("/grants", grants),
  post("/grants", createGrant, give),
  post("/grants/preview", previewGrant, preview),
  post("/grants/:id/revoke", revokeGrant, revoke),
];

async function grants(ctx: Ctx): Promise<Answer> {
  return page(ctx, nothing);
}

async function page(ctx: Ctx, above: Html): Promise<Answer> {
  const query = ctx.query["cursor"] === undefined ? {} : { cursor: ctx.query["cursor"] };
  const { grants, next_cursor } = await ctx.call(listGrants, query);
  const list =
    grants.length === 0
      ? empty(
          "No grants",
          html`<p>A grant approves calls like these ahead: of named tools and actors, for the rules that it names, so many times, and only what its giver could decide alone at the moment of each use.</p>`,
        )
      : table(
          "Grants",
          ["State", "Calls", "Lifts", "Used", "Until", "Given by", "Reason", "Action"],
          grants.map((one) => rowOf(ctx, one)),
        );
  const body = html`${pageHead("Grants", "Calls that were approved ahead, for a while.")}${await approvalTabs(ctx, "grants")}
${above}${card({ title: "Grants", id: "grants", live: true }, list, pager(PATH, ctx.query, next_cursor ?? null))}
${ctx.may(createGrant) ? card({ title: "Give a grant", id: "give" }, giveForm(ctx)) : nothing}`;
  return { page: { title: "Grants", nav: "approvals", body, live: PATH } };
}

function rowOf(ctx: Ctx, grant: GrantView): (Html | string)[] {
  const { match, when: conditions, budget } = grant;
  const now = ctx.app.core.env.now();
  const live = isLive(grant, now);
  const narrowed = [
    ...(["tenant", "environment"] as const).flatMap((field) => {
      if (match[field] === null) return [];
      return [match[field] === "" ? html`no ${field}` : html`${field} <code>${match[field]}</code>`];
    }),
    ...conditions.map((one) => html`<code>${conditionText(one)}</code>`),
    ...(grant.args_only === undefined ? [] : [html`no other arguments`]),
    ...(budget === null ? [] : [html`<code>${budget.path}</code> ${grant.spent} of ${budget.max}`]),
    ...(grant.irreversible ? [mark("bad", "irreversible too")] : []),
  ];
  const may = live && ctx.may(revokeGrant) && (grant.by === ctx.principal.name || ctx.is("admin"));
  return [
    live ? mark("good", "in force") : mark("quiet", endedAs(grant)),
    html`<code>${match.tool}</code> by ${nameText(match.actor)}${narrowed.length === 0 ? null : html`<br><span class="soft">${joined(narrowed, ", ")}</span>`}`,
    html`${joined(
      grant.rules.map((rule) => html`<code>${rule}</code>`),
      ", ",
    )}`,
    `${grant.uses} of ${grant.max_uses}`,
    ago(grant.expires_ms, now),
    nameText(grant.by),
    grant.reason,
    may
      ? form(ctx, { action: `${PATH}/${grant.id}/revoke`, class: "inline" }, button("Revoke", "danger"))
      : "",
  ];
}

function endedAs({ revoked_ms, uses, max_uses }: GrantView): string {
  if (revoked_ms !== null) return "revoked";
  return uses >= max_uses ? "used up" : "expired";
}

function conditionText({ path, op, value }: GrantView["when"][number]): string {
  return value === undefined ? `${path} ${op}` : `${path} ${op} ${JSON.stringify(value)}`;
}

function giveForm(ctx: Ctx): Html {
  const value = (name: string) => ctx.form.document(name);
  const rules = ctx.app.core
    .rules()
    .policy.rules.all()
    .filter(({ action }) => action === "require_approval");
  return form(
    ctx,
    { action: PATH },
    html`<div class="row">${input({ label: "Tools", name: "tool", value: value("tool"), required: true, maxlength: 256, hint: "a name or a glob, not *" })}${input({ label: "Actors", name: "actor", value: value("actor"), required: true, maxlength: 256, hint: "a name or a glob, not *" })}${input({ label: "Rules", name: "rules", value: value("rules"), required: true, list: "asking-rules", hint: "whose need for approval it lifts; several with commas" })}</div>
<datalist id="asking-rules">${rules.slice(0, 200).map(({ id }) => html`<option value="${id}"></option>`)}</datalist>
<div class="row">${input({ label: "Uses", name: "max_uses", type: "number", value: value("max_uses") || "10", required: true, hint: `1 to ${LIMITS.grant_uses}` })}${input({ label: "For hours", name: "hours", type: "number", value: value("hours") || "8", required: true, hint: `at most ${MOST_HOURS}` })}${input({ label: "Tenant", name: "tenant", value: value("tenant"), placeholder: "any" })}${input({ label: "Environment", name: "environment", value: value("environment"), placeholder: "any" })}</div>`,
    textarea({
      label: "Only when",
      name: "when",
      value: value("when"),
      rows: 2,
      mono: true,
      hint: "one condition a line, such as $args.amount lte 50",
    }),
    input({
      label: "No other arguments than",
      name: "args_only",
      value: value("args_only"),
      placeholder: "any",
      hint: "names with commas between them",
    }),
    html`<div class="row">${input({ label: "Budget path", name: "budget_path", value: value("budget_path"), placeholder: "$args.amount" })}${input({ label: "Budget", name: "budget_max", value: value("budget_max"), placeholder: "500" })}</div>`,
    hasRole(ctx.principal, "admin")
      ? checkbox("irreversible", "Also calls that nothing can take back", ctx.form.checked("irreversible"))
      : nothing,
    input({ label: "Reason", name: "reason", value: value("reason"), maxlength: LIMITS.reason_chars }),
    button("Give", "primary"),
    ctx.has(previewGrant)
      ? button("Preview on captured calls", "plain", html` formaction="${PATH}/preview"`)
      : nothing,
  );
}

/** What the form says of the calls that are meant; whatever is wrong with it the operation says. */
function termsOf(ctx: Ctx): z.input<typeof previewInput> {
  const { form } = ctx;
  return {
    match: {
      tool: form.text("tool"),
      actor: form.text("actor"),
      tenant: form.optional("tenant"),
      environment: form.optional("environment"),
    },
    rules: namesIn(form.text("rules")),
    when: form
      .text("when")
      .split("\n")
      .flatMap((line) => (line.trim() === "" ? [] : [readCondition(line)])),
    args_only: form.optional("args_only") === undefined ? undefined : namesIn(form.text("args_only")),
    max_uses: readUses(form),
    budget: readBudget(form),
    irreversible: form.checked("irreversible"),
  };
}

async function give(ctx: Ctx): Promise<Answer> {
  ctx.demand(createGrant);
  const grant = await ctx.call(createGrant, {
    ...termsOf(ctx),
    expires_at: readExpiry(ctx),
    reason: ctx.form.text("reason"),
  });
  const { tool, actor } = grant.match;
  const text = `Granted: the next ${plural(grant.max_uses, "call")} of ${tool} by ${actor}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}

async function preview(ctx: Ctx): Promise<Answer> {
  const { calls, covered, rules } = await ctx.call(previewGrant, termsOf(ctx));
  const rows = covered
    .slice(-100)
    .reverse()
    .map((one) => [
      when(one.captured_ms),
      html`<code>${one.tool}</code>`,
      nameText(one.actor),
      runLink(one.run_id),
      rulingMark(one.decision),
      one.rules.join(", "),
    ]);
  const found = html`<p>${covered.length} of the last ${plural(calls, "captured call")} would have been covered.${rules.length === 0 ? "" : ` Rules that asked for calls like these: ${rules.join(", ")}.`}</p>${
    rows.length === 0
      ? nothing
      : table("Covered calls", ["When", "Tool", "Actor", "Run", "Was decided", "Rules"], rows)
  }`;
  return page(ctx, card({ title: "Preview", id: "preview" }, found));
}

async function revoke(ctx: Ctx): Promise<Answer> {
  const { match, uses, max_uses } = await ctx.call(revokeGrant, { grant_id: ctx.params["id"]! });
  const text = `Revoked: ${match.tool} by ${match.actor}, ${uses} of ${max_uses} used.`;
  return { to: PATH, notice: { kind: "ok", text } };
}
