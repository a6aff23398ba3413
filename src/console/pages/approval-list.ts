/** What waits, one line a request: who wants what, how bad it could be, how long there is. */
import { requestGroups } from "../../model/approval.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined } from "../html.ts";
import { button, form } from "../parts/forms.ts";
import { plural, riskTone } from "../parts/marks.ts";
import { span } from "../parts/time.ts";
import { type ApprovalLine, SORTS, type Sort } from "./approval-data.ts";
import { GROUP_PREVIEW, groupTable } from "./approval-group.ts";

const APPROVALS = "/console/approvals";

export function sortLinks(at: Sort): Html {
  const links = (Object.keys(SORTS) as Sort[]).map(
    (sort) =>
      html`<a href="${APPROVALS}?sort=${sort}"${sort === at ? html` aria-current="true"` : null}>${SORTS[sort][0]}</a>`,
  );
  return html`<p class="sorts"><span class="soft">Sorted by</span> ${joined(links, " ")}</p>`;
}

/** What has the same actor, tool and rule under one head, as a table, with the buttons that lead to a decision. */
export function groupedList(ctx: Ctx, lines: readonly ApprovalLine[], at: string | null, sort: Sort): Html {
  const byId = new Map(lines.map((line) => [line.approval.id, line]));
  const groups = requestGroups(lines.map(({ approval }) => approval)).map(({ requests, ...alike }) => {
    const own = requests.map(({ id }) => byId.get(id)!);
    const list = requestList(ctx, own, at, sort);
    if (own.length < 2) return list;
    const open = at !== null && requests.some(({ id }) => id === at);
    const rule = alike.rule === null ? null : html`, rule <code>${alike.rule}</code>`;
    return html`<section class="group"><p class="group-what">${plural(own.length, "request")} by ${alike.actor}: <code>${alike.tool}</code>${rule}</p>${groupMarks(own)}${groupTable(own, GROUP_PREVIEW)}${groupForm(ctx, own)}<details${open ? html` open` : null}><summary>One by one</summary>${list}</details></section>`;
  });
  return html`${groups}`;
}

type Danger = Pick<ApprovalLine, "score" | "irreversible">;

/** The marks of a request. A row that shows a request anywhere shows them. */
function dangerMarks({ score, irreversible }: Danger): Html {
  return html`${score === null ? null : html`<span class="tone ${riskTone(score)}">risk ${score}</span>`}${irreversible ? html`<span class="tone bad">irreversible</span>` : null}`;
}

/** As the lines of its requests say it. */
function groupMarks(lines: readonly ApprovalLine[]): Html {
  const risk = Math.max(...lines.map(({ score }) => score ?? -1));
  const irreversible = lines.filter((line) => line.irreversible).length;
  if (risk < 0 && irreversible === 0) return html``;
  const which = irreversible === lines.length ? "irreversible" : `${irreversible} irreversible`;
  return html`<p class="request-facts">${risk < 0 ? null : html`<span class="tone ${riskTone(risk)}">risk up to ${risk}</span>`}${irreversible === 0 ? null : html`<span class="tone bad">${which}, each decided by itself</span>`}</p>`;
}

/** Each request goes with the hash of its own card; those that are decided by themselves stay out. */
function groupForm(ctx: Ctx, lines: readonly ApprovalLine[]): Html | null {
  const together = lines.filter(({ card_hash }) => card_hash !== null);
  if (together.length < 2) return null;
  return form(
    ctx,
    { action: APPROVALS, class: "decide" },
    together.map(idField),
    button(`Approve all ${together.length} …`, "good", html` name="decision" value="approve"`),
    button(`Deny all ${together.length} …`, "danger", html` name="decision" value="deny"`),
  );
}

export const idField = ({ approval, card_hash }: ApprovalLine): Html =>
  html`<input type="hidden" name="id" value="${approval.id} ${card_hash!}">`;

export function requestList(ctx: Ctx, lines: readonly ApprovalLine[], at: string | null, sort: Sort): Html {
  const now = ctx.app.core.env.now();
  const query = sort === "age" ? "" : `?sort=${sort}`;
  const items = lines.map(({ approval, parts, irreversible, score, card_hash }) => {
    const left = span(Math.max(0, approval.expires_ms - now));
    return html`<li class="request${approval.id === at ? " at" : ""}">${
      card_hash === null
        ? html`<span class="pick"></span>`
        : html`<label class="pick"><input type="checkbox" name="id" value="${approval.id} ${card_hash}" form="bulk"><span class="unseen">Choose this request</span></label>`
    }<a href="${APPROVALS}/${approval.id}${query}"${approval.id === at ? html` aria-current="true"` : null}><span class="request-what">${sentenceHtml(parts)}</span>
<span class="request-facts"><span>${approval.actor}</span>${dangerMarks({ score, irreversible })}<span>${left} left</span></span></a></li>`;
  });
  return html`<ol class="requests">${items}</ol>`;
}

export function sentenceHtml(parts: ApprovalLine["parts"]): Html {
  return html`${parts.map(({ text, value }) => (value ? html`<b class="value">${text}</b>` : text))}`;
}

/** Decides several at once, each by its own card; the boxes in the list belong to it. */
export function bulkBar(ctx: Ctx, lines: readonly ApprovalLine[]): Html {
  const count = lines.filter(({ card_hash }) => card_hash !== null).length;
  if (count < 2) return html``;
  return html`<details class="bulk disclosed"><summary>Decide several of ${plural(count, "request")}</summary>${form(
    ctx,
    { action: APPROVALS, class: "decide", id: "bulk" },
    button("Approve chosen …", "good", html` name="decision" value="approve"`),
    button("Deny chosen …", "danger", html` name="decision" value="deny"`),
  )}<p class="soft">Irreversible calls are decided one by one.</p></details>`;
}
