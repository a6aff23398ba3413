/** The Policy page: what is in force, and a bench on which another policy is tried, checked, compared and simulated. */
import { stringify } from "yaml";
import type { RoleGate } from "../../app/door/perform.ts";
import { diffPolicy } from "../../app/operations/policy-diff.ts";
import { policyVersionText, publishPolicy, readRegistry } from "../../app/operations/registry.ts";
import {
  checkPolicyText,
  keepPolicyTest,
  proveClaims,
  warningsOf,
} from "../../app/operations/simulate/jobs.ts";
import { simulate } from "../../app/operations/simulate.ts";
import { invalid } from "../../kernel/errors.ts";
import type { PolicyTestDoc } from "../../model/policy/schema.ts";
import type { TypedCall } from "../../model/policy/trial.ts";
import { type Answer, type Ctx, type Form, get, post } from "../ctx.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { card, notice, pageHead } from "../parts/blocks.ts";
import { button, form, input, select, textarea } from "../parts/forms.ts";
import { plural } from "../parts/marks.ts";
import { differenceCards } from "./policy-difference.ts";
import { inForceCard } from "./policy-in-force.ts";
import { checkedCards, simulationCards } from "./policy-results.ts";
import { type Tried, trialCard, trialRegion, tryTyped, typedCall, untypedCall } from "./policy-trial.ts";
import { activateRoute, versionNames, versionsCard } from "./policy-versions.ts";

export const policyRoutes = [get("/policy", policyPage), post("/policy", workNeeds, work), activateRoute];

/** What stands on the bench. */
interface Bench {
  text: string;
  typed: TypedCall;
  tried: Tried;
  /** The version that the text is compared with; empty for the one in force. */
  base: string;
}

async function policyPage(ctx: Ctx): Promise<Answer> {
  const version = ctx.query["version"];
  const text = version === undefined ? activeText(ctx) : await versionText(ctx, version);
  return { page: await draw(ctx, { text, typed: untypedCall(ctx), tried: null, base: "" }, nothing) };
}

/** The text that is in force, with its author's comments. */
function activeText({ app }: Ctx): string {
  const { policy, policy_text } = app.rules.current();
  return policy_text ?? stringify(policy.doc);
}

function versionText(ctx: Ctx, version: string): Promise<string> {
  ctx.demand(readRegistry);
  return policyVersionText(ctx.app, version);
}

async function draw(ctx: Ctx, bench: Bench, results: Html) {
  const { policy } = ctx.app.core.rules();
  const body = html`${pageHead("Policy", "What this organisation thinks of a call: who may make it, when, how often, with which arguments, and who has to agree.")}
${results}
${form(
  ctx,
  { action: "/console/policy#results", class: "bench", id: "bench", tried: true },
  trialCard(ctx, bench.typed, bench.tried),
  await textCard(ctx, bench),
)}
${inForceCard(policy)}
${await versionsCard(ctx)}`;
  return { title: "Policy", nav: "policy" as const, body };
}

async function textCard(ctx: Ctx, { text, base }: Bench): Promise<Html> {
  const may_simulate = ctx.may(simulate);
  const may_publish = ctx.may(publishPolicy);
  const may_compare = ctx.may(diffPolicy);
  const versions = may_compare ? await versionNames(ctx) : [];
  const action = (label: string, what: string) => button(label, "plain", html` name="do" value="${what}"`);
  const fields: Part[] = [
    textarea({ label: "Policy (YAML)", name: "yaml", value: text, rows: 18, mono: true, required: true }),
    versions.length === 0
      ? nothing
      : select({
          label: "Compare with",
          name: "base",
          value: base,
          choices: [["", "the policy in force"], ...versions.map((one) => [one, `version ${one}`] as const)],
        }),
    may_publish
      ? input({ label: "Note for the draft", name: "note", maxlength: 4_000, hint: "Only for publishing." })
      : nothing,
  ];
  return card(
    { title: "Try a policy", id: "text" },
    html`<p class="soft">Change the text and see what it would do: what differs from the policy in force, whether its tests pass and its claims hold, and how the captured calls of the last 7 days would have been decided. Nothing here puts it in force.</p>
<div class="form">${fields}<div class="actions">${button("Validate and run its tests", "primary", html` name="do" value="check"`)}${
      may_compare ? action("Compare all calls", "compare") : nothing
    }${may_simulate ? action("Simulate the last 7 days", "simulate") : nothing}${
      may_publish ? action("Publish as draft", "publish") : nothing
    }</div></div>`,
    may_simulate ? nothing : simulationHint(ctx),
  );
}

function simulationHint(ctx: Ctx): Html {
  return ctx.app.settings.capture.enabled
    ? html`<p class="soft">Simulating needs the operator role.</p>`
    : html`<p class="soft">Capture is off, so there is no history to simulate against. Turn it on with <code>capture: {enabled: true}</code> or <code>SVC_CAPTURE=1</code>.</p>`;
}

/** Trying a text, checking it and keeping a test in it change nothing here. */
const READS_ONLY: RoleGate = { role: "auditor", within_tenant: true };
const BUTTON_NEEDS: Readonly<Record<string, RoleGate>> = {
  publish: publishPolicy,
  simulate,
  compare: diffPolicy,
};
function workNeeds(form: Form): RoleGate {
  const wanted = form.text("do");
  return Object.hasOwn(BUTTON_NEEDS, wanted) ? BUTTON_NEEDS[wanted]! : READS_ONLY;
}

async function work(ctx: Ctx): Promise<Answer> {
  const text = ctx.form.document("yaml");
  if (text.trim() === "") throw invalid("policy: is empty; version: 1 is the least that it says");
  const bench: Bench = { text, typed: typedCall(ctx), tried: null, base: ctx.form.text("base") };
  const example = ctx.form.text("keep");
  if (example !== "") return kept(ctx, bench, exampleTest(example));
  const wanted = ctx.form.text("do");
  if (wanted === "try" || wanted === "keep") return tried(ctx, bench, wanted === "keep");
  if (wanted === "publish") return publish(ctx, text);
  const { ok, cards } = await checked(ctx, text);
  let results = cards;
  if (wanted === "simulate" && ok) {
    const report = await ctx.call(simulate, { policy: text, since: "7d" });
    results = html`${simulationCards(report.read())}${results}`;
  }
  if (wanted === "compare" && ok) {
    const a = bench.base === "" ? undefined : await versionText(ctx, bench.base);
    const diff = await ctx.call(diffPolicy, { b: text, ...(a === undefined ? {} : { a }) });
    results = html`${differenceCards(diff, bench.base)}${results}`;
  }
  return shown(ctx, bench, results, ok);
}

async function shown(ctx: Ctx, bench: Bench, results: Html, ok: boolean): Promise<Answer> {
  const whole: Bench = { ...bench, tried: bench.tried ?? (await tryTyped(ctx, bench.text, bench.typed)) };
  return {
    page: await draw(ctx, whole, html`<div id="results" tabindex="-1">${results}</div>`),
    status: ok ? 200 : 400,
  };
}

async function checked(ctx: Ctx, text: string): Promise<{ ok: boolean; cards: Html }> {
  const found = await checkPolicyText(ctx.app, text, { diff: true, signal: ctx.signal });
  const claims = found.ok ? await proveClaims(ctx.app, text, "policy", ctx.signal) : [];
  const warnings = found.ok ? await warningsOf(ctx.app, text, ctx.signal) : [];
  return { ok: found.ok, cards: checkedCards(found, claims, warnings) };
}

/** A notice has room for a few; the page shows all where the text is checked. */
const MOST_WARNED = 3;

async function publish(ctx: Ctx, yaml: string): Promise<Answer> {
  const note = ctx.form.optional("note");
  const { version, tests, warnings } = await ctx.call(publishPolicy, { yaml, note });
  const warned = warnings.length === 0 ? "" : ` Warning: ${warnings.slice(0, MOST_WARNED).join("; ")}.`;
  const text = `Version ${version} is published as a draft; ${plural(tests.passed, "test")} passed. An admin can put it in force.${warned}`;
  return { to: "/console/policy#versions", notice: { kind: warned === "" ? "ok" : "warn", text } };
}

/** Decides the call that was typed, and puts it into the text as a test where that is wanted. */
async function tried(ctx: Ctx, bench: Bench, keep: boolean): Promise<Answer> {
  const answer = await tryTyped(ctx, bench.text, bench.typed);
  const status = answer === null || "problems" in answer ? 400 : 200;
  // A script that asks while one types exchanges the answer alone.
  if (ctx.form.checked("live"))
    return { page: { title: "Policy", nav: "policy", body: trialRegion(answer) }, status };
  if (!keep || answer === null || "problems" in answer)
    return { page: await draw(ctx, { ...bench, tried: answer }, nothing), status };
  const name = ctx.form.optional("test_name") ?? answer.trial.test.name;
  return kept(ctx, { ...bench, tried: answer }, { ...answer.trial.test, name });
}

async function kept(ctx: Ctx, bench: Bench, test: PolicyTestDoc): Promise<Answer> {
  const text = await keepPolicyTest(bench.text, test, ctx.signal);
  const { cards } = await checked(ctx, text);
  const next = ctx.may(publishPolicy)
    ? "publish it as a draft"
    : "copy it into the policy's file, which is where it takes effect";
  const results = html`${notice("ok", html`<p class="said">Kept as the test “${test.name}” in the text below; ${next}.</p>`)}${cards}`;
  return shown(ctx, { ...bench, text }, results, true);
}

function exampleTest(text: string): PolicyTestDoc {
  try {
    return JSON.parse(text) as PolicyTestDoc;
  } catch {
    throw invalid("keep: is no test; use the buttons of the page");
  }
}
