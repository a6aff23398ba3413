/** One request as a card that can be judged on a phone: what, with which values, why, how bad, how it is undone. */
import type { LoadedCard } from "../../app/operations/approvals/cards.ts";
import { breakGlass } from "../../app/operations/approvals.ts";
import { isLargeValue } from "../../kernel/large-values.ts";
import { visibleJson } from "../../kernel/visible.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../../model/approval.ts";
import type { CardSurroundings, JudgedCard } from "../../model/card/types.ts";
import { NO_WAY_BACK } from "../../model/card/way-back.ts";
import { scanJson } from "../../model/detect/json.ts";
import { findMasks } from "../../model/mask.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined, nothing } from "../html.ts";
import { bullets, factList } from "../parts/blocks.ts";
import { meter } from "../parts/charts.ts";
import { button, decision, disclosed, form, input, secondGesture, textarea } from "../parts/forms.ts";
import { copyButton, runLink } from "../parts/ids.ts";
import { approvalMark, mark, plural, riskTone } from "../parts/marks.ts";
import { ago } from "../parts/time.ts";
import type { ShownRequest } from "./approval-data.ts";
import { sentenceHtml } from "./approval-list.ts";
import { cardValues } from "./card-fields.ts";

export function approvalCard(ctx: Ctx, { approval, card, votes }: ShownRequest, alike: Html): Html {
  const now = ctx.app.core.env.now();
  const open = OPEN_APPROVAL.has(approval.status);
  // Another id once it is decided: whoever still types into the open one is told.
  const id = open ? approval.id : `${approval.id}-ended`;
  return html`<article class="approval" id="${id}" tabindex="-1" aria-labelledby="${id}-what">
<header class="approval-head">
<div class="approval-what"><h2 id="${id}-what">${card === null ? html`Call <code>${approval.tool}</code>` : sentenceHtml(card.parts)}</h2>
<p class="approval-who"><b>${approval.actor}</b> asks in ${runLink(approval.run_id)}, ${ago(approval.requested_ms, now)}, with <code>${approval.tool}</code></p></div>
<div class="approval-state">${approvalMark(approval.status)}<span class="soft">${open ? html`expires ${ago(approval.expires_ms, now)}` : null}</span></div>
</header>
${card === null ? namesOnly(approval) : judgedParts(card, card.card_hash ?? id, before(card))}
${whoDecides(approval)}
${open ? decisions(ctx, approval, card, votes, alike) : null}
<p class="approval-id"><code>${approval.id}</code>${copyButton(approval.id, "the request's id")}</p>
</article>`;
}

function namesOnly(approval: ApprovalDoc): Html {
  return html`<blockquote class="reason"><p>${approval.reason}</p><footer>the agent's reason</footer></blockquote>
<section class="fields"><h3>Arguments</h3><p class="chips">${approval.arg_names.map((name) => html`<code class="chip">${name}</code> `)}</p><p class="soft">Their values are for those who may decide.</p></section>`;
}

/** A call as it is judged, alone or in a plan. */
type Judged = JudgedCard & Pick<CardSurroundings, "proof" | "closes"> & Partial<Pick<LoadedCard, "kind">>;

/** `key` is another one for every card, and for a card that has changed. */
export function judgedParts(card: Judged, key: string, around: Html = nothing): Html {
  return html`${card.irreversible ? html`<p class="irreversible">${NO_WAY_BACK}</p>` : null}
${cardValues(card, key)}
${card.note === null ? null : html`<p class="card-note">${card.note}</p>`}
<blockquote class="reason"><p>${card.reason}</p><footer>${card.kind === "compensation" ? "what it takes back" : "the agent's reason"}</footer>${card.run_reason === null ? null : html`<p>${card.run_reason}</p><footer>the run's reason</footer>`}</blockquote>
<div class="approval-grid">${whyAsked(card)}
${riskBlock(card)}${wayBack(card)}${around}</div>`;
}

/** Nothing for a call in a plan that needs no decision. */
function whyAsked({ causes, rule }: Judged): Html {
  if (causes.length === 0 && rule === null) return nothing;
  return html`<section><h3>Why a person is asked</h3>${bullets(causes)}${rule === null ? null : html`<p class="soft">rule <code>${rule.id}</code></p>`}</section>`;
}

function riskBlock({ risk }: Judged): Html {
  if (risk === null) return nothing;
  return html`<section><h3>Risk</h3><p class="risk"><b>${risk.score}</b>${meter(risk.score, 100, riskTone(risk.score))}</p><p class="soft">${risk.text}</p></section>`;
}

function wayBack({ way_back, proof, closes, kind }: Judged): Html {
  return html`<section><h3>${kind === "compensation" ? "What it does" : "If it goes wrong"}</h3><p>${way_back.text}</p>${
    way_back.residue.length === 0
      ? null
      : html`<p class="soft">What cannot be undone:</p>${bullets(way_back.residue, "residue")}`
  }${proof === null ? null : html`<p class="soft">This undo: ${proof}</p>`}${closes === null ? null : html`<p class="soft">${closes}</p>`}</section>`;
}

function before({ so_far, like }: LoadedCard): Html {
  const last = so_far.last.map(({ step, tool, status }) => html`step ${step} <code>${tool}</code> ${status}`);
  return html`<section><h3>Before this</h3>${factList([
    [
      "In this run",
      so_far.calls === 0 ? "no call yet" : html`${plural(so_far.calls, "call")}: ${joined(last, "; ")}`,
    ],
    ["Like requests", `${like.approved} approved, ${like.denied} denied`],
  ])}</section>`;
}

function whoDecides({ approvers, votes }: ApprovalDoc): Html {
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
  return html`<p class="voters">${wanted ? html`Needs ${needed}. ` : null}${votes.length === 0 ? null : html`So far: ${joined(cast, "; ")}.`}</p>`;
}

/** Whoever may not decide is told who may, and gets no button that would only be refused. */
function decisions(
  ctx: Ctx,
  approval: ApprovalDoc,
  card: LoadedCard | null,
  votes: boolean,
  alike: Html,
): Html {
  const own = approval.actor === ctx.principal.name && ctx.app.core.rules().policy.approvals.four_eyes;
  const { groups } = approval.approvers;
  const who = groups.length === 0 ? "Whoever has the role approver" : `Approvers in ${groups.join(" or ")}`;
  const shut = html`<p class="who-may">${own ? "It is your own request: somebody else decides it. " : null}${who} and those they lent their authority to may decide this request.</p>`;
  const forms =
    votes && card !== null
      ? html`${decisionForm(ctx, approval, card)}${alike}${offerForm(ctx, approval, card)}`
      : shut;
  return html`${forms}${ctx.may(breakGlass) && !own ? glassForm(ctx, approval) : null}`;
}

const hashField = (card: LoadedCard): Html =>
  html`<input type="hidden" name="card_hash" value="${card.card_hash ?? ""}">`;

function decisionForm(ctx: Ctx, approval: ApprovalDoc, card: LoadedCard): Html {
  return form(
    ctx,
    { action: `/console/approvals/${approval.id}`, class: "decide" },
    hashField(card),
    card.irreversible
      ? secondGesture("I have read the values. Nothing can take this call back.", ".approval")
      : null,
    decision("Approve", "Deny"),
  );
}

function offerForm(ctx: Ctx, approval: ApprovalDoc, card: LoadedCard): Html {
  if (approval.kind !== "call" || card.arguments === null) return nothing;
  // Too long to be edited in a form.
  const isShort = !isLargeValue(card.arguments);
  const masked = isShort ? [...new Set(scanJson(card.arguments, findMasks).map(({ path }) => path))] : [];
  return disclosed(
    "Deny, and offer other arguments",
    form(
      ctx,
      { action: `/console/approvals/${approval.id}/offer` },
      hashField(card),
      textarea({
        label: "Arguments that you would approve",
        name: "args",
        value: isShort ? visibleJson(card.arguments) : "",
        rows: 6,
        mono: true,
        required: true,
        hint: isShort
          ? "JSON. The agent gets them as they are; what is masked must be written out."
          : "JSON. These arguments are too long to be filled in here: write out all that you would approve.",
      }),
      masked.length === 0
        ? null
        : html`<p class="soft">To be written out: ${joined(
            masked.map((path) => html`<code>${path}</code>`),
            ", ",
          )}</p>`,
      card.irreversible
        ? secondGesture("I have written these values. Nothing can take a call with them back.")
        : null,
      input({ label: "Why", name: "note", maxlength: 4_000 }),
      button("Deny and offer", "danger"),
    ),
  );
}

function glassForm(ctx: Ctx, approval: ApprovalDoc): Html {
  return disclosed(
    "Break glass",
    form(
      ctx,
      {
        action: `/console/approvals/${approval.id}/break-glass`,
        confirm: "Approve alone, past groups and quorum. It raises an alert and stands on the ledger.",
        verb: "Break glass",
      },
      input({ label: "Why it cannot wait", name: "reason", required: true, minlength: 10, maxlength: 4_000 }),
      button("Approve alone", "danger"),
    ),
  );
}
