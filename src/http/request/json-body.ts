/** Strict body parser. Small bodies are parsed at once; large ones in slices, so other requests can run in between. */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { type JsonValue, parseJsonBytes, parseJsonBytesInSteps } from "../../kernel/json/json.ts";

const SMALL_BYTES = 65_536;

export function readJsonBody(bytes: Uint8Array): JsonValue | Promise<JsonValue> {
  return bytes.length <= SMALL_BYTES ? parseJsonBytes(bytes) : runInSlices(parseJsonBytesInSteps(bytes));
}
