/** Classes of tools, and concrete calls to run through the decision function. */
import { compileGlob } from "../../../kernel/glob.ts";
import type { Json } from "../../../kernel/json.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import type { PolicyCall } from "../call.ts";
import type { PolicyTestDoc } from "../schema.ts";
import { labelInput } from "../tests.ts";
import { ALL_ARGUMENTS, isOfArguments, NO_CALL, textsFor } from "./domain.ts";
import type { Chosen } from "./search.ts";

export interface ToolClass {
  /** The one that is tried: a declared tool, or a name that an undeclared one could have. */
  tool: string;
  /** All declared tools that are seen alike. */
  declared: string[];
  /** Null for tools that no manifest declares: they may be anything. */
  labels: ToolLabels | null;
}

/** One tool for every way in which the globs and the manifests can see one. */
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
    const tool = undeclared(text, key, seen, declared) ?? undeclaredBeside(distinct, key, seen, declared);
    if (tool !== undefined) classes.set(key, { tool, declared: [], labels: null });
  }
  return [...classes.values()];
}

/** The text, or one like it that is no declared tool's name; undefined where there is none to be found. */
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

/** The same, where a name can only be of a certain length and the first ones of it are all declared. */
function undeclaredBeside(
  globs: readonly string[],
  key: string,
  seen: (tool: string) => string,
  declared: ReadonlyMap<string, ToolLabels>,
): string | undefined {
  if (!globs.some((glob) => glob.includes("?"))) return undefined;
  const names = [...declared.keys()].filter((name) => seen(name) === key);
  return textsFor(globs, names).find((text) => text !== "" && !declared.has(text) && seen(text) === key);
}

export interface Concrete {
  call: PolicyCall;
  at_ms: number;
  /** Whether every argument stands for itself alone. */
  alone: boolean;
}

/** The call that the chosen atoms describe; `pick` takes their first, second or third value. */
export function concrete({ tool }: ToolClass, chosen: Chosen, pick = 0): Concrete {
  const call = { ...NO_CALL, tool } as { -readonly [K in keyof PolicyCall]: PolicyCall[K] };
  const args: [string, Json][] = [];
  let whole: Json | undefined;
  let at_ms = 0;
  let alone = true;
  for (const [{ name }, { values }] of chosen) {
    const chosenValue = values[Math.min(pick, values.length - 1)]!;
    const value = chosenValue.value as Json | undefined;
    if (name === "at") at_ms = value as number;
    else if (!isOfArguments(name)) (call as Record<string, unknown>)[name] = value;
    else {
      if (!chosenValue.alone) alone = false;
      if (name === ALL_ARGUMENTS) whole = value;
      else if (value !== undefined) args.push([name.slice(5), value]);
    }
  }
  call.args = whole ?? Object.fromEntries(args);
  return { call, at_ms, alone };
}

export type ExampleInput = PolicyTestDoc["input"];

/** The call as the input of a policy test: it can be copied into the policy as it is. */
export function exampleOf({ call, at_ms }: Concrete, timed: boolean): ExampleInput {
  return {
    tool: call.tool,
    args: call.args,
    actor: call.actor,
    ...(call.tenant === null ? {} : { tenant: call.tenant }),
    ...(call.environment === null ? {} : { environment: call.environment }),
    ...labelInput(call),
    ...(timed ? { at: new Date(at_ms).toISOString() } : {}),
  };
}
