/**
 * Makes external text safe to display as evidence: every character is visible, and none has an effect. Characters that
 * are invisible, reverse the reading order or control a terminal are spelled out.
 */

const NAMED: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Control, format and other invisible characters, blanks other than the space, and unpaired surrogates. */
const UNSEEN =
  /\p{Cc}|\p{Cf}|\p{Co}|\p{Cn}|\p{Cs}|\p{Zl}|\p{Zp}|(?! )\p{Zs}|\p{Default_Ignorable_Code_Point}/gu;

/** Fast path for printable ASCII, which is most text. */
const PLAIN = /^[ -~]*$/;

/** Writes every invisible character as `\u{...}`. */
export function spellOutInvisible(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSEEN, (c) => NAMED[c] ?? spelled(c));
}

function spelled(c: string): string {
  return `\\u{${c.codePointAt(0)!.toString(16)}}`;
}

/** Text for a font with the characters of Windows-1252 only. All others are spelled out. */
export function forPlainFont(text: string): string {
  if (PLAIN.test(text)) return text;
  return spellOutInvisible(text).replace(
    /[^\u0020-\u007e\u00a1-\u00ff\u20ac\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\u017d\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\u017e\u0178]/gu,
    spelled,
  );
}

/**
 * Text as a Markdown code span, in which links, mentions, tags and emphasis have no effect. The fence is longer than
 * any run of backticks within. A bar is escaped, because it would end a table cell.
 */
export function codeSpan(text: string): string {
  const shown = spellOutInvisible(text).replaceAll("|", "\\|");
  if (shown === "") return "(empty)";
  const longest = Math.max(0, ...(shown.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  const pad = /^[` ]|[` ]$/.test(shown) ? " " : "";
  return `${fence}${pad}${shown}${pad}${fence}`;
}

/** ISO 8601 in UTC. A number that is not a valid date is shown as a number. */
export function toIsoTime(ms: number): string {
  const at = new Date(ms);
  return Number.isNaN(at.getTime()) ? `${ms} ms` : at.toISOString();
}

/** The day in UTC, as `2026-06-15`. */
export function toIsoDay(ms: number): string {
  return toIsoTime(ms).slice(0, 10);
}
