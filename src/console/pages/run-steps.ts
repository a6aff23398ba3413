/** The steps of a run as a timeline, with what each depends on and, where nobody knows its outcome, a way to say it. */
import { resolve as resolveOp } from "../../app/operations/journal.ts";
import { UNKNOWN } from "../../model/run.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined, nothing } from "../html.ts";
import { card, empty } from "../parts/blocks.ts";
import { type ArcNode, dependencyArcs } from "../parts/charts.ts";
import { button, disclosed, form, input, select, textarea } from "../parts/forms.ts";
import { hashText } from "../parts/ids.ts";
import { effectMark, stepMark, stepTone } from "../parts/marks.ts";
import { took, when } from "../parts/time.ts";
import type { RunView, StepView } from "./run-data.ts";

const STEPS_PAGE = 100;
const MOST_ARCS = 60;

export function stepsCard(ctx: Ctx, run: RunView): Html {
  const from = Math.max(0, Number.parseInt(ctx.query["steps"] ?? "0", 10) || 0);
  const shown = run.steps.slice(from, from + STEPS_PAGE);
  const needed = neededBy(run.steps);
  return card(
    { title: "Steps", id: "steps", live: true },
    run.steps.length === 0
      ? empty(
          "No call was accepted yet",
          html`<p>Refused calls have no step; they stand in the event trail below.</p>`,
        )
      : html`${arcs(run.steps)}<ol class="timeline" start="${from}">${shown.map((step) => stepItem(ctx, run, step, needed.get(step.step) ?? []))}</ol>${stepPages(run, from)}`,
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
    for (const other of depends_on) map.set(other, [...(map.get(other) ?? []), step]);
  return map;
}

const stepLinks = (steps: readonly number[]) =>
  joined(
    steps.map((step) => html`<a href="#step-${step}">${step}</a>`),
    ", ",
  );

function stepItem(ctx: Ctx, run: RunView, step: StepView, needed: readonly number[]): Html {
  const unknown = UNKNOWN.has(step.status);
  return html`<li class="step ${stepTone(step.status)}" id="step-${step.step}" tabindex="-1">
<div class="step-head"><span class="step-number">${step.step}</span><code class="step-tool">${step.tool}</code>${stepMark(step.status)}${effectMark(step.effect)}<span class="step-time">${when(step.intended_ms)}${step.finished_ms === null ? null : html` · <span class="soft">took ${took(step.finished_ms - step.intended_ms)}</span>`}</span></div>
<p class="step-reason">${step.reason}</p>
${step.error === null ? null : html`<p class="step-error">${step.error}</p>`}
<p class="step-foot">${step.risk_score > 0 ? html`<span>risk ${step.risk_score}</span>` : null}${step.depends_on.length === 0 ? null : html`<span>needs ${stepLinks(step.depends_on)}</span>`}${
    needed.length === 0 ? null : html`<span>needed by ${stepLinks(needed)}</span>`
  }${step.compensation_tool === null ? null : html`<span>undone by <code>${step.compensation_tool}</code></span>`}${
    step.manifest_version === null ? null : html`<span>manifest ${step.manifest_version}</span>`
  }<span>arguments ${hashText(step.args_hash, "the hash of the arguments", 8)}</span>${
    step.result_hash === null
      ? null
      : html`<span>result ${hashText(step.result_hash, "the hash of the result", 8)}</span>`
  }</p>
${unknown && ctx.may(resolveOp) ? resolveForm(ctx, run.run_id, step) : nothing}
</li>`;
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
