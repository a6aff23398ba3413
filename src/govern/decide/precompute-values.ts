/**
 * Computes facts about large values before the unit of work, while yielding to other work. A unit is synchronous and
 * blocks the process, so it finds these facts cached and takes no longer for a megabyte than for a line.
 */

import { cacheCanonical, precomputeCanonical } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import { cachedResult, isLargeValue, precomputeResult } from "../../kernel/json/large-value-cache.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import {
  activeContentChecks,
  type ContentHits,
  cacheContent,
  findContent,
} from "../../rules/policy/checks/content.ts";
import type { ContentKind } from "../../rules/policy/checks/content-kinds.ts";
import { precomputingFingerprints } from "../../rules/trace/fingerprint.ts";
import { precomputingTraceValues, traceValuesOf } from "../../rules/trace/trace-values.ts";
import { cacheOfferReading, type OfferReading, readingOffer } from "../approvals/counter-proposal.ts";
import { cacheArgNames, listArgNames } from "../approvals/requests.ts";
import { cacheCardLine, cardLine } from "../cards/line.ts";
import {
  cacheVisibleArgs,
  cacheVisibleBefore,
  computingVisibleArgs,
  computingVisibleBefore,
} from "../cards/visible-values.ts";
import type { EngineCore } from "../core.ts";
import { tenantKeys } from "../traces/tenant-trace.ts";
import type { RunFacts } from "./load-facts.ts";

/** A large call as a thread reads it. Plain data. */
export interface CallTask {
  /** The arguments as JSON. */
  args: string;
  manifest: ToolManifest | null;
  checks: readonly ContentKind[];
  /** The state that the call would change, as JSON, and the manifest of the tool that read it. */
  before?: { text: string; reader: ToolManifest | null };
  /** True if the arguments are a counter-proposal. */
  is_offer?: boolean;
}

/** What a decision on a large call needs to know about its values. */
export interface CallReading {
  canonical: string;
  content: ContentHits;
  /** The visible arguments as JSON. */
  shown: string;
  line: string | undefined;
  arg_names: string[];
  before?: { canonical: string; shown: string };
  offer?: OfferReading;
}

/** Reads a call. Runs in a thread, because it looks at every value several times. */
export function readCall({ args: text, manifest, checks, before, is_offer }: CallTask): CallReading {
  const args = JSON.parse(text) as JsonValue;
  return {
    canonical: toCanonicalJson(args),
    content: findContent(args, checks),
    shown: JSON.stringify(runAtOnce(computingVisibleArgs(args, manifest))),
    line: cardLine(args, manifest),
    arg_names: listArgNames(args),
    ...(before && { before: readBefore(before, manifest) }),
    ...(is_offer && { offer: runAtOnce(readingOffer(args)) }),
  };
}

function readBefore(
  { text, reader }: NonNullable<CallTask["before"]>,
  manifest: ToolManifest | null,
): NonNullable<CallReading["before"]> {
  const value = JSON.parse(text) as JsonValue;
  const shown = runAtOnce(computingVisibleBefore(value, manifest, reader));
  return { canonical: toCanonicalJson(value), shown: JSON.stringify(shown) };
}

/** A call with the values that a unit of work will ask about. */
export interface LargeCall {
  tool: string;
  args: JsonValue;
  /** What the surface read for the card. */
  read?: JsonValue | undefined;
  is_offer?: boolean;
}

export const isLargeCall = ({ args, read }: LargeCall): boolean =>
  isLargeValue(args) || (read !== undefined && isLargeValue(read));

/** The task for a thread, and what its answer is cached under: the rules of this moment. */
export function* preparingCall(
  core: EngineCore,
  { tool, args, read, is_offer = false }: LargeCall,
): PausableWork<{ task: CallTask; cache(reading: CallReading): void }> {
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(tool) ?? null;
  const reader = (manifest?.before && manifests.active(manifest.before.tool)) ?? null;
  // These are as many objects as the arguments have, so the event loop finds them itself.
  if (policy.carries !== null) yield* precomputingTraceValues(args, "$args");
  yield* precomputeResult(args, jsonTextInSteps, () => jsonTextInSteps(args));
  const task: CallTask = {
    args: cachedResult<string>(args, jsonTextInSteps) ?? JSON.stringify(args),
    manifest,
    checks: activeContentChecks(policy),
    ...(read !== undefined && { before: { text: yield* jsonTextInSteps(read), reader } }),
    ...(is_offer && { is_offer }),
  };
  const cache = ({ canonical, content, shown, line, arg_names, before, offer }: CallReading): void => {
    cacheCanonical(args, canonical);
    cacheContent(args, content);
    cacheVisibleArgs(args, manifest, shown);
    cacheCardLine(args, manifest, line);
    cacheArgNames(args, arg_names);
    if (read !== undefined && before !== undefined) {
      cacheCanonical(read, before.canonical);
      cacheVisibleBefore(read, manifest, reader, before.shown);
    }
    if (offer !== undefined) cacheOfferReading(args, offer);
  };
  return { task, cache };
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
