/** The Policy page: what is in force, and a bench on which another policy is checked, tested, compared and tried. */
import { stringify } from "yaml";
import { publishPolicy } from "../../app/operations/registry.ts";
import { simulate } from "../../app/operations/simulate.ts";
import { checkPolicyText } from "../../app/sandbox/jobs.ts";
import { invalid } from "../../kernel/errors.ts";
import type { Policy } from "../../model/policy/compile.ts";
import type { MatchDoc, RuleDoc } from "../../model/policy/schema.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { card, empty, facts, pageHead, table } from "../parts/blocks.ts";
import { button, form, input, textarea } from "../parts/forms.ts";
import { hashText } from "../parts/ids.ts";
import { plural, rulingMark } from "../parts/marks.ts";
import { checkedCards, simulationCards } from "./policy-results.ts";
import { activateRoute, versionsCard } from "./policy-versions.ts";

export const policyRoutes = [get("/policy", policyPage), post("/policy", work), activateRoute];

async function policyPage(ctx: Ctx): Promise<Answer> {
  return { page: await draw(ctx, activeText(ctx), nothing) };
}

/** The text that is in force, with its author's comments. */
function activeText({ app }: Ctx): string {
  const { policy, policy_text } = app.rules.current();
  return policy_text ?? stringify(policy.doc);
}

async function draw(ctx: Ctx, text: string, results: Html) {
  const { policy } = ctx.app.core.rules();
  const body = html`${pageHead("Policy", "What this organisation thinks of a call: who may make it, when, how often, with which arguments, and who has to agree.")}
${results}
${benchCard(ctx, text)}
${inForceCard(policy)}
${await versionsCard(ctx)}`;
  return { title: "Policy", nav: "policy" as const, body };
}

function benchCard(ctx: Ctx, text: string): Html {
  const may_simulate = ctx.may(simulate);
  const may_publish = ctx.may(publishPolicy);
  return card(
    { title: "Try a policy", id: "bench" },
    html`<p class="soft">Change the text and see what it would do: what differs from the policy in force, whether its tests pass, and how the captured calls of the last 7 days would have been decided. Nothing here puts it in force.</p>`,
    form(
      ctx,
      { action: "/console/policy#results", class: "form bench" },
      textarea({ label: "Policy (YAML)", name: "yaml", value: text, rows: 18, mono: true, required: true }),
      may_publish
        ? input({ label: "Note for the draft", name: "note", maxlength: 4_000, hint: "Only for publishing." })
        : nothing,
      html`<div class="actions">${button("Validate and run its tests", "primary", html` name="do" value="check"`)}${
        may_simulate
          ? button("Simulate the last 7 days", "plain", html` name="do" value="simulate"`)
          : nothing
      }${may_publish ? button("Publish as draft", "plain", html` name="do" value="publish"`) : nothing}</div>`,
    ),
    may_simulate ? nothing : simulationHint(ctx),
  );
}

function simulationHint(ctx: Ctx): Html {
  return ctx.app.settings.capture.enabled
    ? html`<p class="soft">Simulating needs the operator role.</p>`
    : html`<p class="soft">Capture is off, so there is no history to simulate against. Turn it on with <code>capture: {enabled: true}</code> or <code>SVC_CAPTURE=1</code>.</p>`;
}

async function work(ctx: Ctx): Promise<Answer> {
  const text = ctx.form.document("yaml");
  if (text.trim() === "") throw invalid("policy: is empty; version: 1 is the least that it says");
  const wanted = ctx.form.text("do");
  if (wanted === "simulate") ctx.demand(simulate);
  if (wanted === "publish") {
    const note = ctx.form.optional("note");
    const { version, tests } = await ctx.call(publishPolicy, { yaml: text, note });
    return {
      to: "/console/policy#versions",
      notice: {
        kind: "ok",
        text: `Version ${version} is published as a draft; ${plural(tests.passed, "test")} passed. An admin can put it in force.`,
      },
    };
  }
  const checked = await checkPolicyText(ctx.app, text, { diff: true, signal: ctx.signal });
  let results = checkedCards(checked);
  if (wanted === "simulate" && checked.ok) {
    const report = await ctx.call(simulate, { policy: text, since: "7d" });
    results = html`${simulationCards(report.read())}${results}`;
  }
  return {
    page: await draw(ctx, text, html`<div id="results" tabindex="-1">${results}</div>`),
    status: checked.ok ? 200 : 400,
  };
}

function inForceCard({ doc, hash }: Policy): Html {
  const rules = doc.rules ?? [];
  return card(
    { title: "In force", id: "in-force", aside: hashText(hash, "the policy's hash") },
    rules.length === 0
      ? empty(
          "No rules are in force",
          html`<p>Whatever manifests, scopes and halts allow is allowed. Start with one of the policies in <code>examples/policies</code>.</p>`,
        )
      : table("Rules in force", ["Rule", "For", "When", "Action", "Reason"], rules.map(ruleRow)),
    facts(
      [
        [
          "Content checks",
          list(Object.entries(doc.content ?? {}).map(([name, value]) => `${name} ${value}`)),
        ],
        [
          "Risk",
          doc.risk === undefined
            ? none()
            : list(
                [
                  limitWords("approval at", doc.risk.require_approval_at),
                  limitWords("deny at", doc.risk.deny_at),
                ].filter((one) => one !== null),
                "scored only",
              ),
        ],
        [
          "Limits",
          list(
            (doc.limits ?? []).map(
              ({ id, max, per, window, refund }) =>
                `${id}: ${max} per ${per} in ${window}${refundWords(refund)}`,
            ),
          ),
        ],
        [
          "Budgets",
          list(
            (doc.budgets ?? []).map(
              ({ id, max, per, window, path, refund }) =>
                `${id}: ${path} up to ${max} per ${per} in ${window}${refundWords(refund)}`,
            ),
          ),
        ],
        [
          "Windows",
          list(
            (doc.windows ?? []).map(
              ({ id, hours, days, tz }) =>
                `${id}: ${[days?.join(" "), hours, tz ?? "UTC"].filter(Boolean).join(", ")}`,
            ),
          ),
        ],
        ["Freezes", list((doc.freezes ?? []).map(({ id, from, to }) => `${id}: ${from} to ${to}`))],
        ["Four eyes", doc.approvals?.four_eyes === true ? "nobody decides their own request" : none()],
        [
          "Retention",
          doc.retention === undefined
            ? "nothing is ever deleted"
            : `${doc.retention.default_days} days by default`,
        ],
        ["Own tests", plural(doc.tests?.length ?? 0, "test")],
      ],
      "wide",
    ),
  );
}

const none = (): Html => html`<span class="soft">none</span>`;
const list = (items: readonly Part[], otherwise = "none"): Part =>
  items.length === 0
    ? html`<span class="soft">${otherwise}</span>`
    : html`${items.map((item) => html`<span class="part">${item}</span>`)}`;
const refundWords = (refund: boolean | undefined): string =>
  refund === true ? ", given back by undos that were read back" : "";

const limitWords = (label: string, value: number | undefined): string | null =>
  value === undefined ? null : `${label} ${value}`;

function ruleRow({ id, match, when, action, reason }: RuleDoc): Part[] {
  return [
    html`<code>${id}</code>`,
    matchWords(match),
    (when ?? []).map(
      ({ path, op, value }) =>
        html`<span class="part"><code>${path} ${op}${value === undefined ? "" : ` ${JSON.stringify(value)}`}</code></span>`,
    ),
    rulingMark(action),
    reason ?? "",
  ];
}

function matchWords(match: MatchDoc | undefined): Part {
  const parts = Object.entries(match ?? {});
  if (parts.length === 0) return html`<span class="soft">every call</span>`;
  return parts.map(
    ([name, glob]) =>
      html`<span class="part">${name === "tool" ? null : html`<span class="soft">${name} </span>`}<code>${glob}</code></span>`,
  );
}
