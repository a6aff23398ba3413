/**
 * HTML output. All HTML comes from the `safeHtml` template, which escapes every value that is not HTML already and makes
 * characters visible that would move or hide text.
 */
import { randomUUID } from "node:crypto";
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

export function safeHtml(strings: TemplateStringsArray, ...parts: TemplateValue[]): HtmlFragment {
  return template(strings, ...parts.map(ready)) as HtmlFragment;
}

function ready(part: TemplateValue): unknown {
  if (typeof part === "string") return escapedIfLong(escapeInvisible(part));
  if (part instanceof VerbatimText) return escapedIfLong(part.text);
  if (Array.isArray(part)) return part.map(ready);
  return part;
}

/** A longer text is escaped here: the template would leave two pieces in memory for each escaped character. */
const SHORT_CHARS = 1_024;

const escapedIfLong = (text: string): string | HtmlFragment =>
  text.length <= SHORT_CHARS ? text : (raw(escapeBytes(Buffer.from(text)).toString()) as HtmlFragment);

/** The escape of each byte, and the number of bytes that it adds. */
const ESCAPES = new Map(
  Object.entries({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" }).map(
    ([char, escaped]) => [char.charCodeAt(0), Buffer.from(escaped)],
  ),
);
const LONGER = Uint8Array.from({ length: 256 }, (_, byte) => (ESCAPES.get(byte)?.length ?? 1) - 1);

/** Works on bytes, so that memory holds one buffer and no pieces. */
function escapeBytes(bytes: Uint8Array): Buffer {
  let size = bytes.length;
  for (let i = 0; i < bytes.length; i++) size += LONGER[bytes[i]!]!;
  const out = Buffer.allocUnsafe(size);
  let at = 0;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (LONGER[byte] === 0) out[at++] = byte;
    else at += ESCAPES.get(byte)!.copy(out, at);
  }
  return out;
}

export const emptyHtml: HtmlFragment = safeHtml``;

/** Control characters, and characters that reverse or isolate text direction. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

/** Escapes invisible characters, so that an agent's text cannot rearrange the line that an approver reads. */
export function escapeInvisible(text: string): string {
  return text.replace(UNSEEN, spelledOut);
}

/** One text for each character, because a value can have a million of them. */
const spelled = new Map<string, string>();

function spelledOut(char: string): string {
  const known = spelled.get(char) ?? `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  spelled.set(char, known);
  return known;
}

/**
 * Finished HTML from a thread, as UTF-8. A page has a marker in its place until it is sent, so that the event loop never
 * handles it as text.
 */
export class EmbeddedHtml {
  /** Cannot occur in a value. */
  private readonly id = randomUUID();
  private readonly parts: Uint8Array[] = [];

  embed(html: Uint8Array): HtmlFragment {
    return raw(`<!--${this.id}:${this.parts.push(html) - 1}-->`) as HtmlFragment;
  }

  /** The page with its embedded parts. */
  bytesOf(page: HtmlFragment): Buffer {
    // Every other piece is the number of a part.
    const pieces = page.toString().split(new RegExp(`<!--${this.id}:(\\d+)-->`));
    return Buffer.concat(
      pieces.map((piece, i) => (i % 2 === 0 ? Buffer.from(piece) : this.parts[Number(piece)]!)),
    );
  }
}

/** Puts `between` between each two items. */
export function joinHtml(items: readonly TemplateValue[], between: TemplateValue): TemplateValue[] {
  return items.flatMap((item, i) => (i === 0 ? [item] : [between, item]));
}
