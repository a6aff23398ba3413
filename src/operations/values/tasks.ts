/**
 * Tasks on large values. They take JSON texts and plain data, and return texts and a bounded number of objects, because
 * every object that crosses threads is built again on the event loop.
 */
import { type CardTask, drawingWholeCard, type WholeCard } from "../../govern/cards/whole-card.ts";
import { type CallReading, type CallTask, readCall } from "../../govern/decide/precompute-values.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { withPlainMasks } from "../../rules/redact/mask.ts";

export type ValuesTask =
  | { calls: readonly CallTask[] }
  | { cards: readonly CardTask[] }
  /** A stored value as JSON, to show with plain masks. */
  | { masked: string };

/** A card whose values are JSON texts. */
export interface ThreadCard extends Omit<WholeCard, "arguments" | "before"> {
  arguments: string | null;
  before: string | null;
}

export function doValuesTask(task: ValuesTask): CallReading[] | ThreadCard[] | string {
  if ("calls" in task) return task.calls.map(readCall);
  if ("masked" in task)
    return JSON.stringify(runAtOnce(withPlainMasks(JSON.parse(task.masked) as JsonValue)));
  return task.cards.map((one) => {
    const card = runAtOnce(drawingWholeCard(one));
    return { ...card, arguments: textOf(card.arguments), before: textOf(card.before) };
  });
}

const textOf = (value: JsonValue): string | null => (value === null ? null : JSON.stringify(value));
