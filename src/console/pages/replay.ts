/** Replaying a captured run with one change: the form on the run's page, and what would have been different. */
import { replay as replayOp } from "../../app/operations/replay.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import type { RollbackPlan } from "../../rollback/plan.ts";
import type { ReplayDifference, ReplayReport } from "../../sandbox/replay.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, empty, factList, pageHead, table } from "../parts/blocks.ts";
import { button, form, input, select } from "../parts/forms.ts";
import { runLink, runPath } from "../parts/ids.ts";
import { mark, planMark, plural, rulingMark } from "../parts/marks.ts";
import type { RunView } from "./run-data.ts";

export const replayRoutes = [post("/runs/:id/replay", replayOp, replay)];

/** Only where calls are captured: there is nothing to replay otherwise. */
export function replayCard(ctx: Ctx, run: RunView): Html {
  if (!ctx.app.settings.capture.enabled || !ctx.may(replayOp)) return nothing;
  const choices = [
    ["", "every call"],
    ...run.steps.slice(0, 200).map(({ step, tool }) => [`step:${step}`, `step ${step}, ${tool}`] as const),
    ...[...new Set(run.steps.map(({ tool }) => tool))].map(
      (tool) => [`tool:${tool}`, `every ${tool}`] as const,
    ),
  ] as const;
  return card(
    { title: "Replay", id: "replay" },
    html`<p class="soft">What would have been decided with another value? The run is played twice in a sandbox; nothing happens for real.</p>`,
    form(
      ctx,
      { action: `${runPath(run.run_id)}/replay` },
      select({ label: "Change in", name: "where", choices }),
      html`<div class="row">${input({ label: "Path", name: "path", required: true, placeholder: "$args.amount" })}${input({ label: "New value (JSON)", name: "value", required: true, placeholder: "900" })}</div>`,
      button("Replay", "primary"),
    ),
  );
}

async function replay(ctx: Ctx): Promise<Answer> {
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
  const body = html`${pageHead("Replay", html`Run ${runLink(id)} with <code>${path}</code> set to <code>${shown}</code>${where === "" ? "" : ` in ${where.replace(":", " ")}`}.`, html`<a class="button" href="${runPath(id)}#replay">Another change</a>`)}
${differencesCard(report)}
<div class="columns">${planSide("As recorded", report.baseline_plan)}${planSide("With the change", report.variant_plan)}</div>
${callsCard(report)}`;
  return { page: { title: `Replay of ${id}`, nav: "runs", body } };
}

/** A plain word is a text, as on the command line. */
function changeValue(text: string): Json {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function differencesCard({ differences, variant }: ReplayReport): Html {
  const changed = variant.filter((call) => call.changed).length;
  return card(
    {
      title: "What would differ",
      aside: mark(differences.length === 0 ? "good" : "warn", plural(differences.length, "difference")),
    },
    differences.length === 0
      ? empty(
          "No decision would differ",
          html`<p>${plural(changed, "call was", "calls were")} changed, and everything would have been decided and undone as it was.</p>`,
        )
      : table(
          "Differences",
          ["Step", "Tool", "As recorded", "With the change", "Why"],
          differences.map(differenceRow),
        ),
  );
}

function differenceRow({ step, tool, baseline, variant }: ReplayDifference) {
  return [
    step === null ? "refused" : String(step),
    html`<code>${tool}</code>`,
    html`${rulingMark(baseline.decision)} ${baseline.undo === null ? null : planMark(baseline.undo)}`,
    html`${rulingMark(variant.decision)} ${variant.undo === null ? null : planMark(variant.undo)}`,
    bullets(variant.reasons.length > 0 ? variant.reasons : baseline.reasons),
  ];
}

function planSide(title: string, plan: RollbackPlan): Html {
  const count = (kind: string) => plan.actions.filter((action) => action.kind === kind).length;
  return card(
    {
      title,
      aside: plan.fully_reversible ? mark("good", "fully reversible") : mark("bad", "not fully reversible"),
    },
    factList([
      ["Will be undone", String(count("compensate"))],
      ["Cannot be undone", String(count("unrecoverable"))],
      ["Outcome unknown", String(count("unresolved"))],
      ["Has to wait", String(count("defer"))],
    ]),
  );
}

const MOST_CALLS = 200;

function callsCard({ baseline, variant }: ReplayReport): Html {
  const rows = variant
    .slice(0, MOST_CALLS)
    .map((call, i) => [
      call.step === null ? "refused" : String(call.step),
      html`<code>${call.tool}</code>${call.changed ? html` ${mark("info", "changed")}` : null}`,
      rulingMark(call.recorded.decision),
      rulingMark(baseline[i]?.decision ?? call.recorded.decision),
      rulingMark(call.decision),
      bullets([...call.reasons, ...call.notes.map((note) => html`<span class="soft">${note}</span>`)]),
    ]);
  return card(
    { title: "Every call" },
    table(
      "Every call",
      ["Step", "Tool", "Recorded", "Replayed", "With the change", "Reasons and notes"],
      rows,
    ),
  );
}
