/**
 * A call on the bench: its fields, and what a policy says of it, entry by entry. With scripts it is decided as one
 * types.
 */

import { tryOnPolicy } from "../../app/operations/simulate/jobs.ts";
import { ProblemsError, SvcError } from "../../kernel/errors.ts";
import { sentence } from "../../kernel/words.ts";
import type { PolicyTestDoc } from "../../model/policy/schema.ts";
import type { Spoken, Trial, TypedCall } from "../../model/policy/trial.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, type Part } from "../html.ts";
import { bullets, card, factList, notice, table } from "../parts/blocks.ts";
import { button, disclosed, input, textarea } from "../parts/forms.ts";
import { mark, rulingMark } from "../parts/marks.ts";

/** What came of the call that was typed; null where none was. */
export type Tried = { trial: Trial } | { problems: readonly string[] } | null;

const FIELDS = ["tool", "args", "actor", "at", "tenant", "environment", "earlier", "repeat"] as const;

export function typedCall({ form }: Ctx): TypedCall {
  const typed = FIELDS.map((name) => [name, form.text(name)]);
  return Object.fromEntries(typed) as Record<(typeof FIELDS)[number], string>;
}

/** Nothing is typed yet: the time is now, and the environment the service's own. */
export function untypedCall({ app }: Ctx): TypedCall {
  const blank = Object.fromEntries(FIELDS.map((name) => [name, ""])) as Record<keyof TypedCall, string>;
  const at = new Date(app.core.env.now()).toISOString().replace(/:\d\d\.\d+Z$/, "Z");
  return { ...blank, at, environment: app.core.environment ?? "" };
}

/** Problems are the typist's to mend, and are shown where they type. */
export async function tryTyped(ctx: Ctx, text: string, typed: TypedCall): Promise<Tried> {
  if (typed.tool === "") return null;
  try {
    return { trial: await tryOnPolicy(ctx.app, text, typed, ctx.signal) };
  } catch (error) {
    if (error instanceof ProblemsError) return { problems: error.problems };
    if (error instanceof SvcError && error.code === "invalid") return { problems: [sentence(error.message)] };
    throw error;
  }
}

export function trialCard(ctx: Ctx, typed: TypedCall, tried: Tried): Html {
  const tools = [...new Set(ctx.app.core.rules().manifests.all.map(({ tool }) => tool))].sort();
  const named = (name: keyof TypedCall, label: string, hint?: string) =>
    input({ label, name, value: typed[name], ...(hint === undefined ? {} : { hint }) });
  return card(
    { title: "Try a call", id: "try" },
    html`<p class="soft">What would the policy below say? It is judged as the policy's own tests are; nothing is asked, done or recorded.</p>
<div class="columns"><div class="form">
<div class="row">${input({ label: "Tool", name: "tool", value: typed.tool, list: "tools" })}${named("actor", "Actor")}</div>
<datalist id="tools">${tools.map((tool) => html`<option value="${tool}"></option>`)}</datalist>
${textarea({ label: "Arguments (JSON or YAML)", name: "args", value: typed.args, rows: 5, mono: true, placeholder: '{"amount": 900}' })}
${named("at", "Time", "Left empty, the call is made now.")}
${disclosed(
  "Tenant, environment and what came before",
  html`<div class="form"><div class="row">${named("tenant", "Tenant")}${named("environment", "Environment")}${named("repeat", "How often", "For limits and budgets: the last of so many equal calls is decided.")}</div>
${textarea({ label: "Earlier calls of the run", name: "earlier", value: typed.earlier, rows: 3, mono: true, placeholder: "- {tool: crm.get}", hint: "For flows: a list of calls that were accepted before." })}</div>`,
)}
<div class="actions">${button("Decide this call", "primary", html` name="do" value="try"`)}</div>
</div>${trialRegion(tried)}</div>`,
  );
}

export function trialRegion(tried: Tried): Html {
  return html`<div id="trial" class="trial" aria-live="polite">${said(tried)}</div>`;
}

function said(tried: Tried): Html {
  if (tried === null)
    return html`<p class="soft">Name a tool to see what it is answered, and which rules, limits and flows speak.</p>`;
  if ("problems" in tried)
    return notice(
      "bad",
      html`<ul class="problems">${tried.problems.map((one) => html`<li><code>${one}</code></li>`)}</ul>`,
    );
  const { trial } = tried;
  return html`${verdict(trial)}
${
  trial.spoke.length === 0
    ? html`<p class="calm">No rule, limit, flow or check has anything to say.</p>`
    : table("What spoke", ["What", "Says", "Reason"], trial.spoke.map(spokenRow), "spoke")
}
${factList([
  ["Risk", `${trial.risk.score}`],
  trial.hints.length === 0 ? null : ["Hints", bullets(trial.hints)],
  trial.reads.length === 0 ? null : ["Arguments that are read", trial.reads.map(readArgument)],
])}
<div class="row keep">${input({ label: "Name of the test", name: "test_name", value: "", placeholder: trial.test.name, maxlength: 200 })}</div>
<div class="actions">${button("Keep as a test", "plain", html` name="do" value="keep"`)}</div>`;
}

/** An undeclared tool is refused before the policy is asked, so what the policy says of it is no verdict. */
function verdict({ declared, action, rules, test }: Trial): Html {
  const by = rules.length === 0 ? null : html` by ${rules.map((rule) => html`<code>${rule}</code> `)}`;
  if (declared) return html`<p class="verdict">${rulingMark(action)}${by}</p>`;
  return html`<p class="verdict">${rulingMark("block")}</p>
${notice("warn", html`<p>No manifest declares <code>${test.input.tool}</code>: such a call is blocked whatever the policy says.</p><p>The policy alone says <code>${action}</code>${by}.</p>`)}`;
}

function spokenRow({ stage, rule, action, reason, lifted }: Spoken): Part[] {
  const what = rule === null ? html`${stage}` : html`${stage} <code>${rule}</code>`;
  return [what, lifted ? html`${rulingMark(action)} ${mark("quiet", "lifted")}` : rulingMark(action), reason];
}

/** With scripts, a button that puts the argument into the call. */
function readArgument(path: string): Html {
  const name = /^\$args\.([\w-]+)/.exec(path)?.[1];
  if (name === undefined) return html`<span class="part"><code>${path}</code></span>`;
  return html`<span class="part"><code>${path}</code> <button type="button" class="js-only small" data-argument="${name}" aria-label="Add ${name} to the arguments">add</button></span>`;
}

/** Puts an example into the text on the bench, from wherever on the page it is shown. */
export function keepButton(test: PolicyTestDoc): Html {
  return button("Keep as a test", "plain", html` form="bench" name="keep" value="${JSON.stringify(test)}"`);
}
