/** The Impact page: what one call would be answered now, what it would touch, and how it could be taken back. */

import { impact as impactOp, type ProvenImpact } from "../../app/operations/impact.ts";
import { SvcError } from "../../kernel/errors.ts";
import { sentence } from "../../kernel/words.ts";
import { RISK_FACTORS, type RiskFactor } from "../../model/policy/risk-weights.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, empty, factList, notice, pageHead } from "../parts/blocks.ts";
import { meter } from "../parts/charts.ts";
import { input, textarea } from "../parts/forms.ts";
import { effectMark, mark, plural, proofMark, riskTone, rulingMark, type Tone } from "../parts/marks.ts";

export const impactRoutes = [get("/impact", impact)];

async function impact(ctx: Ctx): Promise<Answer> {
  const { tool, args, actor } = ctx.query;
  const asked = tool !== undefined;
  let result: Html = nothing;
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
      result = notice("bad", html`<p>${sentence(error.message)}.</p>`);
    }
  }
  const body = html`${pageHead("Impact", "What would a call be answered, and what would it mean? Nothing is asked, done or recorded.")}
<div class="columns lean">${card({ title: "The call" }, questionForm(ctx))}<div>${asked ? result : unasked()}</div></div>`;
  return { page: { title: "Impact", nav: "impact", body }, status };
}

function questionForm(ctx: Ctx): Html {
  const tools = [...new Set(ctx.app.core.rules().manifests.all.map(({ tool }) => tool))].sort();
  return html`<form method="get" action="/console/impact" class="form">
${input({ label: "Tool", name: "tool", value: ctx.query["tool"] ?? "", required: true, list: "tools" })}
<datalist id="tools">${tools.map((tool) => html`<option value="${tool}"></option>`)}</datalist>
${textarea({ label: "Arguments (JSON)", name: "args", value: ctx.query["args"] ?? "{}", rows: 6, mono: true })}
${input({ label: "Actor", name: "actor", value: ctx.query["actor"] ?? "", placeholder: ctx.principal.name, hint: "The agent's name, where rules or limits go by it." })}
<button type="submit" class="primary">Preview</button></form>`;
}

function unasked(): Html {
  return card(
    { title: "The answer" },
    empty(
      "Ask about a call",
      html`<p>You will see the decision with its reasons, the risk and what adds to it, who would have to approve, and whether the call could be undone.</p><p class="soft">Manifests and policy are read as they are now. A run's scope and limits used so far are not known here.</p>`,
    ),
  );
}

const OUTLOOK: Record<string, Tone> = {
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

/** The labels that added points, the heaviest first. */
function heaviest(factors: Record<RiskFactor, number>): { label: string; points: number }[] {
  return RISK_FACTORS.filter((factor) => factors[factor] > 0)
    .map((factor) => ({ label: FACTOR_LABELS[factor], points: factors[factor] }))
    .sort((a, b) => b.points - a.points);
}

function resultCard(report: ProvenImpact): Html {
  const { rollback, risk, approval, labels } = report;
  const parts = heaviest(risk.factors).map(({ label, points }) => `${label} ${points}`);
  return card(
    { title: report.tool, aside: rulingMark(report.decision), class: "impact" },
    report.reasons.length === 0
      ? html`<p class="calm">Nothing stands against it.</p>`
      : bullets(report.reasons, "reasons"),
    report.hints.length === 0 ? nothing : html`<p><b>Instead</b></p>${bullets(report.hints)}`,
    report.warnings.length === 0 ? nothing : notice("warn", bullets(report.warnings)),
    factList([
      [
        "Risk",
        html`<span class="risk"><b>${risk.score}</b>${meter(risk.score, 100, riskTone(risk.score))}</span><span class="soft">${parts.join(", ") || "no label adds to it"}</span>`,
      ],
      ["Effect", effectMark(labels.effect)],
      ["Data class", labels.data_class ?? html`<span class="soft">not said</span>`],
      ["Blast radius", labels.blast_radius ?? html`<span class="soft">not said</span>`],
      ["Owner", report.owner ?? html`<span class="soft">nobody named</span>`],
      ["Decided by", report.by.join(", ") || html`<span class="soft">nothing in particular</span>`],
      report.requires.length === 0
        ? null
        : ["Must run first", html`${report.requires.map((one) => html`<code>${one}</code> `)}`],
      approval === null
        ? null
        : [
            "Who approves",
            approval.groups.length === 0
              ? plural(approval.quorum, "approver")
              : `${approval.quorum} of ${approval.groups.join(" or ")}`,
          ],
    ]),
    html`<h3>Undo</h3><p>${mark(OUTLOOK[rollback.outlook] ?? "quiet", rollback.outlook)} ${
      rollback.undo_tool === null
        ? null
        : html`<code>${rollback.undo_tool}</code> ${rollback.kind === "inverse" ? "restores the exact state" : "makes amends"}${rollback.verified ? ", and is read back" : ""}${rollback.needs_approval ? "; it needs an approval of its own" : ""}. ${rollback.proof === null ? null : proofMark(rollback.proof)}`
    }</p>${rollback.residue.length === 0 ? null : html`<p class="soft">What stays all the same:</p>${bullets(rollback.residue, "residue")}`}`,
  );
}
