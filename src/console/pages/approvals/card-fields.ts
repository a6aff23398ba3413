/**
 * Renders card values in full, with counts and remarks. Long values can be folded: the page is sent with all of them
 * open, and the script folds them and records which ones the user opened.
 */
import { furtherChanges } from "../../../govern/cards/card-text.ts";
import type { CardChange, CardContent, CardField } from "../../../govern/cards/types.ts";
import type { DiffLine } from "../../../kernel/text/diff.ts";
import { clipText, formatCountOf } from "../../../kernel/text/phrases.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { diffBlock } from "../../parts/diff.ts";

/** A value above either limit is folded. */
const LONG_CHARS = 400;
const LONG_LINES = 10;
/** Length of the excerpt that a folded value shows. */
const START_CHARS = 120;
/** Maximum length of a value on the same line as its name. */
const SHORT_CHARS = 120;

/** `key` identifies this version of the card. The user must open the values of another version again. */
export function cardValues(card: CardContent, key: string): HtmlFragment {
  let n = 0;
  const draw = (field: CardField): HtmlFragment => fieldBlock(field, () => `${key}-${n++}`);
  const changes = furtherChanges(card).map((change) => changeBlock(change, () => `${key}-${n++}`));
  const fields = [...card.fields, ...card.more].map(draw);
  return safeHtml`${changes}
${fields.length === 0 ? null : safeHtml`<section class="fields"><h3>Arguments</h3>${fields}</section>`}`;
}

type NextKey = () => string;

function changeBlock({ label, before, after, lines, remarks }: CardChange, next: NextKey): HtmlFragment {
  const title = `Changes in ${label}`;
  const sides = { path: "", as: "code" } as const;
  const body =
    lines.length > 0
      ? folding({ title, start: startOfDiff(lines), long: isLongDiff(lines), next }, diffBlock(title, lines))
      : safeHtml`${fieldBlock({ ...sides, label: "now", text: before }, next)}${fieldBlock({ ...sides, label: "after", text: after }, next)}`;
  return safeHtml`<section class="fields"><h3>${title}</h3>${remarksBlock(remarks)}${body}</section>`;
}

function fieldBlock(field: CardField, next: NextKey): HtmlFragment {
  const { label, as, text, lines, abridged, size, remarks, uncovered = [] } = field;
  const others = uncovered.map((one) => fieldBlock(one, next));
  const head = safeHtml`<h4>${label}${size === undefined ? null : safeHtml` <span class="size">${size}</span>`}</h4>${remarksBlock(remarks)}`;
  const tone = field.undeclared ? " undeclared" : "";
  if (lines !== undefined) {
    const diff = folding(
      { title: label, start: startOfDiff(lines), long: isLongDiff(lines), next },
      diffBlock(label, lines),
    );
    const whole = abridged ? rawText(`${label}, in full`, text, next) : emptyHtml;
    return safeHtml`<div class="card-field wide${tone}">${head}${diff}${others.length === 0 ? null : safeHtml`<div class="uncovered">${others}</div>`}${whole}</div>`;
  }
  if (as === "code" || text.includes("\n") || text.length > SHORT_CHARS)
    return safeHtml`<div class="card-field wide${tone}">${head}${wholeText(label, field, next)}${others}</div>`;
  return safeHtml`<div class="card-field${tone}${remarks === undefined ? "" : " wide"}">${head}<p>${text}</p></div>`;
}

function wholeText(
  title: string,
  { text, size }: Pick<CardField, "text" | "size">,
  next: NextKey,
): HtmlFragment {
  const long = text.length > LONG_CHARS || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
  const body = safeHtml`<pre class="preview" tabindex="0" aria-label="${title}">${text}</pre>`;
  return folding(
    {
      title,
      start: startOfText(text),
      long,
      next,
      count: size ?? formatCountOf(text.length, "character"),
    },
    body,
  );
}

/** The value behind a diff that leaves out unchanged lines: folded without an excerpt, which would repeat the diff. */
function rawText(title: string, text: string, next: NextKey): HtmlFragment {
  const all = `Show the raw value, ${formatCountOf(text.length, "character")}`;
  const body = safeHtml`<pre class="preview" tabindex="0" aria-label="${title}">${text}</pre>`;
  return folding({ title, start: "", long: true, next, all }, body);
}

const isLongDiff = (lines: readonly DiffLine[]): boolean =>
  lines.length > LONG_LINES || lines.reduce((sum, { text }) => sum + text.length, 0) > LONG_CHARS * 2;

/** Cut between words. */
const startOfText = (text: string): string => clipText(text, START_CHARS).replace(/(?<!\s)\s+\S*…$/, " …");
const startOfDiff = (lines: readonly DiffLine[]): string => clipText(lines[0]?.text ?? "", START_CHARS);

interface Folding {
  title: string;
  /** Excerpt shown while the value is folded. */
  start: string;
  long: boolean;
  next: NextKey;
  count?: string;
  /** Label that opens the value, instead of one with its count. */
  all?: string;
}

const showAll = (count: string | undefined): string =>
  count === undefined ? "Show all" : `Show all ${count}`;

function folding(
  { title, start, long, next, count, all = showAll(count) }: Folding,
  body: HtmlFragment,
): HtmlFragment {
  if (!long) return body;
  return safeHtml`<details class="long" open data-long="${next()}"><summary>${start === "" ? null : safeHtml`<span class="long-start">${start}</span>`}<span class="long-all">${all}<span class="unseen"> of ${title}</span></span><span class="long-less">Show less</span></summary>${body}</details>`;
}

function remarksBlock(remarks: readonly string[] | undefined): HtmlFragment {
  return remarks === undefined
    ? emptyHtml
    : safeHtml`<p class="remarks">${remarks.map((remark) => safeHtml`<span>${remark}</span> `)}</p>`;
}
