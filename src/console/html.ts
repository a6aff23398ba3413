/**
 * HTML output. All HTML comes from the `html` template, which escapes every value that is not HTML already and makes
 * characters visible that would move or hide text.
 */
import { raw, html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

export type HtmlFragment = HtmlEscapedString;

/**
 * Values allowed in a template. Objects and promises are excluded: they would print as `[object Object]` or leak data.
 */
export type TemplateValue =
  | HtmlFragment
  | string
  | number
  | VerbatimText
  | false
  | null
  | undefined
  | readonly TemplateValue[];

/** Text for a form field that must come back unchanged. */
export class VerbatimText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export function html(strings: TemplateStringsArray, ...parts: TemplateValue[]): HtmlFragment {
  return template(strings, ...parts.map(ready)) as HtmlFragment;
}

function ready(part: TemplateValue): unknown {
  if (typeof part === "string") return escapedIfLong(escapeInvisible(part));
  if (part instanceof VerbatimText) return escapedIfLong(part.text);
  if (Array.isArray(part)) return part.map(ready);
  return part;
}

/** A longer text is escaped here: the template would leave one piece in memory for each escaped character. */
const SHORT_CHARS = 1_024;
const ESCAPES = [
  [/&/g, "&amp;"],
  [/</g, "&lt;"],
  [/>/g, "&gt;"],
  [/"/g, "&quot;"],
  [/'/g, "&#39;"],
] as const;

const escapedIfLong = (text: string): string | HtmlFragment =>
  text.length <= SHORT_CHARS
    ? text
    : (raw(ESCAPES.reduce((out, [char, escaped]) => out.replace(char, escaped), text)) as HtmlFragment);

export const emptyHtml: HtmlFragment = html``;

/** Control characters, and characters that reverse or isolate text direction. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Escapes invisible characters, so that an agent's text cannot rearrange the line that an approver reads. */
export function escapeInvisible(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Puts `between` between each two items. */
export function joinHtml(items: readonly TemplateValue[], between: TemplateValue): TemplateValue[] {
  return items.flatMap((item, i) => (i === 0 ? [item] : [between, item]));
}
