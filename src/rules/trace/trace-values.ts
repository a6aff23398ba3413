/** Values of a JSON document that are followed, computed once for each document. */

import type { JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, precomputeResult } from "../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { findingTraceValues, findTraceValues } from "./find-values.ts";
import type { TraceValues } from "./value-list.ts";

export function traceValuesOf(value: JsonValue, root: TraceRoot): TraceValues {
  return cachedResult<TraceValues>(value, root) ?? recentValues(value, root);
}

type TraceRoot = "$args" | "$result" | "$given";

/** A decision asks several times for the values of its arguments. An entry lives as long as the document. */
const recent = new WeakMap<object, Map<TraceRoot, TraceValues>>();

function recentValues(value: JsonValue, root: TraceRoot): TraceValues {
  if (value === null || typeof value !== "object") return findTraceValues(value, root, optionsOf(root));
  const known = recent.get(value) ?? new Map<TraceRoot, TraceValues>();
  const values = known.get(root) ?? findTraceValues(value, root, optionsOf(root));
  recent.set(value, known.set(root, values));
  return values;
}

/** Finds the values of a large document while yielding to other work. */
export function precomputingTraceValues(value: JsonValue, root: TraceRoot): PausableWork<void> {
  return precomputeResult(value, root, () => findingTraceValues(value, root, optionsOf(root)));
}

/** Arguments hold any number as an amount, because a result can have the same amount with its currency. */
const optionsOf = (root: string) => ({ any_number: root !== "$result" });
