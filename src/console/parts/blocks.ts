/** Building blocks of pages: cards, fact lists, tables, notices, empty states. */
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../html.ts";

interface CardOptions {
  title: string;
  /** Element id, for links and live regions. */
  id?: string;
  /** The live script refreshes this card. */
  live?: boolean;
  /** Shown at the right of the title. */
  aside?: TemplateValue;
  class?: string;
}

export function cardBlock(
  { title, id, live, aside, class: kind }: CardOptions,
  ...body: TemplateValue[]
): HtmlFragment {
  return safeHtml`<section class="card ${kind ?? ""}"${id === undefined ? null : safeHtml` id="${id}"`}${live ? safeHtml` data-live` : emptyHtml}>
<header class="card-head"><h2>${title}</h2>${aside === undefined ? null : safeHtml`<div class="aside">${aside}</div>`}</header>
${body}</section>`;
}

export function pageHead(title: TemplateValue, lead?: TemplateValue, aside?: TemplateValue): HtmlFragment {
  return safeHtml`<header class="page-head"><div><h1>${title}</h1>${lead === undefined ? null : safeHtml`<p class="lead">${lead}</p>`}</div>${
    aside === undefined ? null : safeHtml`<div class="aside">${aside}</div>`
  }</header>`;
}

/** Empty state: what the page will show, and the next action. */
export function emptyState(title: string, ...body: TemplateValue[]): HtmlFragment {
  return safeHtml`<div class="empty"><p class="empty-title">${title}</p>${body}</div>`;
}

/** The one next step of an empty state. */
export function nextAction(href: string, label: string): HtmlFragment {
  return safeHtml`<p><a class="button" href="${href}">${label}</a></p>`;
}

export function factList(
  rows: readonly (readonly [name: string, value: TemplateValue] | null)[],
  kind = "",
): HtmlFragment {
  const items = rows.map((row) =>
    row === null ? emptyHtml : safeHtml`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`,
  );
  return safeHtml`<dl class="facts ${kind}">${items}</dl>`;
}

/**
 * Table that scrolls sideways if it is wider than the screen. `kind` is a class for tables that phones lay out
 * differently.
 */
export function tableBlock(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly TemplateValue[])[],
  kind = "",
): HtmlFragment {
  return safeHtml`<div class="table ${kind}" tabindex="0" role="region" aria-label="${caption}"><table><caption class="unseen">${caption}</caption>
<thead><tr>${heads.map((head) => safeHtml`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => safeHtml`<tr>${row.map((cell, i) => safeHtml`<td data-label="${heads[i] ?? ""}"><div>${cell}</div></td>`)}</tr>`)}</tbody></table></div>`;
}

export function noticeBox(kind: "ok" | "warn" | "bad" | "info", ...body: TemplateValue[]): HtmlFragment {
  return safeHtml`<div class="notice ${kind}" role="${kind === "bad" ? "alert" : "status"}">${body}</div>`;
}

export function bulletList(items: readonly TemplateValue[], kind = ""): HtmlFragment {
  return items.length === 0
    ? emptyHtml
    : safeHtml`<ul class="list ${kind}">${items.map((item) => safeHtml`<li>${item}</li>`)}</ul>`;
}

/** Shell command with a copy button. */
export function commandBlock(text: string): HtmlFragment {
  return safeHtml`<span class="command"><code>${text}</code><button type="button" class="copy js-only" data-copy="${text}" aria-label="Copy the command" title="Copy the command"></button></span>`;
}

/** Links to the first and the next page, keeping the other query parameters. */
export function pagerLinks(
  path: string,
  query: Record<string, string>,
  next_cursor: string | null,
  label = "Older",
): HtmlFragment {
  if (next_cursor === null && query["cursor"] === undefined) return emptyHtml;
  const { cursor: _, ...rest } = query;
  const first = `${path}?${new URLSearchParams(rest)}`;
  const next = `${path}?${new URLSearchParams({ ...rest, cursor: next_cursor ?? "" })}`;
  return safeHtml`<nav class="pager" aria-label="Older and newer">${
    query["cursor"] === undefined ? null : safeHtml`<a class="button" href="${first}">Newest</a>`
  }${next_cursor === null ? null : safeHtml`<a class="button" href="${next}">${label}</a>`}</nav>`;
}
