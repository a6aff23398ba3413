/**
 * Redacts the values of a call before anything is stored: first the paths that the manifest names, then credentials and
 * personal data. Values that are too long, too many or too deep are cut.
 */
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { memberNames } from "../kernel/json/known-large.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { type CallValues, parsePath } from "../kernel/paths.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";
import { maskAt } from "../rules/redact/mask.ts";
import { safeText } from "./redact-text.ts";

/** Replaces values below the depth limit. */
const CUT_MARK = "[CUT]";

/** From this size on, a number may be a card or phone number. */
const TELLING_NUMBER = 1e6;

export interface RedactedValue {
  value: JsonValue;
  /** Whether anything was redacted or cut. */
  changed: boolean;
}

export interface RedactionRules {
  manifest: ToolManifest | null;
  pii: boolean;
  /** Called between two strings. Returns a promise if other work should come first. */
  pause?: () => Promise<void> | undefined;
}

/**
 * Redacts a value in two walks: the first collects the strings, which are cleaned with pauses, because only that takes
 * long; the second replaces them.
 */
export async function redactPart(
  part: keyof CallValues,
  value: JsonValue,
  { manifest, pii, pause }: RedactionRules,
): Promise<RedactedValue> {
  const declared = withoutPaths(part, value, manifest?.audit.redaction ?? []);
  const cleaned = new Map<string, string>();
  const found: [text: string, key: string | undefined][] = [];
  new Walker((text, key) => {
    found.push([text, key]);
    return text;
  }).walk(declared, undefined, 1);
  for (const [text, key] of found) {
    const name = nameOf(text, key);
    if (!cleaned.has(name)) cleaned.set(name, safeText(text, key, pii));
    await pause?.();
  }
  const walker = new Walker((text, key) => cleaned.get(nameOf(text, key))!);
  const safe = walker.walk(declared, undefined, 1);
  return { value: safe, changed: walker.changed || declared !== value };
}

/** Cache key of a string. The field's name is part of it, because it affects detection. */
function nameOf(text: string, key: string | undefined): string {
  return key === undefined ? text : `${key}\u0000${text}`;
}

function withoutPaths(part: keyof CallValues, value: JsonValue, paths: readonly string[]): JsonValue {
  let out = value;
  for (const source of paths) {
    const { root, keys } = parsePath(source);
    if (root === part) out = maskAt(out, keys) ?? out;
  }
  return out;
}

class Walker {
  changed = false;
  private readonly clean: (text: string, key: string | undefined) => string;

  constructor(clean: (text: string, key: string | undefined) => string) {
    this.clean = clean;
  }

  walk(value: JsonValue, key: string | undefined, depth: number): JsonValue {
    if (typeof value === "string") return this.text(value, key);
    if (typeof value === "number") return this.number(value, key);
    if (value === null || typeof value !== "object") return value;
    if (depth > SERVICE_LIMITS.capture_depth) {
      this.changed = true;
      return CUT_MARK;
    }
    return Array.isArray(value) ? this.list(value, key, depth) : this.object(value, depth);
  }

  private text(text: string, key: string | undefined): string {
    const safe = this.clean(text, key);
    if (safe !== text) this.changed = true;
    return safe;
  }

  private number(value: number, key: string | undefined): JsonValue {
    if (Math.abs(value) < TELLING_NUMBER) return value;
    const text = String(value);
    const safe = this.text(text, key);
    return safe === text ? value : safe;
  }

  private list(list: readonly JsonValue[], key: string | undefined, depth: number): JsonValue[] {
    return this.bounded(list).map((item) => this.walk(item, key, depth + 1));
  }

  private object(object: JsonObject, depth: number): JsonObject {
    const out: JsonObject = {};
    // Redaction may produce equal names; every entry is kept under its own name.
    const taken = new Map<string, number>();
    for (const name of this.bounded(memberNames(object))) {
      const safe = this.text(name, undefined);
      let free = safe;
      while (Object.hasOwn(out, free) || free === "__proto__") {
        const n = (taken.get(safe) ?? 1) + 1;
        taken.set(safe, n);
        free = `${safe}#${n}`;
      }
      out[free] = this.walk(object[name]!, name, depth + 1);
    }
    return out;
  }

  private bounded<T>(entries: readonly T[]): readonly T[] {
    if (entries.length <= SERVICE_LIMITS.capture_entries) return entries;
    this.changed = true;
    return entries.slice(0, SERVICE_LIMITS.capture_entries);
  }
}
