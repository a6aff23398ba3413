/**
 * A read with a list of arguments: one call of the tool for each, answered as a list in the same order. A call that
 * fails answers `{error}`, so that "nothing is at this place" can be compared like any other state.
 */
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { ReadRequest } from "./ports.ts";

/** Throws where no call was answered: then nothing was read. */
export async function readEach(
  read: (request: ReadRequest) => Promise<Json>,
  { tool, arguments: sets }: ReadRequest,
  signal?: AbortSignal,
): Promise<Json> {
  if (!Array.isArray(sets)) return read({ tool, arguments: sets });
  const answers: Json[] = [];
  const failures: unknown[] = [];
  for (const args of sets) {
    try {
      answers.push(await read({ tool, arguments: args }));
    } catch (error) {
      signal?.throwIfAborted();
      failures.push(error);
      answers.push({ error: messageOf(error) });
    }
  }
  if (failures.length === sets.length) throw failures[0];
  return answers;
}
