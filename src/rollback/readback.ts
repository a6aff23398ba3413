/** Reading an undo back: compare what the tool shows with what the manifest expects, in patience. */
import type { Env } from "../kernel/env.ts";
import { assertJson, type Json } from "../kernel/json.ts";
import { firstMismatch } from "../kernel/partial.ts";
import type { ReadBackSpec } from "./classify.ts";
import type { Reader } from "./ports.ts";

/** The result of a read-back; `mismatch` names the place, never a value. `observed` is what was seen last. */
export type ReadBack =
  | { as: "unverified" }
  | { as: "verified"; observed: Json }
  | { as: "verification_failed"; mismatch: string; error: string; observed?: Json | undefined };

export function compareReadBack(spec: ReadBackSpec, observed: Json): ReadBack {
  const mismatch = firstMismatch(spec.expect, observed);
  return mismatch === null ? { as: "verified", observed } : { ...notShown(spec, mismatch), observed };
}

/** Reads up to `1 + retries` times; the wait between reads starts at `backoff_ms` and doubles. */
export async function readBack(
  env: Env,
  reader: Reader,
  spec: ReadBackSpec,
  signal: AbortSignal,
): Promise<ReadBack> {
  if (spec.arguments === undefined) return cannotVerify();
  let wait_ms = spec.backoff_ms;
  for (let left = spec.retries; ; left--) {
    const found = await readOnce(reader, spec, spec.arguments, signal);
    if (found.as === "verified" || left <= 0) return found;
    await env.sleep(wait_ms, signal);
    wait_ms *= 2;
  }
}

async function readOnce(
  reader: Reader,
  spec: ReadBackSpec,
  args: Json,
  signal: AbortSignal,
): Promise<ReadBack> {
  let observed: Json;
  try {
    observed = await reader({ tool: spec.tool, arguments: args }, signal);
    assertJson(observed, "read-back");
  } catch {
    signal.throwIfAborted();
    return notShown(spec, "the read failed");
  }
  return compareReadBack(spec, observed);
}

export function cannotVerify(): ReadBack {
  const error = "cannot verify: arguments unavailable";
  return { as: "verification_failed", mismatch: error, error };
}

function notShown(spec: ReadBackSpec, mismatch: string): Extract<ReadBack, { as: "verification_failed" }> {
  const error = `verification failed: ${spec.tool} did not show the expected state after the undo`;
  return { as: "verification_failed", mismatch: `first mismatch: ${mismatch}`, error };
}
