/** Policy page: the active policy, and an editor to test, check, compare and simulate another one. */
import { stringify } from "yaml";
import { invalidError } from "../../../kernel/errors.ts";
import type { RoleGate } from "../../../operations/pipeline/dispatch.ts";
import { policyVersionText, publishPolicy, readRegistry } from "../../../operations/registry/registry.ts";
import {
  checkPolicyText,
  keepPolicyTest,
  proveClaims,
  warningsOf,
} from "../../../operations/simulate/jobs.ts";
import { diffPolicy } from "../../../operations/simulate/policy-diff.ts";
import { simulatePolicy } from "../../../operations/simulate/simulate.ts";
import type { PolicyTestDoc } from "../../../rules/policy/schema.ts";
import type { TypedCall } from "../../../rules/policy/tests/policy-trial.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import {
  getRoute,
  type PageAnswer,
  type PageContext,
  postRoute,
  type SubmittedForm,
} from "../../page-context.ts";
import { cardBlock, noticeBox, pageHead } from "../../parts/blocks.ts";
import { formElement, inputField, selectField, submitButton, textareaField } from "../../parts/forms.ts";
import { formatCountOf } from "../../parts/marks.ts";
import { inForceCard } from "./active-policy.ts";
import { differenceCards } from "./policy-difference.ts";
import { checkedCards, simulationCards } from "./policy-results.ts";
import {
  evaluateTypedCall,
  type PolicyTrialResult,
  trialCard,
  trialRegion,
  typedCall,
  untypedCall,
} from "./policy-trial.ts";
import { activateRoute, versionNames, versionsCard } from "./policy-versions.ts";

export const policyRoutes = [
  getRoute("/policy", policyPage),
  postRoute("/policy", workNeeds, work),
  activateRoute,
];

/** State of the editor. */
interface Bench {
  text: string;
  typed: TypedCall;
  tried: PolicyTrialResult;
  /** Version to compare with. Empty means the active policy. */
  base: string;
}

async function policyPage(ctx: PageContext): Promise<PageAnswer> {
  const version = ctx.query["version"];
  const text = version === undefined ? activeText(ctx) : await versionText(ctx, version);
  return { page: await draw(ctx, { text, typed: untypedCall(ctx), tried: null, base: "" }, emptyHtml) };
}

/** Source of the active policy, including comments. */
function activeText({ app }: PageContext): string {
  const { policy, policy_text } = app.rules.current();
  return policy_text ?? stringify(policy.doc);
}

function versionText(ctx: PageContext, version: string): Promise<string> {
  ctx.demand(readRegistry);
  return policyVersionText(ctx.app, version);
}

async function draw(ctx: PageContext, bench: Bench, results: HtmlFragment) {
  const { policy } = ctx.app.core.rules();
  const body = safeHtml`${pageHead("Policy", "Rules for calls: who can make them, when, how often, with which arguments, and who must approve.")}
${results}
${formElement(
  ctx,
  { action: "/console/policy#results", class: "bench", id: "bench", tried: true },
  trialCard(ctx, bench.typed, bench.tried),
  await textCard(ctx, bench),
)}
${inForceCard(policy)}
${await versionsCard(ctx)}`;
  return { title: "Policy", nav: "policy" as const, body };
}

async function textCard(ctx: PageContext, { text, base }: Bench): Promise<HtmlFragment> {
  const may_simulate = ctx.may(simulatePolicy);
  const may_publish = ctx.may(publishPolicy);
  const may_compare = ctx.may(diffPolicy);
  const versions = may_compare ? await versionNames(ctx) : [];
  const action = (label: string, what: string) =>
    submitButton(label, "plain", safeHtml` name="do" value="${what}"`);
  const fields: TemplateValue[] = [
    textareaField({
      label: "Policy (YAML)",
      name: "yaml",
      value: text,
      rows: 18,
      mono: true,
      required: true,
    }),
    versions.length === 0
      ? emptyHtml
      : selectField({
          label: "Compare with",
          name: "base",
          value: base,
          choices: [["", "the active policy"], ...versions.map((one) => [one, `version ${one}`] as const)],
        }),
    may_publish
      ? inputField({
          label: "Note for the draft",
          name: "note",
          maxlength: 4_000,
          hint: "Only for publishing.",
        })
      : emptyHtml,
  ];
  return cardBlock(
    { title: "Try a policy", id: "text" },
    safeHtml`<p class="soft">Edit the policy and check its tests, its claims, its changes from the active policy, and how it would have decided the captured calls of the last 7 days. This does not activate it.</p>
<div class="form">${fields}<div class="actions">${submitButton("Validate and run its tests", "primary", safeHtml` name="do" value="check"`)}${
      may_compare ? action("Compare all calls", "compare") : emptyHtml
    }${may_simulate ? action("Simulate the last 7 days", "simulate") : emptyHtml}${
      may_publish ? action("Publish as draft", "publish") : emptyHtml
    }</div></div>`,
    may_simulate ? emptyHtml : simulationHint(ctx),
  );
}

function simulationHint(ctx: PageContext): HtmlFragment {
  return ctx.app.settings.capture.enabled
    ? safeHtml`<p class="soft">Simulating needs the operator role.</p>`
    : safeHtml`<p class="soft">Capture is off, so there are no calls to simulate. Turn it on with <code>capture: {enabled: true}</code> or <code>SVC_CAPTURE=1</code>.</p>`;
}

/** Testing and checking a policy, and keeping a test in the edited text, change nothing on the server. */
const READS_ONLY: RoleGate = { role: "auditor", within_tenant: true };
const BUTTON_NEEDS: Readonly<Record<string, RoleGate>> = {
  publish: publishPolicy,
  simulate: simulatePolicy,
  compare: diffPolicy,
};
function workNeeds(form: SubmittedForm): RoleGate {
  const wanted = form.text("do");
  return Object.hasOwn(BUTTON_NEEDS, wanted) ? BUTTON_NEEDS[wanted]! : READS_ONLY;
}

async function work(ctx: PageContext): Promise<PageAnswer> {
  const text = ctx.form.document("yaml");
  if (text.trim() === "") throw invalidError("policy: is empty; it needs at least version: 1");
  const bench: Bench = { text, typed: typedCall(ctx), tried: null, base: ctx.form.text("base") };
  const example = ctx.form.text("keep");
  if (example !== "") return kept(ctx, bench, exampleTest(example));
  const wanted = ctx.form.text("do");
  if (wanted === "try" || wanted === "keep") return tried(ctx, bench, wanted === "keep");
  if (wanted === "publish") return publish(ctx, text);
  const { ok, cards } = await checked(ctx, text);
  let results = cards;
  if (wanted === "simulate" && ok) {
    const report = await ctx.call(simulatePolicy, { policy: text, since: "7d" });
    results = safeHtml`${simulationCards(report.read())}${results}`;
  }
  if (wanted === "compare" && ok) {
    const a = bench.base === "" ? undefined : await versionText(ctx, bench.base);
    const diff = await ctx.call(diffPolicy, { b: text, ...(a === undefined ? {} : { a }) });
    results = safeHtml`${differenceCards(diff, bench.base)}${results}`;
  }
  return shown(ctx, bench, results, ok);
}

async function shown(
  ctx: PageContext,
  bench: Bench,
  results: HtmlFragment,
  ok: boolean,
): Promise<PageAnswer> {
  const whole: Bench = {
    ...bench,
    tried: bench.tried ?? (await evaluateTypedCall(ctx, bench.text, bench.typed)),
  };
  return {
    page: await draw(ctx, whole, safeHtml`<div id="results" tabindex="-1">${results}</div>`),
    status: ok ? 200 : 400,
  };
}

async function checked(ctx: PageContext, text: string): Promise<{ ok: boolean; cards: HtmlFragment }> {
  const found = await checkPolicyText(ctx.app, text, { diff: true, signal: ctx.signal });
  const claims = found.ok ? await proveClaims(ctx.app, text, "policy", ctx.signal) : [];
  const warnings = found.ok ? await warningsOf(ctx.app, text, ctx.signal) : [];
  return { ok: found.ok, cards: checkedCards(found, claims, warnings) };
}

/** Maximum number of warnings in a notice. Checking the policy shows all of them. */
const MAX_WARNED = 3;

async function publish(ctx: PageContext, yaml: string): Promise<PageAnswer> {
  const note = ctx.form.optional("note");
  const { version, tests, warnings } = await ctx.call(publishPolicy, { yaml, note });
  const warned = warnings.length === 0 ? "" : ` Warning: ${warnings.slice(0, MAX_WARNED).join("; ")}.`;
  const text = `Version ${version} is published as a draft; ${formatCountOf(tests.passed, "test")} passed. An admin can activate it.${warned}`;
  return { to: "/console/policy#versions", notice: { kind: warned === "" ? "ok" : "warn", text } };
}

/** Evaluates the typed call and, if asked to, adds it to the edited policy as a test. */
async function tried(ctx: PageContext, bench: Bench, keep: boolean): Promise<PageAnswer> {
  const answer = await evaluateTypedCall(ctx, bench.text, bench.typed);
  const status = answer === null || "problems" in answer ? 400 : 200;
  // The live script replaces only the result.
  if (ctx.form.checked("live"))
    return { page: { title: "Policy", nav: "policy", body: trialRegion(answer) }, status };
  if (!keep || answer === null || "problems" in answer)
    return { page: await draw(ctx, { ...bench, tried: answer }, emptyHtml), status };
  const name = ctx.form.optional("test_name") ?? answer.trial.test.name;
  return kept(ctx, { ...bench, tried: answer }, { ...answer.trial.test, name });
}

async function kept(ctx: PageContext, bench: Bench, test: PolicyTestDoc): Promise<PageAnswer> {
  const text = await keepPolicyTest(bench.text, test, ctx.signal);
  const { cards } = await checked(ctx, text);
  const next = ctx.may(publishPolicy) ? "publish it as a draft" : "copy the text into the policy's file";
  const results = safeHtml`${noticeBox("ok", safeHtml`<p class="said">Added the test “${test.name}” to the text below. To use it, ${next}.</p>`)}${cards}`;
  return shown(ctx, { ...bench, text }, results, true);
}

function exampleTest(text: string): PolicyTestDoc {
  try {
    return JSON.parse(text) as PolicyTestDoc;
  } catch {
    throw invalidError("keep: is not a test; use the buttons of the page");
  }
}
