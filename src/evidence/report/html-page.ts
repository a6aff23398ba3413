/** HTML page shared by all reports: one file without scripts or external resources, for reading and printing. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { html, raw } from "hono/html";
import { spellOutInvisible } from "./external-text.ts";

export type HtmlMarkup = ReturnType<typeof html>;

const CSS = `
:root { --ink: #1c2430; --soft: #5b6675; --line: #d9dee6; --wash: #f5f7fa; --accent: #2456a6;
  --ok: #1d7a46; --bad: #b3261e; --warn: #946200; --idle: #7a8594; }
* { box-sizing: border-box; }
html { color-scheme: light; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 4rem; max-width: 62rem; color: var(--ink); background: #fff;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .25rem; letter-spacing: -.01em; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .6rem; padding-bottom: .3rem; border-bottom: 2px solid var(--line); }
p { margin: .4rem 0; }
.sub { color: var(--soft); overflow-wrap: anywhere; }
.note { color: var(--soft); font-size: .87em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
th, td { text-align: left; vertical-align: top; padding: .38rem .6rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; background: var(--wash); }
td { overflow-wrap: anywhere; min-width: 6.5rem; }
td.num, th.num { text-align: right; font-variant-numeric: tabular-nums; min-width: 0; white-space: nowrap; }
td.tight { white-space: nowrap; min-width: 0; }
code { font: .82rem/1.4 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.hash { color: var(--soft); font-size: .68rem; word-break: break-all; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; margin: .5rem 0; font-size: .92rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.6rem, 1fr)); gap: .6rem; margin: 1.1rem 0 0; }
.card { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; background: var(--wash); }
.card b { display: block; font-size: 1.35rem; line-height: 1.25; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .82rem; }
.tag { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .8rem; line-height: 1.45rem;
  white-space: nowrap; border: 1px solid currentColor; }
.ok { color: var(--ok); } .bad { color: var(--bad); } .warn { color: var(--warn); } .idle { color: var(--idle); }
.verdict { border-left: 4px solid currentColor; padding: .35rem .9rem; background: var(--wash); margin: 1rem 0; }
svg { display: block; max-width: 100%; height: auto; }
svg text { font: 11px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--soft); }
svg .axis { stroke: var(--line); } svg .ink { fill: var(--ink); }
svg .f-ok { fill: #3f9d6b; } svg .f-bad { fill: #cf5a50; } svg .f-warn { fill: #d39a2d; } svg .f-idle { fill: #9aa5b4; }
svg .f-main { fill: #4d7cc3; } svg .f-gap { fill: #fff; }
@page { size: A4; margin: 16mm 14mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; } tr, .card, svg { break-inside: avoid; } thead { display: table-header-group; }
  table { font-size: 8pt; } th, td { padding: .22rem .35rem; } td { min-width: 5rem; } .tag { font-size: 7.5pt; }
  code { font-size: 7.5pt; } .hash { font-size: 6.5pt; }
  .scroll { overflow: visible; } .tag, .verdict, th, .card { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;

/** Forbids loading or running anything, wherever the file is opened. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/** The page in pieces, so that a long report need not be rendered at once. */
export function* pageParts(title: string, body: Iterable<HtmlMarkup>): Generator<string> {
  yield finished(html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<meta name="referrer" content="no-referrer">
<title>${spellOutInvisible(title)}</title>
<style>${raw(CSS)}</style>
</head>
<body>
`);
  for (const part of body) yield finished(part);
  yield "\n</body>\n</html>\n";
}

/** Report markup is synchronous, so it is text by now. */
function finished(markup: HtmlMarkup): string {
  if (markup instanceof Promise) throw new TypeError("a report holds an unfinished part");
  return markup.toString();
}

/** Yields the same pieces with pauses for other work. */
export async function* pacedParts(parts: Iterable<string>): AsyncGenerator<string> {
  for (const part of parts) {
    yield part;
    await nextTurn();
  }
}

/** External text within a sentence. */
export function foreignText(value: string | null | undefined, none = "–"): HtmlMarkup {
  return value === null || value === undefined ? html`${none}` : html`${spellOutInvisible(value)}`;
}

/** External names and ids. */
export function codeMarkup(value: string | null | undefined): HtmlMarkup {
  return value === null || value === undefined ? html`–` : html`<code>${spellOutInvisible(value)}</code>`;
}

type Tone = "ok" | "bad" | "warn" | "idle";

/** Color of a status, an event or a decision. Unlisted values are neutral. */
const TONES: Readonly<Record<string, Tone>> = {
  succeeded: "ok",
  compensated: "ok",
  verified: "ok",
  approved: "ok",
  failed: "bad",
  blocked: "bad",
  denied: "bad",
  compensation_failed: "bad",
  verification_failed: "bad",
  effect_missing: "bad",
  uncertain: "warn",
  would_block: "warn",
  intended: "warn",
  compensating: "warn",
  unverified: "warn",
  approval_expired: "warn",
  approval_escalated: "warn",
  halted: "warn",
};

export function toneOf(word: string): Tone {
  return Object.hasOwn(TONES, word) ? TONES[word]! : "idle";
}

export function statusTag(word: string): HtmlMarkup {
  return html`<span class="tag ${toneOf(word)}">${spellOutInvisible(word)}</span>`;
}

export function factsMarkup(rows: readonly (readonly [name: string, value: HtmlMarkup])[]): HtmlMarkup {
  return html`<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;
}

export interface TableColumn {
  name: string;
  kind?: "num" | "tight";
}

const ROWS_AT_ONCE = 100;

/** A table in pieces of several rows each, or a sentence if there are no rows. */
export function* tableParts(
  columns: readonly TableColumn[],
  rows: Iterable<readonly HtmlMarkup[]>,
  none: string,
): Generator<HtmlMarkup> {
  const cell = (value: HtmlMarkup, i: number) => html`<td class="${columns[i]!.kind ?? ""}">${value}</td>`;
  const set = (some: readonly (readonly HtmlMarkup[])[]) =>
    html`${some.map((row) => html`<tr>${row.map(cell)}</tr>\n`)}`;
  let isEmpty = true;
  let waiting: (readonly HtmlMarkup[])[] = [];
  for (const row of rows) {
    if (isEmpty) {
      yield html`<div class="scroll"><table>
<thead><tr>${columns.map(({ name, kind }) => html`<th class="${kind ?? ""}">${name}</th>`)}</tr></thead>
<tbody>
`;
    }
    isEmpty = false;
    waiting.push(row);
    if (waiting.length < ROWS_AT_ONCE) continue;
    yield set(waiting);
    waiting = [];
  }
  yield isEmpty ? html`<p class="note">${none}</p>` : html`${set(waiting)}</tbody></table></div>`;
}
