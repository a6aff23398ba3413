/**
 * Paths into a call: `$args.name`, `$result["any name"][0]`. They read own properties only. Manifest templates can also
 * refer to the state before the call: `$before.name`.
 */
import { invalidError } from "./errors.ts";
import type { JsonValue } from "./json/json.ts";

export type PathRoot = "args" | "result" | "before";

export interface ValuePath<R extends PathRoot = PathRoot> {
  readonly source: string;
  readonly root: R;
  readonly keys: readonly (string | number)[];
}

const START = /^\$(args|result|before)(?=$|[.[])/;
const SEGMENT = /\.([^.[\]"$\s]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]/y;

export function tryPath(source: string): ValuePath<"args" | "result"> | undefined {
  const path = tryTemplatePath(source);
  return path === undefined || path.root === "before" ? undefined : (path as ValuePath<"args" | "result">);
}

/** Parses a path as manifest templates allow it. */
export function tryTemplatePath(source: string): ValuePath | undefined {
  const start = START.exec(source);
  if (start === null) return undefined;
  const keys: (string | number)[] = [];
  let at = start[0].length;
  while (at < source.length) {
    SEGMENT.lastIndex = at;
    const match = SEGMENT.exec(source);
    if (match === null) return undefined;
    const [whole, name, index, quoted] = match;
    if (name !== undefined) keys.push(name);
    else if (index !== undefined) keys.push(Number(index));
    else {
      try {
        keys.push(JSON.parse(quoted!) as string);
      } catch {
        return undefined;
      }
    }
    at += whole.length;
  }
  return { source, root: start[1] as PathRoot, keys };
}

export function parsePath(source: string): ValuePath<"args" | "result"> {
  const path = tryPath(source);
  if (path === undefined) {
    throw invalidError(
      `${JSON.stringify(source)} is not a path; write $args.name, $result.name, $args["any name"] or $args.list[0]`,
    );
  }
  return path;
}

/** Parses a text that manifest validation has accepted as a path. */
export function parseTemplatePath(source: string): ValuePath {
  const path = tryTemplatePath(source);
  if (path === undefined) throw invalidError(`${JSON.stringify(source)} is not a path`);
  return path;
}

/** Returns the value at the path, or undefined if a part of the path is missing. */
export function readKeys(
  value: JsonValue | undefined,
  keys: readonly (string | number)[],
): JsonValue | undefined {
  let here: JsonValue | undefined = value;
  for (const key of keys) {
    if (here === null || typeof here !== "object") return undefined;
    if (Array.isArray(here)) {
      if (typeof key !== "number") return undefined;
      here = here[key];
    } else {
      const name = String(key);
      here = Object.hasOwn(here, name) ? here[name] : undefined;
    }
    if (here === undefined) return undefined;
  }
  return here;
}

export interface CallValues {
  readonly args: JsonValue | undefined;
  readonly result: JsonValue | undefined;
  readonly before?: JsonValue | undefined;
}

export function readPath({ root, keys }: ValuePath, values: CallValues): JsonValue | undefined {
  return readKeys(values[root], keys);
}

/**
 * Fills a template: replaces each string that is a path with the value there. Returns undefined if a value is missing,
 * because an undo with a missing argument must not run.
 */
export function fillTemplate(template: JsonValue, values: CallValues): JsonValue | undefined {
  if (typeof template === "string") {
    const path = tryTemplatePath(template);
    return path === undefined ? template : readPath(path, values);
  }
  if (Array.isArray(template)) {
    const out: JsonValue[] = [];
    for (const item of template) {
      const filled = fillTemplate(item, values);
      if (filled === undefined) return undefined;
      out.push(filled);
    }
    return out;
  }
  if (template !== null && typeof template === "object") {
    const out: { [key: string]: JsonValue } = {};
    for (const key of Object.keys(template)) {
      const filled = fillTemplate(template[key]!, values);
      if (filled === undefined) return undefined;
      out[key] = filled;
    }
    return out;
  }
  return template;
}

/** Lists every path in a template. */
export function templatePaths(template: JsonValue): string[] {
  if (typeof template === "string") return tryTemplatePath(template) === undefined ? [] : [template];
  if (template === null || typeof template !== "object") return [];
  return Object.values(template).flatMap(templatePaths);
}
