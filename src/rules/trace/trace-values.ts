/** Values of a JSON document that are followed, computed once for each document. */

import type { JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, precomputeResult } from "../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { findingTraceValues, findTraceValues } from "./find-values.ts";
import type { TraceOptions, TraceValues } from "./value-list.ts";

export function traceValuesOf(value: JsonValue, root: TraceRoot): TraceValues {
  return cachedResult<TraceValues>(value, root) ?? recentValues(value, root);
}

type TraceRoot = "$args" | "$result" | "$given";

/** Latest documents, because a decision asks several times for the values of one document. */
const recent: { value: JsonValue; root: TraceRoot; values: TraceValues }[] = [];
const MAX_RECENT = 8;
let next_recent = 0;

function recentValues(value: JsonValue, root: TraceRoot): TraceValues {
  return knownRecent(value, root) ?? keepRecent(value, root, findTraceValues(value, root, OPTIONS[root]));
}

const knownRecent = (value: JsonValue, root: TraceRoot): TraceValues | undefined =>
  recent.find((known) => known.value === value && known.root === root)?.values;

function keepRecent(value: JsonValue, root: TraceRoot, values: TraceValues): TraceValues {
  recent[next_recent] = { value, root, values };
  next_recent = (next_recent + 1) % MAX_RECENT;
  return values;
}

/** Finds the values of a large document while yielding to other work. */
export function* precomputingTraceValues(value: JsonValue, root: TraceRoot): PausableWork<void> {
  const finding = () => findingTraceValues(value, root, OPTIONS[root]);
  // Texts cannot be keys of the cache.
  if (typeof value !== "string") yield* precomputeResult(value, root, finding);
  else if (knownRecent(value, root) === undefined) keepRecent(value, root, yield* finding());
}

/** Arguments hold any number as an amount, because a result can have the same amount with its currency. */
const OPTIONS: Record<TraceRoot, TraceOptions> = {
  $args: { any_number: true, subdomains: "in" },
  $result: { any_number: false, subdomains: "of" },
  $given: { any_number: true, subdomains: "both" },
};
