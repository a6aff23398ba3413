/** Reading what is there before a call is forwarded, and again after it succeeded, through the upstreams. */
import { answerProblem, type BeforeRead, type Seen } from "../engine/before.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { ReadRequest } from "../rollback/ports.ts";
import { readEach } from "../rollback/read-each.ts";
import type { UpstreamUndo } from "./rollback.ts";

/** What a read showed, or why there is none to go on with. */
export type BeforeReading = { value: Json | undefined } | { problem: string };

/** Through the upstreams, over the connection of the call: what it changes is seen there. */
export type Reads = Pick<UpstreamUndo, "reader" | "objection">;

/** A read that fails, or answers with more than may be kept, stops the call unless its manifest lets it pass. */
export async function readBefore(
  reads: Reads,
  asked: BeforeRead,
  signal: AbortSignal,
): Promise<BeforeReading> {
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

/**
 * What the card shows to be there is read where the call would open a request, or use one that was approved on what its
 * card showed; it is good for the call itself, too.
 */
export async function readForCard(
  reads: Reads,
  { before: asked }: { before?: BeforeRead | undefined },
  signal: AbortSignal,
): Promise<{ seen: Seen; reading: BeforeReading | null }> {
  if (asked === undefined) return { seen: null, reading: null };
  const reading = await readBefore(reads, asked, signal);
  return { seen: { value: "value" in reading ? reading.value : undefined }, reading };
}

async function readState(
  { reader, objection }: Reads,
  { tool, arguments: args }: BeforeRead,
  signal: AbortSignal,
): Promise<{ value: Json } | { problem: string }> {
  try {
    const against = await objection([tool]);
    if (against !== null) return { problem: against };
    const read = (one: ReadRequest) => reader(one, signal);
    return { value: await readEach(read, { tool, arguments: args }, signal) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
