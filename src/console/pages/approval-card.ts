/** One request as a card that can be judged on a phone: what, why, how bad, how it would be undone. */
import { breakGlass } from "../../app/operations/approvals.ts";
import type { ApprovalView } from "../../model/approval.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined, nothing } from "../html.ts";
import { bullets } from "../parts/blocks.ts";
import { meter } from "../parts/charts.ts";
import { button, checkbox, disclosed, form, input } from "../parts/forms.ts";
import { copyButton, runLink } from "../parts/ids.ts";
import { approvalMark, effectMark, mark, plural, type Tone } from "../parts/marks.ts";
import { ago } from "../parts/time.ts";
import { heaviest, type Judgeable } from "./approval-data.ts";

export function approvalCard(
  ctx: Ctx,
  judged: Judgeable,
  options: { may_decide: boolean; bulk: boolean; alike: Html },
): Html {
  const { approval } = judged;
  const now = ctx.app.core.env.now();
  return html`<article class="approval" id="${approval.id}" tabindex="-1" aria-labelledby="${approval.id}-tool">
<header class="approval-head">
${options.bulk ? html`<label class="pick"><input type="checkbox" name="id" value="${approval.id}" form="bulk"><span class="unseen">Choose this request</span></label>` : null}
<div class="approval-what"><h2 id="${approval.id}-tool">${approval.kind === "compensation" ? html`Undo of step ${approval.step ?? "?"} with ` : null}<code>${approval.tool}</code></h2>
<p class="approval-who"><b>${approval.actor}</b> asks in ${runLink(approval.run_id)}, ${ago(approval.requested_ms, now)}</p></div>
<div class="approval-state">${approvalMark(approval.status)}<span class="soft">expires ${ago(approval.expires_ms, now)}</span></div>
</header>
<blockquote class="reason"><p>${approval.reason}</p><footer>the agent's reason</footer></blockquote>
<div class="approval-grid">${whyItAsks(judged)}${argumentNames(judged)}${riskBlock(judged)}${undoBlock(approval, judged.manifest)}</div>
${whoDecides(ctx, approval)}
${options.may_decide ? html`${decisionForm(ctx, approval)}${options.alike}` : html`<p class="soft">Deciding needs the approver role.</p>`}
<p class="approval-id"><code>${approval.id}</code>${copyButton(approval.id, "the request's id")}</p>
</article>`;
}

function whyItAsks({ approval, rule_reason }: Judgeable): Html {
  const why =
    approval.kind === "compensation"
      ? html`<p>The manifest says that this undo needs a person.</p>`
      : html`<p>${rule_reason ?? (approval.rule === null ? "The policy's risk threshold or content check asks." : "The policy asks.")}</p>`;
  return html`<section><h3>Why a person is asked</h3>${why}${
    approval.rule === null ? null : html`<p class="soft">rule <code>${approval.rule}</code></p>`
  }</section>`;
}

function argumentNames({ approval, preview }: Judgeable): Html {
  const names =
    approval.arg_names.length === 0
      ? html`<p class="soft">none</p>`
      : html`<p class="chips">${approval.arg_names.map((name) => html`<code class="chip">${name}</code> `)}</p>`;
  return html`<section><h3>Arguments</h3>${
    preview === undefined
      ? html`${names}<p class="soft">Names only: values are not kept.</p>`
      : html`<pre class="preview" tabindex="0" aria-label="The captured arguments">${JSON.stringify(preview, null, 2)}</pre><p class="soft">As captured: secrets and personal data are redacted.</p>`
  }</section>`;
}

export function riskTone(score: number): Tone {
  return score >= 75 ? "bad" : score >= 45 ? "warn" : "good";
}

function riskBlock({ risk, manifest }: Judgeable): Html {
  if (risk === null)
    return html`<section><h3>Effect</h3><p>${effectMark(manifest?.effect ?? null)}</p></section>`;
  const parts = heaviest(risk.factors).map(({ label, points }) => `${label} ${points}`);
  return html`<section><h3>Risk</h3><p class="risk"><b>${risk.score}</b>${meter(risk.score, 100, riskTone(risk.score))}</p>
<p class="soft">${parts.length === 0 ? "no label adds to it" : parts.join(", ")}</p><p>${effectMark(manifest?.effect ?? null)}</p></section>`;
}

function undoBlock(approval: Pick<ApprovalView, "kind">, manifest: Manifest | null): Html {
  const title = html`<h3>If it goes wrong</h3>`;
  if (approval.kind === "compensation")
    return html`<section>${title}<p>This call is itself an undo.</p></section>`;
  if (manifest === null)
    return html`<section>${title}<p>Unknown: no manifest describes this tool.</p></section>`;
  const { compensation, verification, effect } = manifest;
  if (compensation === null)
    return html`<section>${title}<p>${
      effect === "irreversible"
        ? html`<strong>Nothing can take it back.</strong>`
        : "There is nothing to undo."
    }</p></section>`;
  const how = compensation.kind === "inverse" ? "restores the exact state" : "makes amends";
  return html`<section>${title}<p><code>${compensation.tool}</code> ${how}${verification === null ? "" : ", and is read back"}${
    compensation.requires_approval ? "; that needs an approval of its own" : ""
  }.</p>${
    compensation.residue.length === 0
      ? null
      : html`<p class="soft">What stays all the same:</p>${bullets(compensation.residue, "residue")}`
  }</section>`;
}

function whoDecides(ctx: Ctx, { approvers, votes }: ApprovalView): Html {
  const { groups, quorum } = approvers;
  const wanted = quorum > 1 || groups.length > 0;
  if (!wanted && votes.length === 0) return nothing;
  const needed =
    groups.length === 0
      ? plural(quorum, "approval")
      : html`${plural(quorum, "approval")} from ${groups.join(" or ")}`;
  const cast = votes.map(
    (vote) =>
      html`${mark(vote.decision === "approve" ? "good" : "bad", vote.decision === "approve" ? "approved" : "denied")} ${vote.by}${vote.for === null ? "" : ` for ${vote.for}`}${vote.note === null ? "" : `: ${vote.note}`}`,
  );
  const outside = groups.length > 0 && !groups.some((group) => ctx.principal.groups.includes(group));
  return html`<p class="voters">${wanted ? html`Needs ${needed}. ` : null}${votes.length === 0 ? null : html`So far: ${joined(cast, "; ")}.`}${
    outside
      ? html` <span class="soft">You are in none of these groups; it counts only if somebody lent you theirs.</span>`
      : null
  }</p>`;
}

function decisionForm(ctx: Ctx, approval: ApprovalView): Html {
  const path = `/console/approvals/${approval.id}`;
  const decide = form(
    ctx,
    { action: path, class: "decide" },
    input({
      label: "Note",
      name: "note",
      quiet: true,
      placeholder: "Note (kept on the ledger)",
      maxlength: 4_000,
    }),
    button("Approve", "good", html` name="decision" value="approve"`),
    button("Deny", "danger", html` name="decision" value="deny"`),
  );
  if (!ctx.may(breakGlass)) return decide;
  const alone = disclosed(
    "Break glass",
    form(
      ctx,
      {
        action: `${path}/break-glass`,
        confirm: "Approve alone, past groups and quorum. It raises an alert and stands on the ledger.",
        verb: "Break glass",
      },
      input({ label: "Why it cannot wait", name: "reason", required: true, minlength: 10, maxlength: 4_000 }),
      button("Approve alone", "danger"),
    ),
  );
  return html`${decide}${alone}`;
}

/** Decides several at once; the boxes on the cards belong to it. */
export function bulkBar(ctx: Ctx, count: number): Html {
  return html`<div class="bulk">${form(
    ctx,
    { action: "/console/approvals", class: "decide", id: "bulk" },
    html`<span class="bulk-label">${checkbox("all", `All ${count} on this page`)}</span>`,
    input({
      label: "Note for all",
      name: "note",
      quiet: true,
      placeholder: "One note for all chosen",
      maxlength: 4_000,
    }),
    button("Approve chosen", "good", html` name="decision" value="approve"`),
    button("Deny chosen", "danger", html` name="decision" value="deny"`),
  )}</div>`;
}
