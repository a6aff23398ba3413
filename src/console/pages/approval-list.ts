/** What waits, one line a request: who wants what, how bad it could be, how long there is. */
import { requestGroups } from "../../model/approval.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, joined } from "../html.ts";
import { button, form, input } from "../parts/forms.ts";
import { plural, riskTone } from "../parts/marks.ts";
import { span } from "../parts/time.ts";
import { type ApprovalLine, SORTS, type Sort } from "./approval-data.ts";

const APPROVALS = "/console/approvals";

export function sortLinks(at: Sort): Html {
  const links = (Object.keys(SORTS) as Sort[]).map(
    (sort) =>
      html`<a href="${APPROVALS}?sort=${sort}"${sort === at ? html` aria-current="true"` : null}>${SORTS[sort][0]}</a>`,
  );
  return html`<p class="sorts"><span class="soft">Sorted by</span> ${joined(links, " ")}</p>`;
}

/** What has the same actor, tool and rule under one head, with the buttons that decide all of it. */
export function groupedList(ctx: Ctx, lines: readonly ApprovalLine[], at: string | null, sort: Sort): Html {
  const byId = new Map(lines.map((line) => [line.approval.id, line]));
  const groups = requestGroups(lines.map(({ approval }) => approval)).map(({ requests, ...alike }) => {
    const own = requests.map(({ id }) => byId.get(id)!);
    const list = requestList(ctx, own, at, sort);
    if (own.length < 2) return list;
    const open = at !== null && requests.some(({ id }) => id === at);
    const rule = alike.rule === null ? null : html`, rule <code>${alike.rule}</code>`;
    return html`<section class="group"><p class="group-what">${plural(own.length, "request")} by ${alike.actor}: <code>${alike.tool}</code>${rule}</p><p class="request-facts">${dangerMarks(worstOf(own))}</p>${firstOf(own)}${groupForm(ctx, own)}<details${open ? html` open` : null}><summary>One by one</summary>${list}</details></section>`;
  });
  return html`${groups}`;
}

type Danger = Pick<ApprovalLine, "score" | "irreversible">;

/** The marks of a request or of a group. A row that shows a request anywhere shows them. */
function dangerMarks({ score, irreversible }: Danger): Html {
  return html`${score === null ? null : html`<span class="tone ${riskTone(score)}">risk ${score}</span>`}${irreversible ? html`<span class="tone bad">irreversible</span>` : null}`;
}

/** The highest score of a group; it is irreversible where one of its calls is. */
function worstOf(lines: readonly Danger[]): Danger {
  const scores = lines.flatMap(({ score }) => (score === null ? [] : [score]));
  return {
    score: scores.length === 0 ? null : scores.reduce((a, b) => Math.max(a, b)),
    irreversible: lines.some(({ irreversible }) => irreversible),
  };
}

/** So that all are not decided without a look at one. */
function firstOf([line]: readonly ApprovalLine[]): Html {
  const { approval, parts } = line!;
  return html`<p class="soft">The first: <a href="${APPROVALS}/${approval.id}">${sentenceHtml(parts)}</a>, because “${approval.reason}”</p>`;
}

/** Each request goes with the hash of its own card; those that are decided by themselves stay out. */
function groupForm(ctx: Ctx, lines: readonly ApprovalLine[]): Html | null {
  const together = lines.filter(({ card_hash }) => card_hash !== null);
  if (together.length < 2) return null;
  const ids = together.map(
    ({ approval, card_hash }) => html`<input type="hidden" name="id" value="${approval.id} ${card_hash!}">`,
  );
  return form(
    ctx,
    { action: APPROVALS, class: "decide" },
    ids,
    input({
      label: "Note for the group",
      name: "note",
      quiet: true,
      placeholder: "One note for all",
      maxlength: 4_000,
    }),
    button(`Approve all ${together.length}`, "good", html` name="decision" value="approve"`),
    button(`Deny all ${together.length}`, "danger", html` name="decision" value="deny"`),
  );
}

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
    input({
      label: "Note for all",
      name: "note",
      quiet: true,
      placeholder: "One note for all chosen",
      maxlength: 4_000,
    }),
    button("Approve chosen", "good", html` name="decision" value="approve"`),
    button("Deny chosen", "danger", html` name="decision" value="deny"`),
  )}<p class="soft">Irreversible calls are decided one by one.</p></details>`;
}
