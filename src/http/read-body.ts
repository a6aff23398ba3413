/** Reading a body strictly: a small one at once, a large one in turns, with room for other requests in between. */
import { type Json, parseJsonBytes, parsingJsonBytes } from "../kernel/json.ts";
import { doInTurns } from "../process/turns.ts";

const SMALL_BYTES = 65_536;

export function readJsonBody(bytes: Uint8Array): Json | Promise<Json> {
  return bytes.length <= SMALL_BYTES ? parseJsonBytes(bytes) : doInTurns(parsingJsonBytes(bytes));
}
