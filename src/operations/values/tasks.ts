/**
 * Tasks on large values. They take JSON texts and plain data, and return finished texts and a bounded number of objects,
 * because every object that crosses threads is built again on the event loop.
 */
import { type CallReading, type CallTask, readCall } from "../../govern/decide/precompute-values.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { withPlainMasks } from "../../rules/redact/mask.ts";
import { type CardDrawing, type DrawnCards, drawingCards } from "../approvals/draw-cards.ts";

export type ValuesTask =
  | { calls: readonly CallTask[] }
  | { drawing: CardDrawing }
  /** A stored value as JSON, to show with plain masks. */
  | { masked: string };

export function doValuesTask(task: ValuesTask): CallReading[] | DrawnCards | string {
  if ("calls" in task) return task.calls.map(readCall);
  if ("drawing" in task) return runAtOnce(drawingCards(task.drawing));
  return JSON.stringify(runAtOnce(withPlainMasks(JSON.parse(task.masked) as JsonValue)));
}
