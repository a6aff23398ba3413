/**
 * Checks of an effect: the read that shows whether a successful call took effect, and the comparison of its answer. The
 * check trusts its own tool, so it cannot detect a tool that returns false data.
 */
import type { RuntimeEnv } from "../../kernel/env.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { firstMismatch } from "../../kernel/partial-match.ts";
import { type CallValues, fillTemplate, templatePaths, tryTemplatePath } from "../../kernel/paths.ts";
import type { ManifestSet, ToolManifest } from "../../rules/manifest/types.ts";
import type { CallerPrincipal } from "../roles.ts";
import type { EffectFinding, ReadBy, RunDoc } from "../runs/run.ts";
import { readProblem } from "./before-state.ts";

/** Check that a decision asks for. `args` and `expect` are the manifest's templates, since they may need the result. */
export type EffectCheckRead = {
  tool: string;
  args: { [name: string]: JsonValue };
  expect: JsonValue;
  retries: number;
  backoff_ms: number;
};

/** The declared check, or null if the manifest has none or the run may not make its read. */
export function effectCheckOf(
  manifests: ManifestSet,
  run: Pick<RunDoc, "scope">,
  caller: Pick<CallerPrincipal, "max_permissions">,
  manifest: ToolManifest | null,
): EffectCheckRead | null {
  const check = manifest?.effect_check;
  if (check === undefined || readProblem(manifests, run, caller, check.tool) !== null) return null;
  return check;
}

/** An answer of the check's tool that is an error. It matches only an expectation that names `is_error`. */
const errorAnswer = (error: string): JsonValue => ({ is_error: true, error });

/** Thrown by a reader whose tool answered with an error, which is an answer, unlike a read that could not be made. */
export class ToolAnsweredError extends Error {}

/** Names the first difference by its path, never a value. Null if the effect is there. */
function effectMismatch(expect: JsonValue, observed: JsonValue): string | null {
  const isError = isJsonObject(observed) && observed["is_error"] === true;
  if (isError && !(isJsonObject(expect) && Object.hasOwn(expect, "is_error")))
    return "the tool answered with an error";
  return firstMismatch(expect, observed);
}

/**
 * The expectation with its values. An argument that the call does not have says nothing, so its member is left out;
 * undefined if none of the expected arguments was given, or another value is missing.
 */
function fillExpectation(expect: JsonValue, values: CallValues): JsonValue | undefined {
  const paths = templatePaths(expect).filter((path) => tryTemplatePath(path)?.root === "args");
  const given = paths.filter((path) => fillTemplate(path, values) !== undefined);
  if (given.length === paths.length) return fillTemplate(expect, values);
  return given.length === 0 ? undefined : fillTemplate(withoutArguments(expect, new Set(given)), values);
}

/** Without the members that only absent arguments explain. */
function withoutArguments(expect: JsonValue, given: ReadonlySet<string>): JsonValue {
  if (!isJsonObject(expect)) return expect;
  const kept = Object.entries(expect).flatMap(([name, value]): [string, JsonValue][] => {
    if (typeof value === "string" && tryTemplatePath(value)?.root === "args" && !given.has(value)) return [];
    const inner = withoutArguments(value, given);
    const isEmptied = isJsonObject(inner) && isJsonObject(value) && Object.keys(inner).length === 0;
    return isEmptied && Object.keys(value as object).length > 0 ? [] : [[name, inner]];
  });
  return Object.fromEntries(kept);
}

/** Result of a check for the step. `mismatch` is null unless the effect is missing. */
interface CheckedEffect {
  found: EffectFinding;
  mismatch: string | null;
}

/**
 * Compares the observation. Without one, or with a missing value in a template, nothing was checked. A read without its
 * arguments was not made, also if an agent reports one.
 */
export function checkEffect(
  check: Pick<EffectCheckRead, "args" | "expect">,
  values: CallValues,
  observed: JsonValue | undefined,
): CheckedEffect {
  const isReadable = observed !== undefined && fillTemplate(check.args, values) !== undefined;
  const expect = isReadable ? fillExpectation(check.expect, values) : undefined;
  if (expect === undefined || observed === undefined) return { found: "not checked", mismatch: null };
  const mismatch = effectMismatch(expect, observed);
  return mismatch === null ? { found: "held", mismatch } : { found: "missing", mismatch };
}

/** The step's finding in words, for records, reports and pages. Null if its manifest declares no check. */
export function effectText({ effect_check, effect_check_by }: EffectNote): string | null {
  if (effect_check === undefined) return null;
  return `effect: ${effect_check}${effect_check === "not checked" ? "" : `, checked by ${effect_check_by}`}`;
}

interface EffectNote {
  effect_check?: EffectFinding | undefined;
  effect_check_by?: ReadBy | undefined;
}

type ReadOnce = (request: { tool: string; arguments: JsonValue }) => Promise<JsonValue>;

/** The part of an answer that the expectation names, so that a long answer can be reported. */
function expectedPart(expect: JsonValue, observed: JsonValue): JsonValue {
  if (!isJsonObject(expect) || !isJsonObject(observed)) return observed;
  const names = [...Object.keys(expect), "is_error"].filter((name) => Object.hasOwn(observed, name));
  return Object.fromEntries(names.map((name) => [name, expectedPart(expect[name] ?? null, observed[name]!)]));
}

/**
 * Reads until the effect is there, at most `1 + retries` times, with a wait that starts at `backoff_ms` and doubles.
 * Returns what the last answer shows of the expectation, or undefined if no read was possible: one failed read does not erase an earlier answer.
 */
export async function observeEffect(
  { sleep }: Pick<RuntimeEnv, "sleep">,
  read: ReadOnce,
  check: EffectCheckRead,
  values: CallValues,
): Promise<JsonValue | undefined> {
  const args = fillTemplate(check.args, values);
  const expect = fillExpectation(check.expect, values);
  if (args === undefined || expect === undefined) return undefined;
  let last: JsonValue | undefined;
  let wait_ms = check.backoff_ms;
  for (let left = check.retries; ; left--) {
    try {
      last = await read({ tool: check.tool, arguments: args });
    } catch (error) {
      if (error instanceof ToolAnsweredError) last = errorAnswer(error.message);
    }
    const isThere = last !== undefined && effectMismatch(expect, last) === null;
    if (left <= 0 || isThere) return last === undefined ? undefined : expectedPart(expect, last);
    await sleep(wait_ms);
    wait_ms *= 2;
  }
}
