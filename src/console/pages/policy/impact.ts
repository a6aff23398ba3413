/** Impact page: decision, risk and undo of one hypothetical call. */
import { undoKindText } from "../../../govern/cards/undo-summary.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { capitalizeFirst } from "../../../kernel/text/phrases.ts";
import { previewCallImpact as impactOp, type ProvenImpact } from "../../../operations/simulate/impact.ts";
import { RISK_FACTORS, type RiskFactor } from "../../../rules/policy/checks/default-weights.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, factList, noticeBox, pageHead } from "../../parts/blocks.ts";
import { inputField, textareaField } from "../../parts/forms.ts";
import {
  effectMark,
  formatCountOf,
  type MarkTone,
  markLabel,
  proofMark,
  rulingMark,
} from "../../parts/marks.ts";
import { type RiskLabel, riskLine } from "../../parts/risk.ts";

export const impactRoutes = [getRoute("/impact", impact)];

async function impact(ctx: PageContext): Promise<PageAnswer> {
  const { tool, args, actor } = ctx.query;
  const asked = tool !== undefined;
  let result: HtmlFragment = emptyHtml;
  let status = 200;
  if (asked) {
    const query = {
      tool,
      ...(args === undefined ? {} : { args }),
      ...(actor === undefined ? {} : { actor }),
    };
    try {
      result = resultCard(await ctx.call(impactOp, query));
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "invalid") throw error;
      status = 400;
      result = noticeBox("bad", safeHtml`<p>${capitalizeFirst(error.message)}.</p>`);
    }
  }
  const body = safeHtml`${pageHead("Impact", "Preview the decision, risk and undo of a call. Nothing is executed or recorded.")}
<div class="columns lean">${cardBlock({ title: "The call" }, questionForm(ctx))}<div>${asked ? result : unasked()}</div></div>`;
  return { page: { title: "Impact", nav: "impact", body }, status };
}

function questionForm(ctx: PageContext): HtmlFragment {
  const tools = [...new Set(ctx.app.core.rules().manifests.all.map(({ tool }) => tool))].sort();
  return safeHtml`<form method="get" action="/console/impact" class="form">
${inputField({ label: "Tool", name: "tool", value: ctx.query["tool"] ?? "", required: true, list: "tools" })}
<datalist id="tools">${tools.map((tool) => safeHtml`<option value="${tool}"></option>`)}</datalist>
${textareaField({ label: "Arguments (JSON)", name: "args", value: ctx.query["args"] ?? "{}", rows: 6, mono: true })}
${inputField({ label: "Actor", name: "actor", value: ctx.query["actor"] ?? "", placeholder: ctx.principal.name, hint: "The agent's name, if rules or limits depend on it." })}
<button type="submit" class="primary">Preview</button></form>`;
}

function unasked(): HtmlFragment {
  return cardBlock(
    { title: "Result" },
    emptyState(
      "No call to preview yet",
      safeHtml`<p>Enter a tool and its arguments. You will see the decision, the risk, who has to approve, and whether the call can be undone.</p><p class="soft">The preview uses the current manifests and policy. It does not know a run's scope or the limits used so far.</p>`,
    ),
  );
}

const OUTLOOK: Record<string, MarkTone> = {
  "nothing to undo": "quiet",
  "can be undone": "good",
  "cannot be undone": "bad",
  unknown: "warn",
};

const FACTOR_LABELS: Record<RiskFactor, string> = {
  effect: "effect",
  blast_radius: "blast radius",
  data_class: "data class",
  environment: "environment",
};

/** Labels that added risk points, highest first. */
function heaviest(factors: Record<RiskFactor, number>): { label: string; points: number }[] {
  return RISK_FACTORS.filter((factor) => factors[factor] > 0)
    .map((factor) => ({ label: FACTOR_LABELS[factor], points: factors[factor] }))
    .sort((a, b) => b.points - a.points);
}

const riskLabels = ({ risk, labels }: ProvenImpact): RiskLabel[] =>
  (["effect", "blast_radius", "data_class"] as const).map((factor) => ({
    factor,
    label: labels[factor],
    points: risk.factors[factor],
  }));

function resultCard(report: ProvenImpact): HtmlFragment {
  const { rollback, risk, approval, labels } = report;
  const parts = heaviest(risk.factors).map(({ label, points }) => `${label} ${points}`);
  return cardBlock(
    { title: report.tool, aside: rulingMark(report.decision), class: "impact" },
    report.reasons.length === 0
      ? safeHtml`<p class="calm">No objections.</p>`
      : bulletList(report.reasons, "reasons"),
    report.hints.length === 0 ? emptyHtml : safeHtml`<p><b>Alternatives</b></p>${bulletList(report.hints)}`,
    report.warnings.length === 0 ? emptyHtml : noticeBox("warn", bulletList(report.warnings)),
    factList([
      [
        "Risk",
        safeHtml`${riskLine(risk.score, riskLabels(report))}<span class="soft">${parts.join(", ") || "no label adds risk"}</span>`,
      ],
      ["Effect", effectMark(labels.effect)],
      ["Data class", labels.data_class ?? safeHtml`<span class="soft">not set</span>`],
      ["Blast radius", labels.blast_radius ?? safeHtml`<span class="soft">not set</span>`],
      ["Owner", report.owner ?? safeHtml`<span class="soft">not set</span>`],
      ["Decided by", report.by.join(", ") || safeHtml`<span class="soft">no rule</span>`],
      report.requires.length === 0
        ? null
        : ["Must run first", safeHtml`${report.requires.map((one) => safeHtml`<code>${one}</code> `)}`],
      approval === null
        ? null
        : [
            "Who approves",
            approval.groups.length === 0
              ? formatCountOf(approval.quorum, "approver")
              : `${approval.quorum} of ${approval.groups.join(" or ")}`,
          ],
    ]),
    safeHtml`<h3>Undo</h3><p>${markLabel(OUTLOOK[rollback.outlook] ?? "quiet", rollback.outlook)} ${
      rollback.undo_tool === null
        ? null
        : safeHtml`<code>${rollback.undo_tool}</code> ${undoKindText(rollback.kind)}${rollback.verified ? ", then its effect is read back" : ""}${rollback.needs_approval ? "; it needs its own approval" : ""}. ${rollback.proof === null ? null : proofMark(rollback.proof)}`
    }</p>${rollback.residue.length === 0 ? null : safeHtml`<p class="soft">Side effects that remain:</p>${bulletList(rollback.residue, "residue")}`}`,
  );
}
