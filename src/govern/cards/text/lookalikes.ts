/** Remarks on values that a reader can take for another value: texts that read like `false`, or letters that look alike. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { type PausableWork, UNITS_PER_PAUSE } from "../../../kernel/pausable-work.ts";
import { hasMask } from "../../../rules/redact/mask.ts";
import { edgeSpace, NOT_GIVEN_TEXT, NOT_STORED_TEXT } from "./format.ts";
import { CARD_LIMITS } from "./limits.ts";
import { quotedName, spellingMembers } from "./names.ts";

const CARD_WORDS: ReadonlySet<string> = new Set([NOT_GIVEN_TEXT, NOT_STORED_TEXT]);
/** Texts that look like another JSON value. Numbers are exempt, because their digits read the same as a text. */
const LIKE_JSON = /^\s*(?:true|false|null|\[.*\]|\{.*\})\s*$/s;

/** Properties of a value that its plain text does not show. */
export function* valueRemarks(value: JsonValue): PausableWork<string[]> {
  const spelled = yield* spellingMembers(value);
  const mixed = yield* spellingMixedWords(value);
  const remarks = [edgeSpace(value), textRemark(value), spelled, mixed];
  return remarks.filter((one) => one !== undefined && one !== null);
}

/** Says that a value is a text if it reads like another value, or like words of the card itself. */
function textRemark(value: JsonValue): string | undefined {
  if (typeof value !== "string") return undefined;
  if (value === "") return "empty text";
  if ((LIKE_JSON.test(value) && !hasMask(value)) || CARD_WORDS.has(value)) return "a text";
  return value.includes("\r\n") ? "lines end with \\r\\n" : undefined;
}

const ALPHABETS =
  "\\p{Script=Cyrillic}\\p{Script=Greek}\\p{Script=Armenian}\\p{Script=Cherokee}\\p{Script=Coptic}";
/** Fullwidth, mathematical, Roman and circled forms of Latin letters and digits. */
const FORMS =
  "\\uff10-\\uff5a\\u{1d400}-\\u{1d7ff}\\u210a-\\u2113\\u2115\\u2119-\\u211d\\u212a-\\u212d\\u212f-\\u2134\\u2160-\\u2188\\u2460-\\u24ff\\u{1f110}-\\u{1f189}";
/** Letters and digits that can pass for ASCII ones. */
const FOREIGN = new RegExp(`[${ALPHABETS}${FORMS}]|(?![0-9])\\p{Nd}`, "u");
const WORD = /[\p{L}\p{N}\p{M}._@-]+/gu;
const MIXED = new RegExp(
  [
    `[A-Za-z]\\p{M}*[${ALPHABETS}${FORMS}]`,
    `[${ALPHABETS}${FORMS}]\\p{M}*[A-Za-z]`,
    `[0-9](?:[${ALPHABETS}](?=[0-9])|[${FORMS}]|(?![0-9])\\p{Nd})`,
    "(?![0-9])\\p{Nd}[0-9]",
    // A label of a host or an address whose letters all look like Latin ones.
    "(?<![^.@])[асеорхуіјѕԁԛԝһкмтвнАВСЕНІЈКМОРЅТХУԚԜ]+(?=[.@][A-Za-z])",
  ].join("|"),
  "u",
);

const isMixed = (word: string): boolean => FOREIGN.test(word) && MIXED.test(word);

/** True if the card must remark on a value, so that a placeholder alone cannot show it. */
export const needsRemark = (value: JsonValue): boolean =>
  edgeSpace(value) !== undefined ||
  textRemark(value) !== undefined ||
  (typeof value === "string" && isMixed(value));

/** Spells out the words, at any depth, that mix ASCII with letters or digits that look like it. Null without such a word. */
function* spellingMixedWords(value: JsonValue): PausableWork<string | null> {
  const most = CARD_LIMITS.named_members;
  const found = new Set<string>();
  const left: JsonValue[] = [value];
  for (let units = 0; left.length > 0 && found.size <= most; ) {
    const one = left.pop()!;
    if (typeof one === "string") {
      if (FOREIGN.test(one)) yield* collectMixedWords(one, found, most);
    } else if (one !== null && typeof one === "object")
      for (const member of Object.values(one)) {
        if (typeof member === "string" || (member !== null && typeof member === "object")) left.push(member);
        if (++units % UNITS_PER_PAUSE === 0) yield;
      }
  }
  if (found.size === 0) return null;
  const named = [...found].slice(0, most).map(quotedName).join(", ");
  return `mixes letters that look alike: ${named}${found.size > most ? " and others" : ""}`;
}

function* collectMixedWords(text: string, found: Set<string>, most: number): PausableWork<void> {
  let units = 0;
  for (const [word] of text.matchAll(WORD)) {
    if (isMixed(word)) found.add(word.slice(0, CARD_LIMITS.place_chars));
    if (found.size > most) return;
    if (++units % UNITS_PER_PAUSE === 0) yield;
  }
}
