/**
 * Inputs for a process, in batches over many connections. After each batch: the process lives, no answer was a 500
 * or showed internals. Refused inputs are then sent once more, with
 * nothing else in progress: not a byte of the ledger or of the working data may move.
 */
import fc from "fast-check";
import { type AreaRow, newRow, noteTime } from "./row.ts";
import type { Target } from "./target.ts";
import type { Reply } from "./wire.ts";

const LANES = 32;
const BATCH = 512;
const TRACE = /\n\s+at \S+ \(|node:internal|node_modules|\/src\/\w+\/|TypeError|ReferenceError|RangeError/;

export interface BatchPlan {
  area: string;
  target: Target;
  inputs: fc.Arbitrary<Buffer>;
  count: number;
  seed: number;
  /** Whether the answer means that the input was taken. */
  accepted?(reply: Reply): boolean;
}

export async function runBatches(plan: BatchPlan): Promise<AreaRow> {
  const row = newRow(plan.area);
  const began = performance.now();
  await plan.target.stall();
  for (let batch = 0; row.inputs < plan.count && row.problems.length < 5; batch++) {
    const seed = plan.seed + batch;
    const inputs = fc.sample(plan.inputs, { seed, numRuns: Math.min(BATCH, plan.count - row.inputs) });
    await runBatch(plan, row, inputs, seed);
  }
  row.seconds = (performance.now() - began) / 1_000;
  return row;
}

async function runBatch(plan: BatchPlan, row: AreaRow, inputs: Buffer[], seed: number): Promise<void> {
  const { target } = plan;
  const accepted = plan.accepted ?? (({ status }) => status >= 200 && status < 300);
  const found = (problem: string, input?: Buffer) =>
    row.problems.push(
      `seed ${seed}: ${problem}${input === undefined ? "" : `; sent ${JSON.stringify(input.toString("latin1").slice(0, 600))}`}`,
    );
  const replies = await sendAll(target, inputs, found);
  const refused: Buffer[] = [];
  replies.forEach((reply, i) => {
    const problem = replyProblem(reply);
    if (problem !== undefined) found(problem, inputs[i]);
    if (accepted(reply)) row.accepted++;
    else refused.push(inputs[i]!);
  });
  row.inputs += inputs.length;
  await checkUnmoved(plan, row, refused, accepted, found);
  noteTime(row, (await target.stall()).busy_ms, `seed ${seed}`);
  if (!target.isAlive) found("the process ended");
}

type Found = (problem: string, input?: Buffer) => void;

/** A second time, and alone: a refused input leaves nothing. */
async function checkUnmoved(
  { target }: BatchPlan,
  row: AreaRow,
  refused: Buffer[],
  accepted: (reply: Reply) => boolean,
  found: Found,
): Promise<void> {
  // Calls captured the first time are written in the background: on a slow machine only now.
  const since_ms = Date.now();
  const before = await settled(target, since_ms);
  const replies = await sendAll(target, refused, found);
  row.resent += refused.length;
  // Another input of the batch can make this one valid. Then this batch shows nothing.
  if (replies.some(accepted)) return;
  const after = await settled(target, since_ms);
  // A checkpoint begins another journal; then the two cannot be compared.
  const files = (state: string): string => state.replace(/:\d+/g, "");
  if (after !== before && files(after) === files(before))
    found(`${refused.length} refused inputs changed the state: ${before} -> ${after}`);
}

/** Background work for an earlier answer, such as moving a journal on, has ended. */
async function settled(target: Target, since_ms: number): Promise<string> {
  for (let last = target.state(since_ms); ; ) {
    await new Promise((resolve) => setTimeout(resolve, 3));
    const now = target.state(since_ms);
    if (now === last) return now;
    last = now;
  }
}

async function sendAll(target: Target, inputs: readonly Buffer[], found: Found): Promise<Reply[]> {
  const replies: Reply[] = new Array(inputs.length);
  let next = 0;
  const lane = async (n: number): Promise<void> => {
    const wire = target.lane(n);
    while (next < inputs.length) {
      const i = next++;
      replies[i] = await wire.send(inputs[i]!).catch((error: Error) => {
        found(error.message, inputs[i]);
        return { status: 0, headers: "", body: "" };
      });
    }
  };
  await Promise.all(Array.from({ length: LANES }, (_, n) => lane(n)));
  return replies;
}

/** Texts that must never be in any answer. */
export function replyProblem({ status, body }: Reply): string | undefined {
  if (status === 0) return "the connection was closed without an answer";
  if (status >= 500) return `status ${status}: ${body.slice(0, 200)}`;
  if (status >= 400 && TRACE.test(body))
    return `status ${status} tells of its insides: ${body.slice(0, 300)}`;
  return undefined;
}
