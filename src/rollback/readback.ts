/** Reading an undo back: compare what the tool shows with what the manifest expects, in patience. */
import { canonical } from "../kernel/canonical.ts";
import type { Env } from "../kernel/env.ts";
import { assertJson, isJsonObject, type Json } from "../kernel/json.ts";
import type { ReadBackSpec } from "./classify.ts";
import type { Reader } from "./ports.ts";

/** The result of a read-back; `mismatch` names the place, never a value. `observed` is what was seen last. */
export type ReadBack =
  | { as: "unverified" }
  | { as: "verified"; observed: Json }
  | { as: "verification_failed"; mismatch: string; error: string; observed?: Json | undefined };

const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_-]*$/;

/** Where the answer first differs from what is expected, or null where it shows all of it. */
export function firstMismatch(expect: Json, observed: Json, at = ""): string | null {
  if (isJsonObject(expect)) {
    if (!isJsonObject(observed)) return `${place(at)} is ${typeOf(observed)}, not an object`;
    for (const name of Object.keys(expect)) {
      const inner = at + (IDENTIFIER.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
      if (!Object.hasOwn(observed, name)) return `${place(inner)} is missing`;
      const found = firstMismatch(expect[name]!, observed[name]!, inner);
      if (found !== null) return found;
    }
    return null;
  }
  // A list must match whole, and so must what is in it.
  if (canonical(expect) === canonical(observed)) return null;
  const [want, got] = [typeOf(expect), typeOf(observed)];
  return want === got ? `${place(at)} differs` : `${place(at)} is ${got}, not ${want}`;
}

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

function place(at: string): string {
  return at === "" ? "the answer" : at.startsWith(".") ? at.slice(1) : at;
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
