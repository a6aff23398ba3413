/** Results of checking a policy: problems, tests, claims, changes, and a simulation on captured calls. */
import type { CheckedPolicy } from "../../../operations/worker/parse-tasks.ts";
import type { ClaimResult } from "../../../rules/policy/prove/claims.ts";
import type { SimulatedCall, SimulationReport } from "../../../simulate/simulate.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { bulletList, cardBlock, emptyState, noticeBox, tableBlock } from "../../parts/blocks.ts";
import { diffBlock } from "../../parts/diff.ts";
import { foldedForm } from "../../parts/forms.ts";
import { runLink } from "../../parts/ids.ts";
import { formatCountOf, type MarkTone, markLabel, rulingMark } from "../../parts/marks.ts";
import { keepButton } from "./policy-trial.ts";

export type { SimulationReport };

type Passable = Extract<CheckedPolicy, { ok: true }>;

export function checkedCards(
  checked: CheckedPolicy,
  claims: readonly ClaimResult[],
  warnings: readonly string[],
): HtmlFragment {
  if (!checked.ok) {
    return noticeBox(
      "bad",
      safeHtml`<p class="said">This policy does not load. ${formatCountOf(checked.problems.length, "problem")}:</p>`,
      safeHtml`<ul class="problems">${checked.problems.map((problem) => safeHtml`<li><code>${problem}</code></li>`)}</ul>`,
    );
  }
  const { passed, failed } = checked;
  const open = claims.filter(({ result }) => result !== "proved").length;
  return safeHtml`${noticeBox(
    failed + open + warnings.length === 0 ? "ok" : "warn",
    safeHtml`<p class="said">The policy is valid: ${formatCountOf(checked.rules, "rule")}. ${
      passed + failed === 0
        ? "It has no tests."
        : failed === 0
          ? `${formatCountOf(passed, "test")} passed.`
          : `${formatCountOf(failed, "test")} of ${passed + failed} failed.`
    }${open === 0 ? null : ` ${open} of ${formatCountOf(claims.length, "claim")} ${open === 1 ? "is" : "are"} not proved.`}</p>`,
    warnings.length === 0
      ? emptyHtml
      : safeHtml`<p>${formatCountOf(warnings.length, "warning")}:</p><ul class="problems" id="warnings">${warnings.map((one) => safeHtml`<li>${one}</li>`)}</ul>`,
  )}${claims.length === 0 ? null : claimsCard(claims)}<div class="columns">${testsCard(checked)}${diffCard(checked)}</div>`;
}

const CLAIMED: Record<ClaimResult["result"], MarkTone> = {
  proved: "good",
  counterexample: "bad",
  incomplete: "warn",
};

function claimsCard(claims: readonly ClaimResult[]): HtmlFragment {
  return cardBlock(
    { title: "Claims", id: "claims" },
    safeHtml`<p class="soft">A claim covers all calls. It is proved, or disproved by an example call that was run through the policy.</p>`,
    tableBlock(
      "Claims",
      ["Claim", "Result", "Because"],
      claims.map((claim) => [claim.name, markLabel(CLAIMED[claim.result], claim.result), claimWords(claim)]),
    ),
  );
}

function claimWords({ name, at_least, counterexample, reason }: ClaimResult): TemplateValue {
  if (counterexample === undefined) return reason ?? "it holds for every call";
  const { input, got, rules } = counterexample;
  return safeHtml`expected at least ${rulingMark(at_least)}, got ${rulingMark(got)}${rules.map((rule) => safeHtml` <code>${rule}</code>`)} for <code class="example">${JSON.stringify(input)}</code> ${keepButton({ name, input, expect: at_least })}`;
}

function testsCard({ tests, passed, failed }: Passable): HtmlFragment {
  const left = passed + failed - tests.length;
  return cardBlock(
    { title: "Tests" },
    tests.length === 0
      ? emptyState(
          "No tests",
          safeHtml`<p>Add <code>tests:</code> with a name, an input and the expected decision. They run here, in <code>svc policy test</code>, and before publishing.</p>`,
        )
      : safeHtml`<ul class="tests">${tests.map(({ name, ok, expected, got }) => safeHtml`<li>${ok ? markLabel("good", "ok") : markLabel("bad", "FAIL")} ${name}${ok ? null : safeHtml` <span class="soft">expected ${expected}, got ${got}</span>`}</li>`)}</ul>${left > 0 ? safeHtml`<p class="soft">And ${left} more.</p>` : emptyHtml}`,
  );
}

function diffCard({ diff, diff_left }: Passable): HtmlFragment {
  return cardBlock(
    { title: "Changes from the active policy" },
    diff.length === 0
      ? safeHtml`<p class="calm">No changes.</p>`
      : safeHtml`${diffBlock("Changes from the active policy", diff)}${diff_left > 0 ? safeHtml`<p class="soft">And ${formatCountOf(diff_left, "line")} more.</p>` : emptyHtml}`,
  );
}

const GROUPS = [
  ["newly_blocked", "Newly blocked", "bad"],
  ["newly_needs_approval", "Newly needing approval", "warn"],
  ["newly_allowed", "Newly allowed", "good"],
] as const;
const MAX_LISTED = 100;

export function simulationCards(report: SimulationReport): HtmlFragment {
  const { summary } = report;
  const counts = GROUPS.map(
    ([key, label, tone]) =>
      safeHtml`<li>${markLabel(summary[key] === 0 ? "quiet" : tone, String(summary[key]))} ${label.toLowerCase()}</li>`,
  );
  const body =
    summary.calls === 0
      ? emptyState(
          "No captured calls in the last 7 days",
          safeHtml`<p>The simulation uses captured calls. New calls are captured from now on.</p>`,
        )
      : safeHtml`<ul class="counts"><li>${markLabel("info", summary.calls.toLocaleString("en"))} captured calls of ${formatCountOf(summary.runs, "run")}</li><li>${markLabel("quiet", summary.unchanged.toLocaleString("en"))} unchanged</li>${counts}</ul>
${report.changes.length === 0 ? null : tableBlock("Changes by cause", ["Change", "Because of", "Calls", "Runs", "Tools", "Reason"], report.changes.map(changeRow))}`;
  return cardBlock(
    { title: "Simulation of the last 7 days", id: "simulation" },
    body,
    report.notes.length === 0 ? emptyHtml : noticeBox("info", bulletList(report.notes)),
    GROUPS.map(([key, label]) => group(label, report[key])),
  );
}

function changeRow({
  change,
  by,
  calls,
  runs,
  tools,
  reason,
}: SimulationReport["changes"][number]): TemplateValue[] {
  return [
    change.replaceAll("_", " "),
    by.join(", ") || "no single cause",
    String(calls),
    String(runs),
    tools.map((tool) => safeHtml`<code>${tool}</code> `),
    reason ?? "",
  ];
}

function group(label: string, calls: readonly SimulatedCall[]): HtmlFragment {
  if (calls.length === 0) return emptyHtml;
  const rows = calls
    .slice(0, MAX_LISTED)
    .map((call) => [
      runLink(call.run_id),
      call.step === null ? "" : String(call.step),
      safeHtml`<code>${call.tool}</code>`,
      rulingMark(call.old.decision),
      rulingMark(call.new.decision),
      bulletList(call.new.reasons.length > 0 ? call.new.reasons : call.old.reasons),
    ]);
  return foldedForm(
    `${label}, call by call`,
    tableBlock(label, ["Run", "Step", "Tool", "Was", "Would be", "Reasons"], rows),
    calls.length > MAX_LISTED
      ? safeHtml`<p class="soft">The first ${MAX_LISTED}; <code>svc simulate --json</code> lists all.</p>`
      : emptyHtml,
  );
}
