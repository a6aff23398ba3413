/**
 * Hands large values to threads: reading a call for its decision, and drawing a card. In the event loop, the work would
 * be slices of milliseconds, but the garbage collector would stop it for as long as it takes to copy every object.
 */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { entryModule } from "../../child-process/package-files.ts";
import { ThreadPool } from "../../child-process/thread-pool.ts";
import { hasLargeValues, type StoredValues } from "../../govern/cards/stored-values.ts";
import { type CardTask, drawingWholeCard, type WholeCard } from "../../govern/cards/whole-card.ts";
import type { EngineCore } from "../../govern/core.ts";
import {
  type CallReading,
  isLargeCall,
  type LargeCall,
  preparingCall,
} from "../../govern/decide/precompute-values.ts";
import { asJson } from "../../kernel/json/json.ts";
import { type JsonOrText, JsonTextValue } from "../../kernel/json/json-text-value.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import type { ThreadCard, ValuesTask } from "./tasks.ts";

const threadFor = (name: string): ThreadPool =>
  new ThreadPool({
    name,
    entry: entryModule("operations/values/worker"),
    most: 1,
    resourceLimits: { maxOldGenerationSizeMb: 1_024 },
  });

/** Separate threads, so that an agent's calls never delay the approver who decides about them. */
const callThread = threadFor("the thread for calls");
const cardThread = threadFor("the thread for cards");

/** Reads a large call before its unit of work. Undefined if it is small, so that the caller has nothing to await. */
export function precomputeCall(core: EngineCore, call: LargeCall): Promise<void> | undefined {
  return isLargeCall(call) ? readCalls(core, [call]) : undefined;
}

/** Reads calls that can be large together even if each is small. */
export function precomputeCalls(core: EngineCore, calls: readonly LargeCall[]): Promise<void> | undefined {
  return isLargeValue(asJson(calls)) ? readCalls(core, calls) : undefined;
}

async function readCalls(core: EngineCore, calls: readonly LargeCall[]): Promise<void> {
  const prepared = [];
  for (const call of calls) prepared.push(await runInSlices(preparingCall(core, call)));
  const task: ValuesTask = { calls: prepared.map((one) => one.task) };
  const readings = await callThread.ask<CallReading[]>(task);
  for (const [i, { cache }] of prepared.entries()) cache(readings[i]!);
}

/** A card whose large values are texts. */
export interface DrawnCard extends Omit<WholeCard, "arguments" | "before"> {
  arguments: JsonOrText;
  before: JsonOrText;
}

/** Draws cards: the small ones here, and those with large values in the thread. */
export async function drawCards(tasks: readonly CardTask[]): Promise<DrawnCard[]> {
  const cards: DrawnCard[] = [];
  const large = tasks.filter(({ stored }) => hasLargeValues(stored));
  const drawn =
    large.length === 0 ? [] : await cardThread.ask<ThreadCard[]>({ cards: large } satisfies ValuesTask);
  for (const task of tasks)
    cards.push(
      hasLargeValues(task.stored)
        ? fromThread(drawn.shift()!, task.stored)
        : await runInSlices(drawingWholeCard(task)),
    );
  return cards;
}

export async function drawCard(task: CardTask): Promise<DrawnCard> {
  const [card] = await drawCards([task]);
  return card!;
}

function fromThread(card: ThreadCard, stored: StoredValues | undefined): DrawnCard {
  const carried = (field: "args" | "before", text: string | null): JsonOrText => {
    if (text === null) return null;
    const value = new JsonTextValue(text);
    return stored?.texts?.[field] === undefined ? value.read() : value;
  };
  return {
    ...card,
    arguments: carried("args", card.arguments),
    before: carried("before", card.before),
  };
}

/** The text of a large stored value, with plain masks. */
export async function maskLargeText({ text }: JsonTextValue): Promise<JsonTextValue> {
  return new JsonTextValue(await cardThread.ask<string>({ masked: text } satisfies ValuesTask));
}
