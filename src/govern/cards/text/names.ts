/**
 * Names on a card. The manifest's author writes the labels, but the agent chooses argument names. A name that the
 * manifest does not declare is quoted, so that it cannot pass for a label.
 */
import type { JsonObject, JsonValue } from "../../../kernel/json/json.ts";
import { memberNames } from "../../../kernel/json/known-large.ts";
import { type PausableWork, UNITS_PER_PAUSE } from "../../../kernel/pausable-work.ts";
import { visibleOneLine } from "../../../kernel/text/escape-invisible.ts";
import { CARD_LIMITS } from "./limits.ts";

const PLAIN_NAME = /^[^.[\]"$\s]+$/;
const LOWER_CASE = /^[a-z0-9]*$/;
const NOT_ASCII = /[^\x20-\x7e]/u;

/** Path below `$args`, in the notation of manifests. */
export function argumentPath(keys: readonly (string | number)[], root = "$args"): string {
  return keys.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    return PLAIN_NAME.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
  }, root);
}

export function argumentLabel(name: string, declared: boolean): string {
  return declared ? visibleOneLine(name) : quotedName(name);
}

/** Quotes a name. Characters outside ASCII are also written as code points, since letters can look alike. */
export function quotedName(name: string): string {
  const shown = `"${visibleOneLine(name).replaceAll('"', '\\"')}"`;
  if (!NOT_ASCII.test(name)) return shown;
  const spelled = Array.from(name, (c) => (NOT_ASCII.test(c) ? `\\u{${c.codePointAt(0)!.toString(16)}}` : c));
  return `${shown} (spelled ${spelled.join("")})`;
}

/**
 * Spells out the names of members, at any depth, that have characters outside ASCII: their letters can look like those
 * of another name. Null without such a name.
 */
export function* spellingMembers(value: JsonValue): PausableWork<string | null> {
  const most = CARD_LIMITS.named_members;
  const found = new Set<string>();
  const left: JsonValue[] = [value];
  for (let units = 0; left.length > 0 && found.size <= most; ) {
    const one = left.pop()!;
    if (one === null || typeof one !== "object") continue;
    const names = Array.isArray(one) ? null : memberNames(one);
    for (const [i, at] of (names ?? (one as JsonValue[])).entries()) {
      if (names !== null && NOT_ASCII.test(names[i]!)) found.add(names[i]!);
      const member = names === null ? at : (one as JsonObject)[names[i]!]!;
      if (member !== null && typeof member === "object") left.push(member);
      if (++units % UNITS_PER_PAUSE === 0) yield;
    }
  }
  if (found.size === 0) return null;
  const named = [...found].slice(0, most).map(quotedName).join(", ");
  return `contains the names ${named}${found.size > most ? " and others" : ""}`;
}

/**
 * Normal form that is equal for names a reader can confuse: by case, separators, width, accents or invisible
 * characters.
 */
export function nameSkeleton(name: string): string {
  if (LOWER_CASE.test(name)) return name;
  return name
    .normalize("NFKD")
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Cc}\p{M}\s_.-]/gu, "")
    .toLowerCase();
}
