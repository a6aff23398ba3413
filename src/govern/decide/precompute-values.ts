/**
 * Computes facts about large values before the unit of work, while yielding to other work. A unit is synchronous and
 * blocks the process, so it finds these facts cached and takes no longer for a megabyte than for a line.
 */

import { precomputeCanonical } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { asJson } from "../../kernel/json/json.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { learningContent } from "../../rules/policy/checks/content.ts";
import { precomputingFingerprints } from "../../rules/trace/fingerprint.ts";
import { precomputingTraceValues, traceValuesOf } from "../../rules/trace/trace-values.ts";
import { precomputingCardLine } from "../cards/line.ts";
import { precomputingVisibleArgs, precomputingVisibleBefore } from "../cards/visible-values.ts";
import type { EngineCore } from "../core.ts";
import { tenantKeys } from "../traces/tenant-trace.ts";
import type { CardRead } from "./before-state.ts";
import type { RunFacts } from "./load-facts.ts";

/** For arguments: their hash, content matches and visible form. Undefined if they are small. */
export function precomputingCall(
  core: EngineCore,
  tool: string,
  args: JsonValue,
  seen?: CardRead,
): PausableWork<void> | undefined {
  const read = seen?.value;
  const isLarge = isLargeValue(args) || (read !== undefined && isLargeValue(read));
  return isLarge ? learningLargeCall(core, tool, args, read) : undefined;
}

function* learningLargeCall(
  core: EngineCore,
  tool: string,
  args: JsonValue,
  read: JsonValue | undefined,
): PausableWork<void> {
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(tool) ?? null;
  yield* precomputeCanonical(args);
  yield* learningContent(policy, args);
  if (policy.carries !== null) yield* precomputingTraceValues(args, "$args");
  yield* precomputingVisibleArgs(args, manifest);
  yield* precomputingCardLine(args, manifest);
  if (read !== undefined) {
    yield* precomputeCanonical(read);
    const reader = manifest?.before === undefined ? undefined : manifests.active(manifest.before.tool);
    yield* precomputingVisibleBefore(read, manifest, reader ?? null);
  }
  yield;
}

/** For the calls of a plan, which can be large together even if each is small. */
export function precomputingCalls(
  core: EngineCore,
  calls: readonly { tool: string; args: JsonValue }[],
): PausableWork<void> | undefined {
  return isLargeValue(asJson(calls)) ? learningLargeCalls(core, calls) : undefined;
}

function* learningLargeCalls(
  core: EngineCore,
  calls: readonly { tool: string; args: JsonValue }[],
): PausableWork<void> {
  for (const { tool, args } of calls) yield* learningLargeCall(core, tool, args, undefined);
}

/** For the result of a call, with the state before and after it. `run` is null if it is not loaded. */
export function precomputingOutcome(
  core: EngineCore,
  run: Pick<RunFacts, "salt" | "tenant" | "child_of"> | null,
  result: JsonValue | undefined,
  ...states: readonly (JsonValue | undefined)[]
): PausableWork<void> | undefined {
  const hashes = precomputingHashes(result, ...states);
  const { carries } = core.rules().policy;
  if (result === undefined || !isLargeValue(result) || carries === null) return hashes;
  // A child run's fingerprints have the key of its root, which is not known here.
  const salts = run === null || run.child_of !== undefined ? [] : [run.salt];
  if (run !== null && carries.within_ms !== null) salts.push(tenantKeys(core, run.tenant).salt);
  return learningResult(result, salts, hashes);
}

function* learningResult(
  result: JsonValue,
  salts: readonly string[],
  hashes: PausableWork<void> | undefined,
): PausableWork<void> {
  yield* precomputingTraceValues(result, "$result");
  const found = traceValuesOf(result, "$result");
  for (const salt of salts) yield* precomputingFingerprints(salt, found);
  if (hashes !== undefined) yield* hashes;
}

/** For results and `before` reads: their hashes. Undefined if they are small. */
function precomputingHashes(...values: readonly (JsonValue | undefined)[]): PausableWork<void> | undefined {
  const large = values.filter((value) => value !== undefined && isLargeValue(value)) as JsonValue[];
  return large.length === 0 ? undefined : learningLargeHashes(large);
}

function* learningLargeHashes(values: readonly JsonValue[]): PausableWork<void> {
  for (const value of values) yield* precomputeCanonical(value);
  yield;
}
