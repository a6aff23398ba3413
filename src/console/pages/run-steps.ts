/** The steps of a run as a timeline, with what each depends on and, where its outcome is not known, a way to say it. */
import { resolve as resolveOp } from "../../app/operations/journal.ts";
import { UNKNOWN } from "../../model/run.ts";
import type { PlanAction, RollbackPlan } from "../../rollback/plan.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined, nothing, type Part } from "../html.ts";
import { card, empty } from "../parts/blocks.ts";
import { type ArcNode, dependencyArcs } from "../parts/charts.ts";
import { folded } from "../parts/fold.ts";
import { button, disclosed, form, input, select, textarea } from "../parts/forms.ts";
import { hashText } from "../parts/ids.ts";
import { effectMark, mark, stepMark, stepTone } from "../parts/marks.ts";
import { took, when } from "../parts/time.ts";
import type { RunView, StepView } from "./run-data.ts";

const STEPS_PAGE = 100;
const MOST_ARCS = 60;

export function stepsCard(ctx: Ctx, run: RunView, plan: RollbackPlan | null): Html {
  const from = Math.max(0, Number.parseInt(ctx.query["steps"] ?? "0", 10) || 0);
  const shown = run.steps.slice(from, from + STEPS_PAGE);
  const needed = neededBy(run.steps);
  const ways = new Map(plan?.actions.map((action) => [action.step, action]));
  return card(
    { title: "What the agent did", id: "steps", live: true },
    run.steps.length === 0
      ? empty("No call was accepted yet", html`<p>Refused calls have no step; they stand below.</p>`)
      : html`${arcs(run.steps)}<ol class="timeline" start="${from}">${folded(shown, sameLine).map((group) => stepGroup(ctx, run, group, { needed, ways }))}</ol>${stepPages(run, from)}`,
  );
}

function arcs(steps: readonly StepView[]): Html {
  if (
    steps.length < 2 ||
    steps.length > MOST_ARCS ||
    steps.every(({ depends_on }) => depends_on.length === 0)
  )
    return nothing;
  const nodes: ArcNode[] = steps.map(({ step, tool, status, depends_on }) => ({
    step,
    tool,
    depends_on,
    tone: stepTone(status),
  }));
  return html`<div class="arcs-frame">${dependencyArcs(nodes)}</div>`;
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
  joined(
    steps.map((step) => html`<a href="#step-${step}">${step}</a>`),
    ", ",
  );

interface Around {
  needed: ReadonlyMap<number, number[]>;
  /** What the plan says of each step that stands. */
  ways: ReadonlyMap<number, PlanAction>;
}

const sameLine = (a: StepView, b: StepView): boolean =>
  a.tool === b.tool &&
  a.reason === b.reason &&
  a.status === b.status &&
  a.error === b.error &&
  !UNKNOWN.has(a.status);

function stepGroup(ctx: Ctx, run: RunView, group: readonly StepView[], around: Around): Html {
  const [first] = group as [StepView];
  if (group.length === 1) return stepItem(ctx, run, first, around);
  const last = group.at(-1)!;
  return html`<li class="step ${stepTone(first.status)}"><div class="step-head"><span class="step-number">${first.step}</span><code class="step-tool">${first.tool}</code>${mark("quiet", `${group.length} times`)}${stepMark(first.status)}<span class="step-time">${when(first.intended_ms)}</span></div>
<p class="step-reason">${first.reason}</p>
<details class="more"><summary>Steps ${first.step} to ${last.step}, one by one</summary><ol class="timeline">${group.map((step) => stepItem(ctx, run, step, around))}</ol></details></li>`;
}

function stepItem(ctx: Ctx, run: RunView, step: StepView, { needed, ways }: Around): Html {
  const unknown = UNKNOWN.has(step.status);
  return html`<li class="step ${stepTone(step.status)}" id="step-${step.step}" tabindex="-1">
<div class="step-head"><span class="step-number">${step.step}</span><code class="step-tool">${step.tool}</code>${stepMark(step.status)}<span class="step-time">${when(step.intended_ms)}</span></div>
<p class="step-reason">${step.reason}</p>
${step.error === null ? null : html`<p class="step-error">${step.error}</p>`}
<p class="step-way">${wayBack(step, ways.get(step.step))}</p>
${stepDetails(step, needed.get(step.step) ?? [])}
${unknown && ctx.may(resolveOp) ? resolveForm(ctx, run.run_id, step) : nothing}
</li>`;
}

/** In a sentence: can it be taken back, and how. */
function wayBack(step: StepView, action: PlanAction | undefined): Part {
  if (step.status === "compensated") return "Taken back.";
  if (step.status === "failed") return "Failed, so there is nothing to take back.";
  if (action === undefined) return html`${effectMark(step.effect)}`;
  if (action.kind === "compensate")
    return html`Can be taken back with <code>${action.compensation_tool}</code>${action.compensation_kind === "inverse" ? ", exactly" : ", as amends"}${action.verified ? " and read back" : ""}${action.needs_approval ? "; somebody has to approve that" : ""}${action.closes_ms === undefined ? "" : html`, until ${when(action.closes_ms)}`}.`;
  if (action.kind === "unrecoverable")
    return html`<span class="step-final">Cannot be taken back${action.closed ? " any more" : ""}.</span>`;
  if (action.kind === "defer")
    return `Can be taken back once step ${action.blocked_by.join(", ")}, which builds on it, is.`;
  if (action.kind === "unresolved") return "How it ended is not known; somebody has to say it first.";
  return action.kind === "skip"
    ? "Changed nothing, so there is nothing to take back."
    : "No manifest says how to take it back.";
}

/** What proves it, for those who look closely. */
function stepDetails(step: StepView, needed: readonly number[]): Html {
  return html`<details class="more"><summary>Details</summary><p class="step-foot">${effectMark(step.effect)}${
    step.finished_ms === null ? null : html`<span>took ${took(step.finished_ms - step.intended_ms)}</span>`
  }${step.risk_score > 0 ? html`<span>risk ${step.risk_score}</span>` : null}${step.depends_on.length === 0 ? null : html`<span>needs ${stepLinks(step.depends_on)}</span>`}${
    needed.length === 0 ? null : html`<span>needed by ${stepLinks(needed)}</span>`
  }${step.compensation_tool === null ? null : html`<span>undone by <code>${step.compensation_tool}</code></span>`}${
    step.manifest_version === null ? null : html`<span>manifest ${step.manifest_version}</span>`
  }<span>arguments ${hashText(step.args_hash, "the hash of the arguments", 8)}</span>${
    step.result_hash === null
      ? null
      : html`<span>result ${hashText(step.result_hash, "the hash of the result", 8)}</span>`
  }</p></details>`;
}

function resolveForm(ctx: Ctx, run_id: string, { step, status }: StepView): Html {
  return disclosed(
    status === "uncertain" ? "Resolve: say what became of it" : "Resolve",
    form(
      ctx,
      { action: `/console/runs/${encodeURIComponent(run_id)}/steps/${step}/resolve` },
      html`<p class="soft">Look at the tool itself first. Your word stands on the ledger under your name.</p>`,
      select({
        label: "What happened",
        name: "status",
        required: true,
        choices: [
          ["", "choose"],
          ["succeeded", "it took effect (succeeded)"],
          ["failed", "it did not (failed)"],
        ],
      }),
      input({ label: "How you know", name: "note", required: true, maxlength: 4_000 }),
      textarea({
        label: "Result (JSON, optional)",
        name: "result",
        rows: 2,
        mono: true,
        hint: "Where the undo needs something of the result, such as an id, give it here.",
      }),
      button("Record it", "primary"),
    ),
  );
}

function stepPages({ run_id, steps }: RunView, from: number): Html {
  if (steps.length <= STEPS_PAGE) return nothing;
  const at = (start: number) => `/console/runs/${encodeURIComponent(run_id)}?steps=${start}#steps`;
  return html`<nav class="pager" aria-label="Steps">${from > 0 ? html`<a class="button" href="${at(Math.max(0, from - STEPS_PAGE))}">Earlier</a>` : null}<span class="soft">${from} to ${Math.min(from + STEPS_PAGE, steps.length) - 1} of ${steps.length}</span>${
    from + STEPS_PAGE < steps.length
      ? html`<a class="button" href="${at(from + STEPS_PAGE)}">Later</a>`
      : null
  }</nav>`;
}
