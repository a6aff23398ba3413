/** List of pending requests, one line each: actor, call, risk and time left. */
import { requestGroups } from "../../../govern/approvals/approval.ts";
import { type HtmlFragment, joinHtml, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { formElement, submitButton } from "../../parts/forms.ts";
import { formatCountOf, riskTone } from "../../parts/marks.ts";
import { riskWord } from "../../parts/risk.ts";
import { formatSpan } from "../../parts/time.ts";
import { APPROVAL_SORTS, type ApprovalLine, type ApprovalSort } from "./approval-data.ts";
import { GROUP_PREVIEW, groupTable } from "./approval-group.ts";
import { sentenceHtml } from "./card-sections.ts";

const APPROVALS = "/console/approvals";

export function sortLinks(at: ApprovalSort): HtmlFragment {
  const links = (Object.keys(APPROVAL_SORTS) as ApprovalSort[]).map(
    (sort) =>
      safeHtml`<a href="${APPROVALS}?sort=${sort}"${sort === at ? safeHtml` aria-current="true"` : null}>${APPROVAL_SORTS[sort][0]}</a>`,
  );
  return safeHtml`<p class="sorts"><span class="soft">Sorted by</span> ${joinHtml(links, " ")}</p>`;
}

/** Groups requests by actor, tool and rule. Each group has a table and buttons to decide all of it. */
export function groupedList(
  ctx: PageContext,
  lines: readonly ApprovalLine[],
  at: string | null,
  sort: ApprovalSort,
): HtmlFragment {
  const byId = new Map(lines.map((line) => [line.approval.id, line]));
  const groups = requestGroups(lines.map(({ approval }) => approval)).map(({ requests, ...alike }) => {
    const own = requests.map(({ id }) => byId.get(id)!);
    const list = requestList(ctx, own, at, sort);
    if (own.length < 2) return list;
    const open = at !== null && requests.some(({ id }) => id === at);
    const rule = alike.rule === null ? null : safeHtml`, rule <code>${alike.rule}</code>`;
    return safeHtml`<section class="group"><p class="group-what">${formatCountOf(own.length, "request")} by ${alike.actor}: <code>${alike.tool}</code>${rule}</p>${groupMarks(own)}${groupTable(own, GROUP_PREVIEW)}${groupForm(ctx, own)}<details${open ? safeHtml` open` : null}><summary>One by one</summary>${list}</details></section>`;
  });
  return safeHtml`${groups}`;
}

type Danger = Pick<ApprovalLine, "score" | "irreversible">;

/** Risk and irreversibility of a request, shown wherever the request is listed. */
function dangerMarks({ score, irreversible }: Danger): HtmlFragment {
  return safeHtml`${score === null ? null : safeHtml`<span class="tone ${riskTone(score)}">${riskWord(score)} risk (${score})</span>`}${irreversible ? safeHtml`<span class="tone bad">irreversible</span>` : null}`;
}

/** Risk and irreversibility of a group, from its requests. */
function groupMarks(lines: readonly ApprovalLine[]): HtmlFragment {
  const risk = Math.max(...lines.map(({ score }) => score ?? -1));
  const irreversible = lines.filter((line) => line.irreversible).length;
  if (risk < 0 && irreversible === 0) return safeHtml``;
  const which = irreversible === lines.length ? "irreversible" : `${irreversible} irreversible`;
  return safeHtml`<p class="request-facts">${risk < 0 ? null : safeHtml`<span class="tone ${riskTone(risk)}">${riskWord(risk)} risk up to ${risk}</span>`}${irreversible === 0 ? null : safeHtml`<span class="tone bad">${which}, each decided separately</span>`}</p>`;
}

/** Submits each request with its own card hash. Leaves out requests that need a decision of their own card. */
function groupForm(ctx: PageContext, lines: readonly ApprovalLine[]): HtmlFragment | null {
  const together = lines.filter(({ card_hash }) => card_hash !== null);
  if (together.length < 2) return null;
  return formElement(
    ctx,
    { action: APPROVALS, class: "decide" },
    together.map(idField),
    submitButton(`Approve all ${together.length} …`, "good", safeHtml` name="decision" value="approve"`),
    submitButton(`Deny all ${together.length} …`, "danger", safeHtml` name="decision" value="deny"`),
  );
}

export const idField = ({ approval, card_hash }: ApprovalLine): HtmlFragment =>
  safeHtml`<input type="hidden" name="id" value="${approval.id} ${card_hash!}">`;

export function requestList(
  ctx: PageContext,
  lines: readonly ApprovalLine[],
  at: string | null,
  sort: ApprovalSort,
): HtmlFragment {
  const now = ctx.app.core.env.now();
  const query = sort === "age" ? "" : `?sort=${sort}`;
  const items = lines.map(({ approval, parts, irreversible, score, card_hash }) => {
    const left = formatSpan(Math.max(0, approval.expires_ms - now));
    return safeHtml`<li class="request${approval.id === at ? " at" : ""}">${
      card_hash === null
        ? safeHtml`<span class="pick"></span>`
        : safeHtml`<label class="pick"><input type="checkbox" name="id" value="${approval.id} ${card_hash}" form="bulk"><span class="unseen">Select this request: ${approval.tool} by ${approval.actor}, ${approval.id}</span></label>`
    }<a href="${APPROVALS}/${approval.id}${query}"${approval.id === at ? safeHtml` aria-current="true"` : null}><span class="request-what">${sentenceHtml(parts)}</span>
<span class="request-facts"><span>${approval.actor}</span>${dangerMarks({ score, irreversible })}<span>${left} left</span></span></a></li>`;
  });
  return safeHtml`<ol class="requests">${items}</ol>`;
}

/** Form that decides the selected requests, each by its own card. The checkboxes are in the list. */
export function bulkBar(ctx: PageContext, lines: readonly ApprovalLine[]): HtmlFragment {
  const count = lines.filter(({ card_hash }) => card_hash !== null).length;
  if (count < 2) return safeHtml``;
  return safeHtml`<details class="bulk disclosed"><summary>Decide several of ${formatCountOf(count, "request")}</summary>${formElement(
    ctx,
    { action: APPROVALS, class: "decide", id: "bulk" },
    submitButton("Approve selected …", "good", safeHtml` name="decision" value="approve"`),
    submitButton("Deny selected …", "danger", safeHtml` name="decision" value="deny"`),
  )}<p class="soft">Irreversible calls are decided one by one.</p></details>`;
}
