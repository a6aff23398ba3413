/**
 * Formats values for a card. Every value becomes text that cannot break out of its field, complete, with its size if it
 * is long.
 */
import { tryTimestamp } from "../../../kernel/duration.ts";
import { isJsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { memberNames } from "../../../kernel/json/known-large.ts";
import { isLargeValue } from "../../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../../kernel/pausable-work.ts";
import { visibleText } from "../../../kernel/text/escape-invisible.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import type { CardFormat } from "../../../rules/manifest/card-template.ts";
import { CARD_LIMITS } from "./limits.ts";

export const NOT_GIVEN_TEXT = "(not given)";
export const NOT_STORED_TEXT = "(not kept)";

export function plainValue(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Maximum depth at which a large value gets one member per line. Each level indents its lines further. */
const DEEPEST_LINES = 8;

/** Formats JSON with one member per line, or on one line if indentation would make it many times as long. */
export function jsonLines(value: JsonValue): string {
  const isLong = isLargeValue(value) && isDeeperThan(value, DEEPEST_LINES);
  return isLong ? JSON.stringify(value) : JSON.stringify(value, null, 2);
}

function isDeeperThan(value: JsonValue, depth: number): boolean {
  if (value === null || typeof value !== "object") return false;
  if (depth === 0) return true;
  if (Array.isArray(value)) return value.some((member) => isDeeperThan(member, depth - 1));
  return memberNames(value).some((name) => isDeeperThan(value[name]!, depth - 1));
}

/** Formatters by name. `diff` without a second value to compare shows plain text. */
const FORMATS: Readonly<Record<CardFormat, (value: JsonValue) => string>> = {
  text: plainValue,
  money,
  time,
  code: (value) => (typeof value === "string" ? value : jsonLines(value)),
  diff: (value) => (typeof value === "string" ? value : jsonLines(value)),
};

export function formatCardValue(value: JsonValue, as: CardFormat): string {
  return visibleText(FORMATS[as](value));
}

/** Pauses between the two passes over a large value. */
export function* formattingCardValue(value: JsonValue, as: CardFormat): PausableWork<string> {
  const text = FORMATS[as](value);
  yield;
  return visibleText(text);
}

/** White space that a reader does not see because nothing follows or precedes it. */
export function edgeSpace(value: JsonValue): string | undefined {
  if (typeof value !== "string" || value.includes("\n")) return undefined;
  if (value !== "" && value.trim() === "")
    return `white space only, ${formatCountOf(value.length, "character")}`;
  const at = [value !== value.trimStart() ? "begins" : "", value !== value.trimEnd() ? "ends" : ""];
  const where = at.filter((one) => one !== "").join(" and ");
  return where === "" ? undefined : `${where} with white space`;
}

const PLURAL_NAME = /^[A-Za-z][a-z]*[^sui]s$/;

/** Size of a value too long to see at once, such as `40 recipients` or `3,120 characters, 62 lines`. */
export function shownSize(value: JsonValue, name: string): string | undefined {
  if (Array.isArray(value)) {
    if (value.length < 2) return undefined;
    return PLURAL_NAME.test(name)
      ? formatCountOf(value.length, "", name.toLowerCase())
      : formatCountOf(value.length, "entry", "entries");
  }
  const text = plainValue(value);
  const lines = typeof value === "string" ? text.replace(/\n$/, "").split("\n").length : 1;
  if (text.length <= CARD_LIMITS.plain_chars && lines === 1) return undefined;
  const counted = formatCountOf(text.length, "character");
  if (isJsonObject(value)) return `${formatCountOf(memberNames(value).length, "member")}, ${counted}`;
  return lines === 1 ? counted : `${counted}, ${formatCountOf(lines, "line")}`;
}

const AMOUNT = /^(-?)(\d{1,15})(?:\.(\d{1,12}))?$/;

/** Formats `1250.5` as `1,250.50`, without rounding. */
function money(value: JsonValue): string {
  const text = plainValue(value);
  const match = typeof value === "number" || typeof value === "string" ? AMOUNT.exec(text) : null;
  if (match === null) return text;
  const [, sign, whole, part] = match;
  const grouped = whole!.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return `${sign}${grouped}${part === undefined ? "" : `.${part.padEnd(2, "0")}`}`;
}

/** Numbers from here on are milliseconds since 1970, smaller ones seconds. */
const MILLISECONDS_FROM = 1e11;
const ZONED = /(?:Z|[+-]\d{2}:?\d{2})$/;

/**
 * Formats a time. A time without a zone stays unchanged: its zone is unknown, and reading it in the server's zone would
 * give each server another card.
 */
function time(value: JsonValue): string {
  const date = new Date(momentOf(value) ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return plainValue(value);
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function momentOf(value: JsonValue): number | undefined {
  if (typeof value === "number") return Math.abs(value) >= MILLISECONDS_FROM ? value : value * 1_000;
  return typeof value === "string" && ZONED.test(value) ? tryTimestamp(value) : undefined;
}
