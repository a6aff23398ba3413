/**
 * Hands large values to threads: reading a call for its decision, and drawing a card. In the event loop, the work would
 * be slices of milliseconds, but the garbage collector would stop it for as long as it takes to copy every object.
 */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import { hasLargeValues } from "../../govern/cards/stored-values.ts";
import type { CardTask } from "../../govern/cards/whole-card.ts";
import type { EngineCore } from "../../govern/core.ts";
import {
  type CallReading,
  type CallTask,
  isLargeCall,
  type LargeCall,
  preparingCall,
} from "../../govern/decide/precompute-values.ts";
import { asJson } from "../../kernel/json/json.ts";
import { JsonTextValue } from "../../kernel/json/json-text-value.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { type CardDrawing, type DrawnCards, drawingCards } from "../approvals/draw-cards.ts";
import type { ValuesTask } from "./tasks.ts";

/** A pool of one thread. `entry` is its module. */
export const valuesThread = (name: string, entry: string): ThreadPool =>
  new ThreadPool({
    name,
    entry: entryModule(entry),
    most: 1,
    resourceLimits: { maxOldGenerationSizeMb: 1_024 },
  });

/** Separate threads, so that an agent's calls never delay the approver who decides about them. */
const callThread = valuesThread("the thread for calls", "operations/values/worker");
const cardThread = valuesThread("the thread for cards", "operations/values/worker");

/** Reads a large call before its unit of work. Undefined if it is small, so that the caller has nothing to await. */
export function precomputeCall(core: EngineCore, call: LargeCall): Promise<void> | undefined {
  return isLargeCall(call) ? readCalls(core, [call]) : undefined;
}

/** Reads calls that can be large together even if each is small. */
export function precomputeCalls(core: EngineCore, calls: readonly LargeCall[]): Promise<void> | undefined {
  return isLargeValue(asJson(calls)) ? readCalls(core, calls) : undefined;
}

async function readCalls(core: EngineCore, calls: readonly LargeCall[]): Promise<void> {
  const prepared: { task: CallTask; cache(reading: CallReading): void }[] = [];
  for (const call of calls) prepared.push(await runInSlices(preparingCall(core, call)));
  const task: ValuesTask = { calls: prepared.map((one) => one.task) };
  const readings = await callThread.ask<CallReading[]>(task);
  for (const [i, { cache }] of prepared.entries()) cache(readings[i]!);
}

/** Draws cards: those with large values in the thread, small ones here. */
export function drawCards(drawing: CardDrawing): Promise<DrawnCards> {
  return drawInThread(drawing.cards, cardThread, { drawing } satisfies ValuesTask, () =>
    drawingCards(drawing),
  );
}

/** `work` does the same as the thread does for `task`. */
export function drawInThread<T>(
  cards: readonly CardTask[],
  thread: ThreadPool,
  task: object,
  work: () => PausableWork<T>,
): Promise<T> {
  return cards.some(({ stored }) => hasLargeValues(stored)) ? thread.ask<T>(task) : runInSlices(work());
}

/** The text of a large stored value, with plain masks. */
export async function maskLargeText({ text }: JsonTextValue): Promise<JsonTextValue> {
  return new JsonTextValue(await cardThread.ask<string>({ masked: text } satisfies ValuesTask));
}
