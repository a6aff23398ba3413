/** Verifies an undo: compares the tool's answer with the manifest's expectation, with retries. */
import type { RuntimeEnv } from "../../kernel/env.ts";
import { assertJson, type JsonValue } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import type { ReadBackSpec } from "../plan/classify.ts";
import type { ReaderFn } from "../ports.ts";

/** Result of a verification. `mismatch` names the path, never a value. `observed` is the last answer. */
export type ReadBack =
  | { as: "unverified" }
  | { as: "verified"; observed: JsonValue }
  | { as: "verification_failed"; mismatch: string; error: string; observed?: JsonValue | undefined };

export function compareReadBack(spec: ReadBackSpec, observed: JsonValue): ReadBack {
  const mismatch = firstMismatch(spec.expect, observed);
  return mismatch === null ? { as: "verified", observed } : { ...notShown(spec, mismatch), observed };
}

/** Reads up to `1 + retries` times. The wait between reads starts at `backoff_ms` and doubles. */
export async function readBack(
  env: RuntimeEnv,
  reader: ReaderFn,
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
  reader: ReaderFn,
  spec: ReadBackSpec,
  args: JsonValue,
  signal: AbortSignal,
): Promise<ReadBack> {
  let observed: JsonValue;
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
