/** Replays a captured run with one change: the form on the run's page, and the differences. */
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import { replayCapturedRun as replayOp } from "../../../operations/runs/replay.ts";
import type { RollbackPlan } from "../../../rollback/plan/plan.ts";
import type { ReplayDifference, ReplayReport } from "../../../simulate/replay.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, factList, pageHead, tableBlock } from "../../parts/blocks.ts";
import { formElement, inputField, selectField, submitButton } from "../../parts/forms.ts";
import { runLink, runPath } from "../../parts/ids.ts";
import { formatCountOf, markLabel, planMark, rulingMark } from "../../parts/marks.ts";
import type { RunView } from "../runs/run-data.ts";

export const replayRoutes = [postRoute("/runs/:id/replay", replayOp, replay)];

/** Empty if capture is off: without captured calls there is nothing to replay. */
export function replayCard(ctx: PageContext, run: RunView): HtmlFragment {
  if (!ctx.app.settings.capture.enabled || !ctx.may(replayOp)) return emptyHtml;
  const choices = [
    ["", "every call"],
    ...run.steps.slice(0, 200).map(({ step, tool }) => [`step:${step}`, `step ${step}, ${tool}`] as const),
    ...[...new Set(run.steps.map(({ tool }) => tool))].map(
      (tool) => [`tool:${tool}`, `every ${tool}`] as const,
    ),
  ] as const;
  return cardBlock(
    { title: "Replay", id: "replay" },
    safeHtml`<p class="soft">See how this run would have been decided with another value. The replay runs in a sandbox and makes no real calls.</p>`,
    formElement(
      ctx,
      { action: `${runPath(run.run_id)}/replay` },
      selectField({ label: "Change in", name: "where", choices }),
      safeHtml`<div class="row">${inputField({ label: "Path", name: "path", required: true, placeholder: "$args.amount" })}${inputField({ label: "New value (JSON)", name: "value", required: true, placeholder: "900" })}</div>`,
      submitButton("Replay", "primary"),
    ),
  );
}

async function replay(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(replayOp);
  const id = ctx.params["id"]!;
  const where = ctx.form.text("where");
  const path = ctx.form.text("path");
  const value = changeValue(ctx.form.text("value"));
  const change = {
    path,
    value,
    ...(where.startsWith("step:") ? { step: Number(where.slice(5)) } : {}),
    ...(where.startsWith("tool:") ? { tool: where.slice(5) } : {}),
  };
  const report = (await ctx.call(replayOp, { run_id: id, changes: [change] })).read();
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  const body = safeHtml`${pageHead("Replay", safeHtml`Run ${runLink(id)} with <code>${path}</code> set to <code>${shown}</code>${where === "" ? "" : ` in ${where.replace(":", " ")}`}.`, safeHtml`<a class="button" href="${runPath(id)}#replay">Another change</a>`)}
${differencesCard(report)}
<div class="columns">${planSide("As recorded", report.baseline_plan)}${planSide("With the change", report.variant_plan)}</div>
${callsCard(report)}`;
  return { page: { title: `Replay of ${id}`, nav: "runs", body } };
}

/** Parses JSON; any other text is a string, as on the command line. */
function changeValue(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function differencesCard({ differences, variant }: ReplayReport): HtmlFragment {
  const changed = variant.filter((call) => call.changed).length;
  return cardBlock(
    {
      title: "Differences",
      aside: markLabel(
        differences.length === 0 ? "good" : "warn",
        formatCountOf(differences.length, "difference"),
      ),
    },
    differences.length === 0
      ? emptyState(
          "No differences",
          safeHtml`<p>${formatCountOf(changed, "call was", "calls were")} changed, and every decision and undo would have been the same.</p>`,
        )
      : tableBlock(
          "Differences",
          ["Step", "Tool", "As recorded", "With the change", "Why"],
          differences.map(differenceRow),
        ),
  );
}

function differenceRow({ step, tool, baseline, variant }: ReplayDifference) {
  return [
    step === null ? "blocked" : String(step),
    safeHtml`<code>${tool}</code>`,
    safeHtml`${rulingMark(baseline.decision)} ${baseline.undo === null ? null : planMark(baseline.undo)}`,
    safeHtml`${rulingMark(variant.decision)} ${variant.undo === null ? null : planMark(variant.undo)}`,
    bulletList(variant.reasons.length > 0 ? variant.reasons : baseline.reasons),
  ];
}

function planSide(title: string, plan: RollbackPlan): HtmlFragment {
  const count = (kind: string) => plan.actions.filter((action) => action.kind === kind).length;
  return cardBlock(
    {
      title,
      aside: plan.fully_reversible
        ? markLabel("good", "fully reversible")
        : markLabel("bad", "not fully reversible"),
    },
    factList([
      ["Will be undone", String(count("compensate"))],
      ["Cannot be undone", String(count("unrecoverable"))],
      ["Outcome unknown", String(count("unresolved"))],
      ["Has to wait", String(count("defer"))],
    ]),
  );
}

const MAX_CALLS = 200;

function callsCard({ baseline, variant }: ReplayReport): HtmlFragment {
  const rows = variant
    .slice(0, MAX_CALLS)
    .map((call, i) => [
      call.step === null ? "blocked" : String(call.step),
      safeHtml`<code>${call.tool}</code>${call.changed ? safeHtml` ${markLabel("info", "changed")}` : null}`,
      rulingMark(call.recorded.decision),
      rulingMark(baseline[i]?.decision ?? call.recorded.decision),
      rulingMark(call.decision),
      bulletList([...call.reasons, ...call.notes.map((note) => safeHtml`<span class="soft">${note}</span>`)]),
    ]);
  return cardBlock(
    { title: "Every call" },
    tableBlock(
      "Every call",
      ["Step", "Tool", "Recorded", "Replayed", "With the change", "Reasons and notes"],
      rows,
    ),
  );
}
