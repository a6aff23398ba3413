import type { Json } from "../../kernel/json.ts";
import { firstMismatch } from "../../kernel/partial.ts";
import type { Before } from "./types.ts";

/** Whether the answer of a `before` read shows that nothing was there. */
export function isAbsent({ absent }: Before, value: Json): boolean {
  return absent !== undefined && firstMismatch(absent, value) === null;
}
