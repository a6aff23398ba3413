/**
 * Reads with a list of arguments: one tool call for each, with the results in the same order. A failed call yields
 * `{error}`, so "nothing exists here" can be compared like any other state.
 */
import { messageOf } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ReadRequest } from "../ports.ts";

/** Throws if every call failed, because then nothing was read. */
export async function readEach(
  read: (request: ReadRequest) => Promise<JsonValue>,
  { tool, arguments: sets }: ReadRequest,
  signal?: AbortSignal,
): Promise<JsonValue> {
  if (!Array.isArray(sets)) return read({ tool, arguments: sets });
  const answers: JsonValue[] = [];
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
