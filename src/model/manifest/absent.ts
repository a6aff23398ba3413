/** Whether what a `before` read answers says that nothing is there: the undo and the card go by the same word. */
import type { Json } from "../../kernel/json.ts";
import { firstMismatch } from "../../kernel/partial.ts";
import type { Before } from "./types.ts";

/** A partial match; without `absent` something always is. */
export function isAbsent({ absent }: Before, value: Json): boolean {
  return absent !== undefined && firstMismatch(absent, value) === null;
}
