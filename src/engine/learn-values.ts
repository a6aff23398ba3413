/**
 * What deciding a call asks about its values, worked out ahead and in turns where they are large. A unit of work is
 * synchronous, and everybody waits while it runs: it finds these answers known, and is as short for a megabyte as for
 * a line.
 */
import { learningCanonical } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { isLargeValue } from "../kernel/large-values.ts";
import type { Paced } from "../kernel/turns.ts";
import { learningKeptArgs, learningKeptBefore } from "../model/card/kept.ts";
import { learningContent } from "../model/policy/content.ts";
import type { Seen } from "./before.ts";
import type { Core } from "./core.ts";

/** Of arguments: their hash, what the content checks find, and what a card may show. Nothing where they are small. */
export function learningCall(core: Core, tool: string, args: Json, seen?: Seen): Paced<void> | undefined {
  const read = seen?.value;
  const isLarge = isLargeValue(args) || (read !== undefined && isLargeValue(read));
  return isLarge ? learningLargeCall(core, tool, args, read) : undefined;
}

function* learningLargeCall(core: Core, tool: string, args: Json, read: Json | undefined): Paced<void> {
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(tool) ?? null;
  yield* learningCanonical(args);
  yield* learningContent(policy, args);
  yield* learningKeptArgs(args, manifest);
  if (read !== undefined) {
    yield* learningCanonical(read);
    const reader = manifest?.before === undefined ? undefined : manifests.active(manifest.before.tool);
    yield* learningKeptBefore(read, manifest, reader ?? null);
  }
  yield;
}

/** Of the calls of a plan, which may be large together where none of them is. */
export function learningCalls(
  core: Core,
  calls: readonly { tool: string; args: Json }[],
): Paced<void> | undefined {
  return isLargeValue(calls as unknown as Json) ? learningLargeCalls(core, calls) : undefined;
}

function* learningLargeCalls(core: Core, calls: readonly { tool: string; args: Json }[]): Paced<void> {
  for (const { tool, args } of calls) yield* learningLargeCall(core, tool, args, undefined);
}

/** Of results, and of what was read: their hashes. Nothing where they are small. */
export function learningHashes(...values: readonly (Json | undefined)[]): Paced<void> | undefined {
  const large = values.filter((value) => value !== undefined && isLargeValue(value)) as Json[];
  return large.length === 0 ? undefined : learningLargeHashes(large);
}

function* learningLargeHashes(values: readonly Json[]): Paced<void> {
  for (const value of values) yield* learningCanonical(value);
  yield;
}
