/** Text of a value on a card. Any value becomes text that stays inside its field, in full, with a count where it is long. */
import { tryTimestamp } from "../../kernel/duration.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { isLargeValue } from "../../kernel/large-values.ts";
import { visibleWhole } from "../../kernel/visible.ts";
import { plural } from "../../kernel/words.ts";
import { CARD_LIMITS } from "./limits.ts";
import type { CardFormat } from "./template.ts";

export const NOT_GIVEN = "(not given)";
export const NOT_KEPT = "(not kept)";

export function plainValue(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** How deep a large value may be to be written with one member a line: each line is indented by its depth. */
const DEEPEST_LINES = 8;

/** JSON with one member a line; on one line where that would make it many times as long. */
export function jsonLines(value: Json): string {
  const isLong = isLargeValue(value) && isDeeperThan(value, DEEPEST_LINES);
  return isLong ? JSON.stringify(value) : JSON.stringify(value, null, 2);
}

function isDeeperThan(value: Json, depth: number): boolean {
  if (value === null || typeof value !== "object") return false;
  if (depth === 0) return true;
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (isDeeperThan(member, depth - 1)) return true;
  return false;
}

/** `diff` without anything to compare with is text as it is. */
const FORMATS: Readonly<Record<CardFormat, (value: Json) => string>> = {
  text: plainValue,
  money,
  time,
  code: (value) => (typeof value === "string" ? value : jsonLines(value)),
  diff: (value) => (typeof value === "string" ? value : jsonLines(value)),
};

export function formatted(value: Json, as: CardFormat): string {
  return visibleWhole(FORMATS[as](value));
}

const PLURAL_NAME = /^[A-Za-z][a-z]*[^sui]s$/;

/** Counts of a value that a person does not take in at once: `40 recipients`, `3,120 characters, 62 lines`. */
export function shownSize(value: Json, name: string): string | undefined {
  if (Array.isArray(value)) {
    if (value.length < 2) return undefined;
    return PLURAL_NAME.test(name)
      ? plural(value.length, "", name.toLowerCase())
      : plural(value.length, "entry", "entries");
  }
  const text = plainValue(value);
  const lines = typeof value === "string" ? text.replace(/\n$/, "").split("\n").length : 1;
  if (text.length <= CARD_LIMITS.plain_chars && lines === 1) return undefined;
  const counted = plural(text.length, "character");
  if (isJsonObject(value)) return `${plural(Object.keys(value).length, "member")}, ${counted}`;
  return lines === 1 ? counted : `${counted}, ${plural(lines, "line")}`;
}

const AMOUNT = /^(-?)(\d{1,15})(?:\.(\d{1,12}))?$/;

/** `1250.5` is `1,250.50`; nothing is rounded. */
function money(value: Json): string {
  const text = plainValue(value);
  const match = typeof value === "number" || typeof value === "string" ? AMOUNT.exec(text) : null;
  if (match === null) return text;
  const [, sign, whole, part] = match;
  const grouped = whole!.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return `${sign}${grouped}${part === undefined ? "" : `.${part.padEnd(2, "0")}`}`;
}

/** Seconds and milliseconds since 1970 are told apart by their size. */
const MILLISECONDS_FROM = 1e11;
const ZONED = /(?:Z|[+-]\d{2}:?\d{2})$/;

/**
 * A moment without a zone stays as it was given: which one is meant is not known, and taken for the server's own it
 * would be another time, on another card, at each server.
 */
function time(value: Json): string {
  const date = new Date(momentOf(value) ?? Number.NaN);
  if (Number.isNaN(date.getTime())) return plainValue(value);
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

function momentOf(value: Json): number | undefined {
  if (typeof value === "number") return Math.abs(value) >= MILLISECONDS_FROM ? value : value * 1_000;
  return typeof value === "string" && ZONED.test(value) ? tryTimestamp(value) : undefined;
}
