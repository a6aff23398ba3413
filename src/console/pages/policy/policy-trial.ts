/**
 * Form that tests a call against the edited policy, and the result, entry by entry. With scripts enabled, the result
 * updates while the user types.
 */
import { ProblemsError, SvcError } from "../../../kernel/errors.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import { tryOnPolicy } from "../../../operations/simulate/jobs.ts";
import type { PolicyTestDoc } from "../../../rules/policy/schema.ts";
import type { PolicyTrial, TrialFinding, TypedCall } from "../../../rules/policy/tests/policy-trial.ts";
import { type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, factList, noticeBox, tableBlock } from "../../parts/blocks.ts";
import { foldedForm, inputField, submitButton, textareaField } from "../../parts/forms.ts";
import { markLabel, rulingMark } from "../../parts/marks.ts";
import { riskWord } from "../../parts/risk.ts";

/** Result for the submitted call, or null if the form has no tool. */
export type PolicyTrialResult = { trial: PolicyTrial } | { problems: readonly string[] } | null;

const FIELDS = ["tool", "args", "actor", "at", "tenant", "environment", "earlier", "repeat"] as const;

export function typedCall({ form }: PageContext): TypedCall {
  const typed = FIELDS.map((name) => [name, form.text(name)]);
  return Object.fromEntries(typed) as Record<(typeof FIELDS)[number], string>;
}

/** Empty form with the current time and the service's environment. */
export function untypedCall({ app }: PageContext): TypedCall {
  const blank = Object.fromEntries(FIELDS.map((name) => [name, ""])) as Record<keyof TypedCall, string>;
  const at = new Date(app.core.env.now()).toISOString().replace(/:\d\d\.\d+Z$/, "Z");
  return { ...blank, at, environment: app.core.environment ?? "" };
}

/** Evaluates the call. Returns input problems, so that the form can show them. */
export async function evaluateTypedCall(
  ctx: PageContext,
  text: string,
  typed: TypedCall,
): Promise<PolicyTrialResult> {
  if (typed.tool === "") return null;
  try {
    return { trial: await tryOnPolicy(ctx.app, text, typed, ctx.signal) };
  } catch (error) {
    if (error instanceof ProblemsError) return { problems: error.problems };
    if (error instanceof SvcError && error.code === "invalid")
      return { problems: [capitalizeFirst(error.message)] };
    throw error;
  }
}

export function trialCard(ctx: PageContext, typed: TypedCall, tried: PolicyTrialResult): HtmlFragment {
  const tools = [...new Set(ctx.app.core.rules().manifests.all.map(({ tool }) => tool))].sort();
  const named = (name: keyof TypedCall, label: string, hint?: string) =>
    inputField({ label, name, value: typed[name], ...(hint === undefined ? {} : { hint }) });
  return cardBlock(
    { title: "Try a call", id: "try" },
    safeHtml`<p class="soft">Test a call against the policy below. Nothing is executed or recorded.</p>
<div class="columns"><div class="form">
<div class="row">${inputField({ label: "Tool", name: "tool", value: typed.tool, list: "tools" })}${named("actor", "Actor")}</div>
<datalist id="tools">${tools.map((tool) => safeHtml`<option value="${tool}"></option>`)}</datalist>
${textareaField({ label: "Arguments (JSON or YAML)", name: "args", value: typed.args, rows: 5, mono: true, placeholder: '{"amount": 900}' })}
${named("at", "Time", "Empty means now.")}
${foldedForm(
  "Tenant, environment and earlier calls",
  safeHtml`<div class="form"><div class="row">${named("tenant", "Tenant")}${named("environment", "Environment")}${named("repeat", "Repeat", "For limits and budgets: decides the last of this many equal calls.")}</div>
${textareaField({ label: "Earlier calls of the run", name: "earlier", value: typed.earlier, rows: 3, mono: true, placeholder: "- {tool: crm.get}", hint: "For flows: calls that were accepted earlier." })}</div>`,
)}
<div class="actions">${submitButton("Evaluate", "primary", safeHtml` name="do" value="try"`)}</div>
</div>${trialRegion(tried)}</div>`,
  );
}

export function trialRegion(tried: PolicyTrialResult): HtmlFragment {
  return safeHtml`<div id="trial" class="trial" aria-live="polite">${said(tried)}</div>`;
}

function said(tried: PolicyTrialResult): HtmlFragment {
  if (tried === null)
    return safeHtml`<p class="soft">Enter a tool to see the decision and the rules, limits and flows that apply.</p>`;
  if ("problems" in tried)
    return noticeBox(
      "bad",
      safeHtml`<ul class="problems">${tried.problems.map((one) => safeHtml`<li><code>${one}</code></li>`)}</ul>`,
    );
  const { trial } = tried;
  return safeHtml`${verdict(trial)}
${
  trial.spoke.length === 0
    ? safeHtml`<p class="calm">No rule, limit, flow or check applies.</p>`
    : tableBlock("Entries that apply", ["Entry", "Decision", "Reason"], trial.spoke.map(spokenRow), "spoke")
}
${factList([
  ["Risk", `${riskWord(trial.risk.score)} (${trial.risk.score})`],
  trial.hints.length === 0 ? null : ["Hints", bulletList(trial.hints)],
  trial.reads.length === 0 ? null : ["Arguments that the policy reads", trial.reads.map(readArgument)],
])}
<div class="row keep">${inputField({ label: "Test name", name: "test_name", value: "", placeholder: trial.test.name, maxlength: 200 })}</div>
<div class="actions">${submitButton("Keep as a test", "plain", safeHtml` name="do" value="keep"`)}</div>`;
}

/** A call to an undeclared tool is blocked before the policy runs, so the policy's answer is shown as a note. */
function verdict({ declared, action, rules, test }: PolicyTrial): HtmlFragment {
  const by =
    rules.length === 0 ? null : safeHtml` by ${rules.map((rule) => safeHtml`<code>${rule}</code> `)}`;
  if (declared) return safeHtml`<p class="verdict">${rulingMark(action)}${by}</p>`;
  return safeHtml`${noticeBox("warn", safeHtml`<p>No manifest declares <code>${test.input.tool}</code>: the call is blocked regardless of the policy.</p><p>The policy alone says <code>${action}</code>${by}.</p>`)}
<p class="verdict">${rulingMark("block")}</p>`;
}

function spokenRow({ stage, rule, action, reason, lifted }: TrialFinding): TemplateValue[] {
  const what = rule === null ? safeHtml`${stage}` : safeHtml`${stage} <code>${rule}</code>`;
  return [
    what,
    lifted ? safeHtml`${rulingMark(action)} ${markLabel("quiet", "lifted")}` : rulingMark(action),
    reason,
  ];
}

/** Argument that the policy reads. With scripts enabled, a button adds it to the call. */
function readArgument(path: string): HtmlFragment {
  const name = /^\$args\.([\w-]+)/.exec(path)?.[1];
  if (name === undefined) return safeHtml`<span class="part"><code>${path}</code></span>`;
  return safeHtml`<span class="part"><code>${path}</code> <button type="button" class="js-only small" data-argument="${name}" aria-label="Add ${name} to the arguments">add</button></span>`;
}

/** Button that adds an example to the edited policy as a test. Works anywhere on the page. */
export function keepButton(test: PolicyTestDoc): HtmlFragment {
  return submitButton(
    "Keep as a test",
    "plain",
    safeHtml` form="bench" name="keep" value="${JSON.stringify(test)}"`,
  );
}
