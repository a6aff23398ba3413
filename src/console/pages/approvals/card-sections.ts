/** Sections of a card: its values, why the call needs approval, its risk, how to undo it, and the history. */
import type { ApprovalDoc } from "../../../govern/approvals/approval.ts";
import { UNDECLARED_LABEL } from "../../../govern/cards/explain-risk.ts";
import type { CardContent, CardContext } from "../../../govern/cards/types.ts";
import { NO_UNDO_TEXT } from "../../../govern/cards/undo-summary.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml } from "../../html.ts";
import { bulletList, factList } from "../../parts/blocks.ts";
import { formatCountOf } from "../../parts/marks.ts";
import { riskLine } from "../../parts/risk.ts";
import { formatTime } from "../../parts/time.ts";
import { cardValues } from "./card-fields.ts";

/** Card of a call, alone or in a plan. */
export type JudgedCall = CardContent &
  Pick<CardContext, "proof" | "closes"> &
  Partial<Pick<ApprovalDoc, "kind">>;

/** `key` differs for every card and for every version of a card. */
export function cardSections(card: JudgedCall, key: string, around: HtmlFragment = emptyHtml): HtmlFragment {
  return safeHtml`${card.irreversible ? safeHtml`<p class="irreversible">${NO_UNDO_TEXT}</p>` : null}
${cardValues(card, key)}
${card.note === null ? null : safeHtml`<p class="card-note">${card.note}</p>`}
<blockquote class="reason"><p>${card.reason}</p><footer>${card.kind === "compensation" ? "the step to undo" : "the agent's reason"}</footer>${card.run_reason === null ? null : safeHtml`<p>${card.run_reason}</p><footer>the run's reason</footer>`}</blockquote>
<div class="approval-grid">${whyAsked(card)}
${riskBlock(card)}${wayBack(card)}${around}</div>`;
}

/** Empty for a call of a plan that needs no decision. */
function whyAsked({ causes, rule }: JudgedCall): HtmlFragment {
  if (causes.length === 0 && rule === null) return emptyHtml;
  return safeHtml`<section><h3>Why approval is required</h3>${bulletList(causes)}${rule === null ? null : safeHtml`<p class="soft">rule <code>${rule.id}</code></p>`}</section>`;
}

function riskBlock({ risk }: JudgedCall): HtmlFragment {
  if (risk === null) return emptyHtml;
  const labels = risk.factors.map((one) => ({
    ...one,
    label: one.label === UNDECLARED_LABEL ? null : one.label,
  }));
  return safeHtml`<section><h3>Risk</h3>${riskLine(risk.score, labels)}<p class="soft">${risk.text}</p></section>`;
}

function wayBack({ way_back, proof, closes, kind }: JudgedCall): HtmlFragment {
  return safeHtml`<section><h3>${kind === "compensation" ? "What it does" : "How to undo it"}</h3><p>${way_back.text}</p>${
    way_back.residue.length === 0
      ? null
      : safeHtml`<p class="soft">What cannot be undone:</p>${bulletList(way_back.residue, "residue")}`
  }${proof === null ? null : safeHtml`<p class="soft">This undo: ${proof}</p>`}${closes === null ? null : safeHtml`<p class="soft">${closes}</p>`}</section>`;
}

const NOT_SIGNED = safeHtml`<p class="soft">A signature does not cover the history, times and proofs.</p>`;

export function historySection(
  { so_far, like, given = [] }: Pick<CardContext, "so_far" | "like" | "given">,
  signed: boolean,
): HtmlFragment {
  const last = so_far.last.map(
    ({ step, tool, status }) => safeHtml`step ${step} <code>${tool}</code> ${status}`,
  );
  return safeHtml`<section><h3>History</h3>${signed ? NOT_SIGNED : null}${factList([
    [
      "In this run",
      so_far.calls === 0
        ? "no calls yet"
        : safeHtml`${formatCountOf(so_far.calls, "call")}: ${joinHtml(last, "; ")}`,
    ],
    given.length === 0
      ? null
      : [
          "Given by people",
          joinHtml(
            given.map(
              ({ at_ms, chars }) => safeHtml`${formatCountOf(chars, "character")} ${formatTime(at_ms)}`,
            ),
            "; ",
          ),
        ],
    ["Similar requests", `${like.approved} approved, ${like.denied} denied`],
  ])}</section>`;
}

export function sentenceHtml(parts: CardContent["parts"]): HtmlFragment {
  return safeHtml`${parts.map(({ text, value }) => (value ? safeHtml`<b class="value">${text}</b>` : text))}`;
}
