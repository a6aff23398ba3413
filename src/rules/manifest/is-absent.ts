/**
 * Decides whether the answer of a `before` read means that the target does not exist. Undo and card share this rule.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import type { BeforeSpec } from "./types.ts";

/** Matches `absent` partially. Without `absent`, the target always exists. */
export function isAbsent({ absent }: BeforeSpec, value: JsonValue): boolean {
  return absent !== undefined && firstMismatch(absent, value) === null;
}
