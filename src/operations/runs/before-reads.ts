/** Reads a resource through a surface's own tools before a call is forwarded, and again after the call succeeded. */
import { type BeforeRead, beforeAnswerProblem, type CardRead } from "../../govern/decide/before-state.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ReaderFn, ReadRequest, UndoObjection } from "../../rollback/ports.ts";
import { readEach } from "../../rollback/undo/read-each.ts";

/** The value that a read returned, or the problem that stops the call. */
export type BeforeReading = { value: JsonValue | undefined } | { problem: string };

/** Reads over the connection of the call, which shows the state that the call changes. */
export interface BeforeReader {
  reader: ReaderFn;
  objection: UndoObjection;
}

/**
 * Reads the state before the call. A failed read, or an answer over the size limit, stops the call unless the manifest
 * allows it.
 */
export async function readBefore(
  reads: BeforeReader,
  asked: BeforeRead,
  signal: AbortSignal,
): Promise<BeforeReading> {
  const reading = await readState(reads, asked, signal);
  const wrong = "problem" in reading ? reading.problem : beforeAnswerProblem(asked, reading.value);
  if (wrong === null) return reading;
  if (asked.required === false) return { value: undefined };
  return { problem: `before: ${asked.tool} could not be read: ${wrong}` };
}

/** Reads the state after the call. Undefined if that fails; an undo then treats the state as changed. */
export async function readAfter(
  reads: BeforeReader,
  asked: BeforeRead,
  signal: AbortSignal,
): Promise<JsonValue | undefined> {
  const reading = await readState(reads, asked, signal);
  return "problem" in reading ? undefined : reading.value;
}

/**
 * Reads the current state if the call will open an approval request, or use one whose card showed that state. The same
 * reading is reused for the call.
 */
export async function readForCard(
  reads: BeforeReader,
  { before: asked }: { before?: BeforeRead | undefined },
  signal: AbortSignal,
): Promise<{ seen: CardRead; reading: BeforeReading | null }> {
  if (asked === undefined) return { seen: null, reading: null };
  const reading = await readBefore(reads, asked, signal);
  return { seen: { value: "value" in reading ? reading.value : undefined }, reading };
}

async function readState(
  { reader, objection }: BeforeReader,
  { tool, arguments: args }: BeforeRead,
  signal: AbortSignal,
): Promise<{ value: JsonValue } | { problem: string }> {
  try {
    const against = await objection([tool]);
    if (against !== null) return { problem: against };
    const read = (one: ReadRequest) => reader(one, signal);
    return { value: await readEach(read, { tool, arguments: args }, signal) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
