/**
 * What of a call may be written down: the values that the manifest names are replaced, then credentials and
 * personal data, and what is too long, too many or too deep is cut. Nothing is kept that did not pass here.
 */
import type { Json, JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { type CallValues, parsePath } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";
import { maskAt } from "../model/mask.ts";
import { safeText } from "./text.ts";

/** Stands for what lay deeper than is kept. */
export const CUT = "[CUT]";

/** A card or phone number may be sent as a number; smaller ones can be neither. */
const TELLING_NUMBER = 1e6;

export interface Redacted {
  value: Json;
  /** Whether anything is not as it was. */
  changed: boolean;
}

export interface RedactionRules {
  manifest: Manifest | null;
  pii: boolean;
  /** Asked between two strings: a promise where other work should come first. */
  pause?: () => Promise<void> | undefined;
}

/** Looking into strings is all that takes time, so they are cleaned one by one and then put back. */
export async function redactPart(
  part: keyof CallValues,
  value: Json,
  { manifest, pii, pause }: RedactionRules,
): Promise<Redacted> {
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

/** The same text under another name of a field may be read otherwise. */
function nameOf(text: string, key: string | undefined): string {
  return key === undefined ? text : `${key}\u0000${text}`;
}

function withoutPaths(part: keyof CallValues, value: Json, paths: readonly string[]): Json {
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

  walk(value: Json, key: string | undefined, depth: number): Json {
    if (typeof value === "string") return this.text(value, key);
    if (typeof value === "number") return this.number(value, key);
    if (value === null || typeof value !== "object") return value;
    if (depth > LIMITS.capture_depth) {
      this.changed = true;
      return CUT;
    }
    return Array.isArray(value) ? this.list(value, key, depth) : this.object(value, depth);
  }

  private text(text: string, key: string | undefined): string {
    const safe = this.clean(text, key);
    if (safe !== text) this.changed = true;
    return safe;
  }

  private number(value: number, key: string | undefined): Json {
    if (Math.abs(value) < TELLING_NUMBER) return value;
    const text = String(value);
    const safe = this.text(text, key);
    return safe === text ? value : safe;
  }

  private list(list: readonly Json[], key: string | undefined, depth: number): Json[] {
    return this.bounded(list).map((item) => this.walk(item, key, depth + 1));
  }

  private object(object: JsonObject, depth: number): JsonObject {
    const out: JsonObject = {};
    // Several names may become the same one; every entry is kept.
    const taken = new Map<string, number>();
    for (const name of this.bounded(Object.keys(object))) {
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
    if (entries.length <= LIMITS.capture_entries) return entries;
    this.changed = true;
    return entries.slice(0, LIMITS.capture_entries);
  }
}
