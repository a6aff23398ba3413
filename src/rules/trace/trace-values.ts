/** Values of a JSON document that are followed, computed once for a large document. */

import type { JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, precomputeResult } from "../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { findingTraceValues, findTraceValues, type TraceValues } from "./find-values.ts";

export function traceValuesOf(value: JsonValue, root: "$args" | "$result" | "$given"): TraceValues {
  return cachedResult<TraceValues>(value, root) ?? findTraceValues(value, root, optionsOf(root));
}

/** Finds the values of a large document while yielding to other work. */
export function precomputingTraceValues(
  value: JsonValue,
  root: "$args" | "$result" | "$given",
): PausableWork<void> {
  return precomputeResult(value, root, () => findingTraceValues(value, root, optionsOf(root)));
}

/** Arguments hold any number as an amount, because a result can have the same amount with its currency. */
const optionsOf = (root: string) => ({ any_number: root !== "$result" });
