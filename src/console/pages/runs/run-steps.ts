/** Timeline of a run's steps with their dependencies, and a form to resolve steps with an unknown outcome. */
import { effectText } from "../../../govern/decide/effect-check.ts";
import { UNKNOWN_OUTCOME_STATUSES } from "../../../govern/runs/run.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import { resolveOutcome as resolveOp } from "../../../operations/runs/intents-and-outcomes.ts";
import type { PlanAction, RollbackPlan } from "../../../rollback/plan/plan.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml, type TemplateValue } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { cardBlock, emptyState } from "../../parts/blocks.ts";
import { type ArcNode, dependencyArcs } from "../../parts/charts.ts";
import {
  foldedForm,
  formElement,
  inputField,
  selectField,
  submitButton,
  textareaField,
} from "../../parts/forms.ts";
import { groupEqualNeighbours } from "../../parts/group-equal.ts";
import { hashText } from "../../parts/ids.ts";
import { effectMark, markLabel, stepMark, stepTone } from "../../parts/marks.ts";
import { riskWord } from "../../parts/risk.ts";
import { formatElapsed, formatTime } from "../../parts/time.ts";
import type { RunView, StepView } from "./run-data.ts";

const STEPS_PAGE = 100;
const MAX_ARCS = 60;

export function stepsCard(ctx: PageContext, run: RunView, plan: RollbackPlan | null): HtmlFragment {
  const from = Math.max(0, Number.parseInt(ctx.query["steps"] ?? "0", 10) || 0);
  const shown = run.steps.slice(from, from + STEPS_PAGE);
  const needed = neededBy(run.steps);
  const ways = new Map(plan?.actions.map((action) => [action.step, action]));
  return cardBlock(
    { title: "What the agent did", id: "steps", live: true },
    run.steps.length === 0
      ? emptyState(
          "No steps yet",
          safeHtml`<p>Accepted calls appear here. Blocked calls have no step and are listed below.</p>`,
        )
      : safeHtml`${arcs(run.steps)}<ol class="timeline" start="${from}">${groupEqualNeighbours(shown, sameLine).map((group) => stepGroup(ctx, run, group, { needed, ways }))}</ol>${stepPages(run, from)}`,
  );
}

function arcs(steps: readonly StepView[]): HtmlFragment {
  if (steps.length < 2 || steps.length > MAX_ARCS || steps.every(({ depends_on }) => depends_on.length === 0))
    return emptyHtml;
  const nodes: ArcNode[] = steps.map(({ step, tool, status, depends_on }) => ({
    step,
    tool,
    depends_on,
    status,
    tone: stepTone(status),
  }));
  return safeHtml`<div class="arcs-frame">${dependencyArcs(nodes)}</div>`;
}

function neededBy(steps: readonly StepView[]): Map<number, number[]> {
  const map = new Map<number, number[]>();
  for (const { step, depends_on } of steps)
    for (const other of depends_on) {
      const known = map.get(other);
      if (known === undefined) map.set(other, [step]);
      else known.push(step);
    }
  return map;
}

const stepLinks = (steps: readonly number[]) =>
  joinHtml(
    steps.map((step) => safeHtml`<a href="#step-${step}">${step}</a>`),
    ", ",
  );

interface Around {
  needed: ReadonlyMap<number, number[]>;
  /** Planned action for each step that is not undone. */
  ways: ReadonlyMap<number, PlanAction>;
}

const sameLine = (a: StepView, b: StepView): boolean =>
  a.tool === b.tool &&
  a.line === b.line &&
  a.reason === b.reason &&
  a.status === b.status &&
  a.error === b.error &&
  !UNKNOWN_OUTCOME_STATUSES.has(a.status);

/** The manifest's sentence on the call, or the tool's name. */
const callName = ({ tool, line }: StepView): HtmlFragment =>
  line === undefined
    ? safeHtml`<code class="step-tool">${tool}</code>`
    : safeHtml`<span class="step-tool">${line}</span> <code class="chip">${tool}</code>`;

function stepGroup(ctx: PageContext, run: RunView, group: readonly StepView[], around: Around): HtmlFragment {
  const [first] = group as [StepView];
  if (group.length === 1) return stepItem(ctx, run, first, around);
  const last = group.at(-1)!;
  return safeHtml`<li class="step ${stepTone(first.status)}"><div class="step-head"><span class="step-number">${first.step}</span>${callName(first)}${markLabel("quiet", `${group.length} times`)}${stepMark(first.status)}<span class="step-time">${formatTime(first.intended_ms)}</span></div>
<p class="step-reason">${first.reason}</p>
<details class="more"><summary>Steps ${first.step} to ${last.step}, one by one</summary><ol class="timeline">${group.map((step) => stepItem(ctx, run, step, around))}</ol></details></li>`;
}

function stepItem(ctx: PageContext, run: RunView, step: StepView, { needed, ways }: Around): HtmlFragment {
  const unknown = UNKNOWN_OUTCOME_STATUSES.has(step.status);
  return safeHtml`<li class="step ${stepTone(step.status)}" id="step-${step.step}" tabindex="-1">
<div class="step-head"><span class="step-number">${step.step}</span>${callName(step)}${stepMark(step.status)}<span class="step-time">${formatTime(step.intended_ms)}</span></div>
<p class="step-reason">${step.reason}</p>
${step.error === null ? null : safeHtml`<p class="step-error">${step.error}</p>`}
${effectLine(step)}
<p class="step-way">${wayBack(step, ways.get(step.step))}</p>
${stepDetails(step, needed.get(step.step) ?? [])}
${unknown && ctx.may(resolveOp) ? resolveForm(ctx, run.run_id, step) : emptyHtml}
</li>`;
}

/** What the effect check found, if the manifest declares one. */
function effectLine(step: StepView): HtmlFragment {
  const found = effectText(step);
  return found === null ? emptyHtml : safeHtml`<p class="step-way">${capitalizeFirst(found)}.</p>`;
}

/** One sentence on whether and how the step can be undone. */
function wayBack(step: StepView, action: PlanAction | undefined): TemplateValue {
  if (step.status === "compensated") return "Undone.";
  if (step.status === "failed") return "Failed, so there is nothing to undo.";
  if (action === undefined) return safeHtml`${effectMark(step.effect)}`;
  if (action.kind === "compensate")
    return safeHtml`Can be undone with <code>${action.compensation_tool}</code>${action.compensation_kind === "inverse" ? ", exactly" : ", by compensation"}${action.verified ? " and read back" : ""}${action.needs_approval ? "; needs approval" : ""}${action.closes_ms === undefined ? "" : safeHtml`, until ${formatTime(action.closes_ms)}`}.`;
  if (action.kind === "unrecoverable")
    return safeHtml`<span class="step-final">${action.closed ? "Can no longer" : "Cannot"} be undone.</span>`;
  if (action.kind === "defer")
    return `Can be undone after step ${action.blocked_by.join(", ")}, which depends on it.`;
  if (action.kind === "unresolved") return "Outcome unknown. Resolve this step first.";
  return action.kind === "skip"
    ? "Changed nothing, so there is nothing to undo."
    : "No manifest says how to undo it.";
}

/** Hashes, dependencies and timings of a step, folded. */
function stepDetails(step: StepView, needed: readonly number[]): HtmlFragment {
  return safeHtml`<details class="more"><summary>Details</summary><p class="step-foot">${effectMark(step.effect)}${
    step.finished_ms === null
      ? null
      : safeHtml`<span>took ${formatElapsed(step.finished_ms - step.intended_ms)}</span>`
  }${step.risk_score > 0 ? safeHtml`<span>${riskWord(step.risk_score)} risk (${step.risk_score})</span>` : null}${step.depends_on.length === 0 ? null : safeHtml`<span>needs ${stepLinks(step.depends_on)}</span>`}${
    needed.length === 0 ? null : safeHtml`<span>needed by ${stepLinks(needed)}</span>`
  }${step.compensation_tool === null ? null : safeHtml`<span>undone by <code>${step.compensation_tool}</code></span>`}${
    step.manifest_version === null ? null : safeHtml`<span>manifest ${step.manifest_version}</span>`
  }<span>arguments ${hashText(step.args_hash, "the hash of the arguments", 8)}</span>${
    step.result_hash === null
      ? null
      : safeHtml`<span>result ${hashText(step.result_hash, "the hash of the result", 8)}</span>`
  }</p></details>`;
}

function resolveForm(ctx: PageContext, run_id: string, { step, status }: StepView): HtmlFragment {
  return foldedForm(
    status === "uncertain" ? "Resolve: record the outcome" : "Resolve",
    formElement(
      ctx,
      { action: `/console/runs/${encodeURIComponent(run_id)}/steps/${step}/resolve` },
      safeHtml`<p class="soft">Check the tool itself first. The ledger records your statement under your name.</p>`,
      selectField({
        label: "What happened",
        name: "status",
        required: true,
        choices: [
          ["", "choose"],
          ["succeeded", "it took effect (succeeded)"],
          ["failed", "it did not (failed)"],
        ],
      }),
      inputField({ label: "How you know", name: "note", required: true, maxlength: 4_000 }),
      textareaField({
        label: "Result (JSON, optional)",
        name: "result",
        rows: 2,
        mono: true,
        hint: "Needed if the undo uses a value from the result, such as an id.",
      }),
      submitButton("Record outcome", "primary"),
    ),
  );
}

function stepPages({ run_id, steps }: RunView, from: number): HtmlFragment {
  if (steps.length <= STEPS_PAGE) return emptyHtml;
  const at = (start: number) => `/console/runs/${encodeURIComponent(run_id)}?steps=${start}#steps`;
  return safeHtml`<nav class="pager" aria-label="Steps">${from > 0 ? safeHtml`<a class="button" href="${at(Math.max(0, from - STEPS_PAGE))}">Earlier</a>` : null}<span class="soft">${from} to ${Math.min(from + STEPS_PAGE, steps.length) - 1} of ${steps.length}</span>${
    from + STEPS_PAGE < steps.length
      ? safeHtml`<a class="button" href="${at(from + STEPS_PAGE)}">Later</a>`
      : null
  }</nav>`;
}
