/** What came of trying a policy: its problems, its own tests, what it changes, and what history would have been under it. */
import type { CheckedPolicy } from "../../app/sandbox/readings.ts";
import type { ClaimResult } from "../../model/policy/prove/claims.ts";
import type { SimulatedCall, SimulationReport } from "../../sandbox/simulate.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { bullets, card, empty, notice, table } from "../parts/blocks.ts";
import { diffBlock } from "../parts/diff.ts";
import { disclosed } from "../parts/forms.ts";
import { runLink } from "../parts/ids.ts";
import { mark, plural, rulingMark, type Tone } from "../parts/marks.ts";
import { keepButton } from "./policy-trial.ts";

export type { SimulationReport };

type Passable = Extract<CheckedPolicy, { ok: true }>;

export function checkedCards(
  checked: CheckedPolicy,
  claims: readonly ClaimResult[],
  warnings: readonly string[],
): Html {
  if (!checked.ok) {
    return notice(
      "bad",
      html`<p class="said">This policy does not load; ${plural(checked.problems.length, "problem")}:</p>`,
      html`<ul class="problems">${checked.problems.map((problem) => html`<li><code>${problem}</code></li>`)}</ul>`,
    );
  }
  const { passed, failed } = checked;
  const open = claims.filter(({ result }) => result !== "proved").length;
  return html`${notice(
    failed + open + warnings.length === 0 ? "ok" : "warn",
    html`<p class="said">The policy is valid: ${plural(checked.rules, "rule")}. ${
      passed + failed === 0
        ? "It carries no tests."
        : failed === 0
          ? `${plural(passed, "test")} passed.`
          : `${plural(failed, "test")} of ${passed + failed} failed.`
    }${open === 0 ? null : ` ${open} of ${plural(claims.length, "claim")} ${open === 1 ? "is" : "are"} not proved.`}</p>`,
    warnings.length === 0
      ? nothing
      : html`<p>${plural(warnings.length, "warning")}:</p><ul class="problems" id="warnings">${warnings.map((one) => html`<li>${one}</li>`)}</ul>`,
  )}${claims.length === 0 ? null : claimsCard(claims)}<div class="columns">${testsCard(checked)}${diffCard(checked)}</div>`;
}

const CLAIMED: Record<ClaimResult["result"], Tone> = {
  proved: "good",
  counterexample: "bad",
  incomplete: "warn",
};

function claimsCard(claims: readonly ClaimResult[]): Html {
  return card(
    { title: "Its claims", id: "claims" },
    html`<p class="soft">Each is about all calls: proved, or shown to be wrong by a call that the policy was run on.</p>`,
    table(
      "Claims",
      ["Claim", "Result", "Because"],
      claims.map((claim) => [claim.name, mark(CLAIMED[claim.result], claim.result), claimWords(claim)]),
    ),
  );
}

function claimWords({ name, at_least, counterexample, reason }: ClaimResult): Part {
  if (counterexample === undefined) return reason ?? "it holds for every call";
  const { input, got, rules } = counterexample;
  return html`expected at least ${rulingMark(at_least)}, got ${rulingMark(got)}${rules.map((rule) => html` <code>${rule}</code>`)} for <code class="example">${JSON.stringify(input)}</code> ${keepButton({ name, input, expect: at_least })}`;
}

function testsCard({ tests, passed, failed }: Passable): Html {
  const left = passed + failed - tests.length;
  return card(
    { title: "Its tests" },
    tests.length === 0
      ? empty(
          "No tests",
          html`<p>Add <code>tests:</code> with a name, an input and what you expect; they run here, in <code>svc policy test</code>, and before publishing.</p>`,
        )
      : html`<ul class="tests">${tests.map(({ name, ok, expected, got }) => html`<li>${ok ? mark("good", "ok") : mark("bad", "FAIL")} ${name}${ok ? null : html` <span class="soft">expected ${expected}, got ${got}</span>`}</li>`)}</ul>${left > 0 ? html`<p class="soft">And ${left} more.</p>` : nothing}`,
  );
}

function diffCard({ diff, diff_left }: Passable): Html {
  return card(
    { title: "Against the one in force" },
    diff.length === 0
      ? html`<p class="calm">They say the same.</p>`
      : html`${diffBlock("Difference to the policy in force", diff)}${diff_left > 0 ? html`<p class="soft">And ${plural(diff_left, "line")} more.</p>` : nothing}`,
  );
}

const GROUPS = [
  ["newly_blocked", "Newly blocked", "bad"],
  ["newly_needs_approval", "Newly needing approval", "warn"],
  ["newly_allowed", "Newly allowed", "good"],
] as const;
const MOST_LISTED = 100;

export function simulationCards(report: SimulationReport): Html {
  const { summary } = report;
  const counts = GROUPS.map(
    ([key, label, tone]) =>
      html`<li>${mark(summary[key] === 0 ? "quiet" : tone, String(summary[key]))} ${label.toLowerCase()}</li>`,
  );
  const body =
    summary.calls === 0
      ? empty(
          "No captured calls in the last 7 days",
          html`<p>Captured calls expire; new ones are kept from now on.</p>`,
        )
      : html`<ul class="counts"><li>${mark("info", summary.calls.toLocaleString("en"))} captured calls of ${plural(summary.runs, "run")}</li><li>${mark("quiet", summary.unchanged.toLocaleString("en"))} decided the same</li>${counts}</ul>
${report.changes.length === 0 ? null : table("Changes by cause", ["Change", "Because of", "Calls", "Runs", "Tools", "Reason"], report.changes.map(changeRow))}`;
  return card(
    { title: "Simulation of the last 7 days", id: "simulation" },
    body,
    report.notes.length === 0 ? nothing : notice("info", bullets(report.notes)),
    GROUPS.map(([key, label]) => group(label, report[key])),
  );
}

function changeRow({ change, by, calls, runs, tools, reason }: SimulationReport["changes"][number]): Part[] {
  return [
    change.replaceAll("_", " "),
    by.join(", ") || "no single cause",
    String(calls),
    String(runs),
    tools.map((tool) => html`<code>${tool}</code> `),
    reason ?? "",
  ];
}

function group(label: string, calls: readonly SimulatedCall[]): Html {
  if (calls.length === 0) return nothing;
  const rows = calls
    .slice(0, MOST_LISTED)
    .map((call) => [
      runLink(call.run_id),
      call.step === null ? "" : String(call.step),
      html`<code>${call.tool}</code>`,
      rulingMark(call.old.decision),
      rulingMark(call.new.decision),
      bullets(call.new.reasons.length > 0 ? call.new.reasons : call.old.reasons),
    ]);
  return disclosed(
    `${label}, call by call`,
    table(label, ["Run", "Step", "Tool", "Was", "Would be", "Reasons"], rows),
    calls.length > MOST_LISTED
      ? html`<p class="soft">The first ${MOST_LISTED}; <code>svc simulate --json</code> lists all.</p>`
      : nothing,
  );
}
