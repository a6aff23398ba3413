/**
 * Making HTML. There is one way: the `html` template, which escapes every value that is not HTML already and
 * shows characters that would move or hide text. Nothing in the console makes HTML out of a string.
 */
import { html as template } from "hono/html";
import type { HtmlEscapedString } from "hono/utils/html";

export type Html = HtmlEscapedString;

/** What may stand in a template. Objects and promises may not: they would print as rubbish, or leak. */
export type Part = Html | string | number | Verbatim | false | null | undefined | readonly Part[];

/** Text for a form field, which must come back as it was given. */
export class Verbatim {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return template(strings, ...parts.map(ready)) as Html;
}

function ready(part: Part): unknown {
  if (typeof part === "string") return inert(part);
  if (part instanceof Verbatim) return part.text;
  if (Array.isArray(part)) return part.map(ready);
  return part;
}

export const nothing: Html = html``;

/** Control characters, and those that reverse or isolate the direction of what follows. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** An agent's text must not rearrange the line that a person decides by. */
export function inert(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The items with something between each two. */
export function joined(items: readonly Part[], between: Part): Part[] {
  return items.flatMap((item, i) => (i === 0 ? [item] : [between, item]));
}
