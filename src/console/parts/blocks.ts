/** The blocks that pages are built of: cards, facts, tables, empty states. */
import { type Html, html, nothing, type Part } from "../html.ts";

interface CardOptions {
  title: string;
  /** An element id, for links and for live regions. */
  id?: string;
  /** Fetched anew when something changes. */
  live?: boolean;
  /** Stands at the right of the title. */
  aside?: Part;
  class?: string;
}

export function card({ title, id, live, aside, class: kind }: CardOptions, ...body: Part[]): Html {
  return html`<section class="card ${kind ?? ""}"${id === undefined ? null : html` id="${id}"`}${live ? html` data-live` : nothing}>
<header class="card-head"><h2>${title}</h2>${aside === undefined ? null : html`<div class="aside">${aside}</div>`}</header>
${body}</section>`;
}

export function pageHead(title: Part, lead?: Part, aside?: Part): Html {
  return html`<header class="page-head"><div><h1>${title}</h1>${lead === undefined ? null : html`<p class="lead">${lead}</p>`}</div>${
    aside === undefined ? null : html`<div class="aside">${aside}</div>`
  }</header>`;
}

/** Nothing here yet, why that is, and what would change it. */
export function empty(title: string, ...body: Part[]): Html {
  return html`<div class="empty"><p class="empty-title">${title}</p>${body}</div>`;
}

export function factList(rows: readonly (readonly [name: string, value: Part] | null)[], kind = ""): Html {
  const items = rows.map((row) =>
    row === null ? nothing : html`<div><dt>${row[0]}</dt><dd>${row[1]}</dd></div>`,
  );
  return html`<dl class="facts ${kind}">${items}</dl>`;
}

/** A table that may be wider than the screen: it scrolls, the page does not. */
/** `kind` is a class, for tables that a phone shows in a shape of their own. */
export function table(
  caption: string,
  heads: readonly string[],
  rows: readonly (readonly Part[])[],
  kind = "",
): Html {
  return html`<div class="table ${kind}" tabindex="0" role="region" aria-label="${caption}"><table><caption class="unseen">${caption}</caption>
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell, i) => html`<td data-label="${heads[i] ?? ""}"><div>${cell}</div></td>`)}</tr>`)}</tbody></table></div>`;
}

export function notice(kind: "ok" | "warn" | "bad" | "info", ...body: Part[]): Html {
  return html`<div class="notice ${kind}" role="${kind === "bad" ? "alert" : "status"}">${body}</div>`;
}

export function bullets(items: readonly Part[], kind = ""): Html {
  return items.length === 0
    ? nothing
    : html`<ul class="list ${kind}">${items.map((item) => html`<li>${item}</li>`)}</ul>`;
}

/** A command that the reader may want to run, with a copy button beside it. */
export function command(text: string): Html {
  return html`<span class="command"><code>${text}</code><button type="button" class="copy js-only" data-copy="${text}" aria-label="Copy the command" title="Copy the command"></button></span>`;
}

/** Older entries, with everything else of the address kept. */
export function pager(
  path: string,
  query: Record<string, string>,
  next_cursor: string | null,
  label = "Older",
): Html {
  if (next_cursor === null && query["cursor"] === undefined) return nothing;
  const { cursor: _, ...rest } = query;
  const first = `${path}?${new URLSearchParams(rest)}`;
  const next = `${path}?${new URLSearchParams({ ...rest, cursor: next_cursor ?? "" })}`;
  return html`<nav class="pager" aria-label="Older and newer">${
    query["cursor"] === undefined ? null : html`<a class="button" href="${first}">Newest</a>`
  }${next_cursor === null ? null : html`<a class="button" href="${next}">${label}</a>`}</nav>`;
}
