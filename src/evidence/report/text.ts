/**
 * Text that others wrote, made fit to be shown as evidence: every character is seen, none does anything. What
 * has no shape, turns the reading order around or drives a terminal is spelled out.
 */

const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Control, format and other shapeless characters, blanks that are no space, and halves of pairs. */
const UNSEEN =
  /\p{Cc}|\p{Cf}|\p{Co}|\p{Cn}|\p{Cs}|\p{Zl}|\p{Zp}|(?! )\p{Zs}|\p{Default_Ignorable_Code_Point}/gu;

/** Nothing in it needs a closer look; most text is so, and reports hold a lot of it. */
const PLAIN = /^[ -~]*$/;

/** The text with every unseen character written as `\u{...}`. */
export function visible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSEEN, (c) => NAMED[c] ?? spelled(c));
}

function spelled(c: string): string {
  return `\\u{${c.codePointAt(0)!.toString(16)}}`;
}

/** Text for a font that has only the characters of Windows-1252; all others are spelled out. */
export function forPlainFont(text: string): string {
  if (PLAIN.test(text)) return text;
  return visible(text).replace(
    /[^\u0020-\u007e\u00a1-\u00ff\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178]/gu,
    spelled,
  );
}

/**
 * Text inside Markdown, as a code span: no link, mention, tag or emphasis works there. The fence is longer than
 * any run of backticks within, and a bar is escaped because a table would end its cell there.
 */
export function codeSpan(text: string): string {
  const shown = visible(text).replaceAll("|", "\\|");
  if (shown === "") return "(empty)";
  const longest = Math.max(0, ...(shown.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = /^[` ]|[` ]$/.test(shown) ? " " : "";
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** ISO 8601 in UTC; a number that is no date stays a number. */
export function time(ms: number): string {
  const at = new Date(ms);
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString();
}

/** The day in UTC, as `2026-06-15`. */
export function day(ms: number): string {
  return time(ms).slice(0, 10);
}
