/** Reading what is there before a call is forwarded, and again after it succeeded, through the upstreams. */
import { answerProblem, type BeforeRead } from "../engine/before.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { UpstreamUndo } from "./rollback.ts";

/** What a read showed, or why there is none to go on with. */
export type Reading = { value: Json | undefined } | { problem: string };

type Reads = Pick<UpstreamUndo, "reader" | "objection">;

/** A read that fails, or answers with more than may be kept, stops the call unless its manifest lets it pass. */
export async function readBefore(reads: Reads, asked: BeforeRead, signal: AbortSignal): Promise<Reading> {
  const reading = await readState(reads, asked, signal);
  const wrong = "problem" in reading ? reading.problem : answerProblem(asked, reading.value);
  if (wrong === null) return reading;
  if (asked.required === false) return { value: undefined };
  return { problem: `before: ${asked.tool} could not be read: ${wrong}` };
}

/** What the call left; undefined where it cannot be told, and an undo then takes it for changed. */
export async function readAfter(
  reads: Reads,
  asked: BeforeRead,
  signal: AbortSignal,
): Promise<Json | undefined> {
  const reading = await readState(reads, asked, signal);
  return "problem" in reading ? undefined : reading.value;
}

async function readState(
  { reader, objection }: Reads,
  { tool, arguments: args }: BeforeRead,
  signal: AbortSignal,
): Promise<{ value: Json } | { problem: string }> {
  try {
    const against = await objection([tool]);
    if (against !== null) return { problem: against };
    return { value: await reader({ tool, arguments: args }, signal) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
