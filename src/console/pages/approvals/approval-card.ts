/** Approval request as a card: the call, its values, why it needs approval, its risk, and how to undo it. */
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../../govern/approvals/approval.ts";
import { actorText, requestersOf } from "../../../govern/roles.ts";
import { visibleJson } from "../../../kernel/text/escape-invisible.ts";
import { breakGlass } from "../../../operations/approvals/approvals.ts";
import { scanJson } from "../../../rules/detect/json.ts";
import { findMasks } from "../../../rules/redact/mask.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { noticeBox } from "../../parts/blocks.ts";
import {
  decisionFields,
  foldedBlock,
  foldedForm,
  formElement,
  inputField,
  irreversibleCheckbox,
  submitButton,
  textareaField,
} from "../../parts/forms.ts";
import { copyButton, runLink } from "../../parts/ids.ts";
import { approvalMark, formatCountOf, markLabel } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";
import { signedIfRequired } from "../sign.ts";
import { cardId, type ShownCard, type ShownRequest } from "./approval-data.ts";
import { sentenceHtml } from "./card-sections.ts";

/** A refused offer: the typed fields, and the reason. */
export interface RefusedOffer {
  args: string;
  note: string;
  problem: string;
}

export function approvalCard(
  ctx: PageContext,
  { approval, card, votes }: ShownRequest,
  alike: HtmlFragment,
  refused: RefusedOffer | null,
): HtmlFragment {
  const now = ctx.app.core.env.now();
  const open = OPEN_APPROVAL_STATUSES.has(approval.status);
  const id = cardId(approval);
  const isDeleted = card?.is_deleted === true;
  return safeHtml`<article class="approval" id="${id}" tabindex="-1" aria-labelledby="${id}-what">
<header class="approval-head">
<div class="approval-what"><h2 id="${id}-what">${card === null || isDeleted ? safeHtml`Call <code>${approval.tool}</code>` : sentenceHtml(card.parts)}</h2>
<p class="approval-who"><b>${actorText(approval)}</b> in ${runLink(approval.run_id)}, ${formatAgo(approval.requested_ms, now)}, with <code>${approval.tool}</code></p></div>
<div class="approval-state">${approvalMark(approval.status)}<span class="soft">${open ? safeHtml`expires ${formatAgo(approval.expires_ms, now)}` : null}</span></div>
</header>
${open ? null : whoDecides(approval, open)}
${isDeleted ? safeHtml`<p class="soft">The values were deleted when the request ended.</p>` : null}
${card === null ? namesOnly(approval) : card.sections}
${open ? whoDecides(approval, open) : null}
${open ? decisions(ctx, { approval, card, votes }, alike, refused) : null}
<p class="approval-id"><code>${approval.id}</code>${copyButton(approval.id, "the request's id")}</p>
</article>`;
}

function namesOnly(approval: ApprovalDoc): HtmlFragment {
  return safeHtml`<blockquote class="reason"><p>${approval.reason}</p><footer>the agent's reason</footer></blockquote>
<section class="fields"><h3>Arguments</h3><p class="chips">${approval.arg_names.map((name) => safeHtml`<code class="chip">${name}</code> `)}</p><p class="soft">Only users who can decide this request see the values.</p></section>`;
}

/** On an open request, who has to decide. On a decided one, who did, for a reader who comes too late. */
function whoDecides({ approvers, votes }: ApprovalDoc, open: boolean): HtmlFragment {
  const { groups, quorum } = approvers;
  const wanted = open && (quorum > 1 || groups.length > 0);
  if (!wanted && votes.length === 0) return emptyHtml;
  const needed =
    groups.length === 0
      ? formatCountOf(quorum, "approval")
      : safeHtml`${formatCountOf(quorum, "approval")} from ${groups.join(" or ")}`;
  const cast = votes.map(
    (vote) =>
      safeHtml`${markLabel(vote.decision === "approve" ? "good" : "bad", vote.decision === "approve" ? "approved" : "denied")} by ${vote.by}${vote.for === null ? "" : ` for ${vote.for}`}${vote.note === null ? "" : `: ${vote.note}`}`,
  );
  return safeHtml`<p class="voters">${wanted ? safeHtml`Needs ${needed}. ` : null}${votes.length === 0 ? null : safeHtml`${open ? "So far: " : ""}${joinHtml(cast, "; ")}.`}</p>`;
}

/** Decision forms. A user who is not allowed to decide sees who is, and no button. */
function decisions(
  ctx: PageContext,
  { approval, card, votes }: Pick<ShownRequest, "approval" | "card" | "votes">,
  alike: HtmlFragment,
  refused: RefusedOffer | null,
): HtmlFragment {
  const own =
    requestersOf(approval).includes(ctx.principal.name) && ctx.app.core.rules().policy.approvals.four_eyes;
  const { groups } = approval.approvers;
  const who = groups.length === 0 ? "Users with the approver role" : `Approvers in ${groups.join(" or ")}`;
  const shut = safeHtml`<p class="who-may">${own ? "This is your own request, so someone else has to decide it. " : null}${who}, and their delegates, can decide this request.</p>`;
  const forms =
    votes && card !== null
      ? safeHtml`${decisionForm(ctx, approval, card)}${alike}${offerForm(ctx, approval, card, refused)}`
      : shut;
  return safeHtml`${forms}${ctx.may(breakGlass) && !own ? glassForm(ctx, approval) : null}`;
}

const hashField = (card: ShownCard): HtmlFragment =>
  safeHtml`<input type="hidden" name="card_hash" value="${card.card_hash ?? ""}">`;

function decisionForm(ctx: PageContext, approval: ApprovalDoc, card: ShownCard): HtmlFragment {
  return formElement(
    ctx,
    {
      action: `/console/approvals/${approval.id}`,
      class: "decide",
      ...signedIfRequired(ctx, "approval", approval),
    },
    hashField(card),
    card.irreversible || card.confirm
      ? irreversibleCheckbox(
          `I have read the values.${card.irreversible ? " This call cannot be undone." : ""}`,
          ".approval",
        )
      : null,
    decisionFields("Approve", "Deny"),
  );
}

function offerForm(
  ctx: PageContext,
  approval: ApprovalDoc,
  card: ShownCard,
  refused: RefusedOffer | null,
): HtmlFragment {
  if (approval.kind !== "call" || card.args === null) return emptyHtml;
  // Longer arguments are not filled into the form.
  const args = card.args === "large" ? null : card.args.value;
  const masked = args === null ? [] : [...new Set(scanJson(args, findMasks).map(({ path }) => path))];
  return foldedBlock(
    { summary: "Deny and offer other arguments", open: refused !== null },
    refused === null ? null : noticeBox("bad", safeHtml`Nothing was offered yet: ${refused.problem}`),
    formElement(
      ctx,
      { action: `/console/approvals/${approval.id}/offer`, ...signedIfRequired(ctx, "offer", approval) },
      hashField(card),
      textareaField({
        label: "Arguments that you would approve",
        name: "args",
        value: refused?.args ?? (args === null ? "" : visibleJson(args)),
        rows: 6,
        mono: true,
        required: true,
        hint:
          args !== null
            ? "JSON. The agent receives exactly these arguments, so replace masked values."
            : "JSON. These arguments are too long to prefill: enter all arguments that you would approve.",
      }),
      masked.length === 0
        ? null
        : safeHtml`<p class="soft">Masked values to replace: ${joinHtml(
            masked.map((path) => safeHtml`<code>${path}</code>`),
            ", ",
          )}</p>`,
      card.irreversible || card.confirm
        ? irreversibleCheckbox(
            `I have entered these values.${card.irreversible ? " A call with them cannot be undone." : ""}`,
          )
        : null,
      inputField({ label: "Why", name: "note", value: refused?.note ?? "", maxlength: 4_000 }),
      submitButton("Deny and offer", "danger"),
    ),
  );
}

function glassForm(ctx: PageContext, approval: ApprovalDoc): HtmlFragment {
  return foldedForm(
    "Break glass",
    formElement(
      ctx,
      {
        action: `/console/approvals/${approval.id}/break-glass`,
        ...signedIfRequired(ctx, "break_glass", approval),
        confirm:
          "Approve alone, bypassing groups and quorum. This raises an alert and is recorded in the ledger.",
        verb: "Break glass",
      },
      inputField({
        label: "Why it cannot wait",
        name: "reason",
        required: true,
        minlength: 10,
        maxlength: 4_000,
      }),
      submitButton("Approve alone", "danger"),
    ),
  );
}
