/** Classes of tools, and concrete calls for the decision function. */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { compileGlob } from "../../../kernel/text/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { argsForPolicy, type PolicyCall } from "../call.ts";
import type { PolicyTestDoc } from "../schema.ts";
import { labelInput } from "../tests/tests.ts";
import { ALL_ARGUMENTS, isOfArguments, NO_CALL, textsFor } from "./domain.ts";
import type { ChosenAtoms } from "./search.ts";

export interface ToolClass {
  /** Representative of the class: a declared tool, or a name that an undeclared tool could have. */
  tool: string;
  /** All declared tools of the class. */
  declared: string[];
  /** Null for tools without a manifest, whose labels can be anything. */
  labels: ToolLabels | null;
}

/** Builds one class for every combination of matching globs and labels. */
export function toolClasses(
  globs: readonly string[],
  declared: ReadonlyMap<string, ToolLabels>,
): ToolClass[] {
  const distinct = [...new Set(globs)];
  const compiled = distinct.map(compileGlob);
  const seen = (tool: string) => compiled.map((glob) => (glob.test(tool) ? "1" : "0")).join("");
  const classes = new Map<string, ToolClass>();
  for (const [tool, labels] of declared) {
    const key = seen(tool) + JSON.stringify(labels);
    const known = classes.get(key);
    if (known === undefined) classes.set(key, { tool, declared: [tool], labels });
    else known.declared.push(tool);
  }
  for (const text of textsFor(distinct)) {
    const key = seen(text);
    if (classes.has(key)) continue;
    const tool = undeclared(text, key, seen, declared) ?? undeclaredAmong(distinct, key, seen, declared);
    if (tool !== undefined) classes.set(key, { tool, declared: [], labels: null });
  }
  return [...classes.values()];
}

/** Finds an undeclared name that the same globs match: the text or a variation of it. Undefined if there is none. */
function undeclared(
  text: string,
  key: string,
  seen: (tool: string) => string,
  declared: ReadonlyMap<string, ToolLabels>,
): string | undefined {
  if (text !== "" && !declared.has(text)) return text;
  for (let place = text.length; place >= 0; place--) {
    for (const char of "xq0_") {
      const longer = text.slice(0, place) + char + text.slice(place);
      if (!declared.has(longer) && seen(longer) === key) return longer;
    }
  }
  return undefined;
}

/** Finds an undeclared name when globs fix its length and the first candidates are all declared. */
function undeclaredAmong(
  globs: readonly string[],
  key: string,
  seen: (tool: string) => string,
  declared: ReadonlyMap<string, ToolLabels>,
): string | undefined {
  if (!globs.some((glob) => glob.includes("?"))) return undefined;
  const names = [...declared.keys()].filter((name) => seen(name) === key);
  return textsFor(globs, names).find((text) => text !== "" && !declared.has(text) && seen(text) === key);
}

export interface ConcreteCall {
  call: PolicyCall;
  at_ms: number;
  /** True if every argument value is the only one of its kind. */
  alone: boolean;
}

/** Builds the call that the chosen atoms describe; `pick` selects their first, second or third value. */
export function toConcreteCall({ tool }: ToolClass, chosen: ChosenAtoms, pick = 0): ConcreteCall {
  const call = { ...NO_CALL, tool } as { -readonly [K in keyof PolicyCall]: PolicyCall[K] };
  const args: [string, JsonValue][] = [];
  let whole: JsonValue | undefined;
  let at_ms = 0;
  let alone = true;
  for (const [{ name }, { values }] of chosen) {
    const chosenValue = values[Math.min(pick, values.length - 1)]!;
    const value = chosenValue.value as JsonValue | undefined;
    if (name === "at") at_ms = value as number;
    else if (!isOfArguments(name)) (call as Record<string, unknown>)[name] = value;
    else {
      if (!chosenValue.alone) alone = false;
      if (name === ALL_ARGUMENTS) whole = value;
      else if (value !== undefined) args.push([name.slice(5), value]);
    }
  }
  call.args = argsForPolicy(tool, whole ?? Object.fromEntries(args));
  return { call, at_ms, alone };
}

export type ExampleInput = PolicyTestDoc["input"];

/** Converts the call to the input of a policy test, ready to copy into the policy. */
export function toExampleInput({ call, at_ms }: ConcreteCall, timed: boolean): ExampleInput {
  return {
    tool: call.tool,
    args: call.args,
    actor: call.actor,
    ...(call.acting === undefined || call.acting.length === 0 ? {} : { acting: [...call.acting] }),
    ...(call.tenant === null ? {} : { tenant: call.tenant }),
    ...(call.environment === null ? {} : { environment: call.environment }),
    ...(call.sandboxed === undefined ? {} : { sandboxed: true }),
    ...labelInput(call),
    ...(timed ? { at: new Date(at_ms).toISOString() } : {}),
  };
}
