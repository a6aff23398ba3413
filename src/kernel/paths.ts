/**
 * Paths into a call: `$args.name`, `$result["any name"][0]`. They read own properties only. A manifest's templates
 * may also name what was read before the call, `$before.name`.
 */
import { invalid } from "./errors.ts";
import type { Json } from "./json.ts";

export type Root = "args" | "result" | "before";

export interface Path<R extends Root = Root> {
  readonly source: string;
  readonly root: R;
  readonly keys: readonly (string | number)[];
}

const START = /^\$(args|result|before)(?=$|[.[])/;
const SEGMENT = /\.([^.[\]"$\s]+)|\[(\d{1,9})\]|\[("(?:[^"\\]|\\.)*")\]/y;

export function tryPath(source: string): Path<"args" | "result"> | undefined {
  const path = tryTemplatePath(source);
  return path === undefined || path.root === "before" ? undefined : (path as Path<"args" | "result">);
}

/** A path as a manifest's templates may hold it. */
export function tryTemplatePath(source: string): Path | undefined {
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
  return { source, root: start[1] as Root, keys };
}

export function parsePath(source: string): Path<"args" | "result"> {
  const path = tryPath(source);
  if (path === undefined) {
    throw invalid(
      `${JSON.stringify(source)} is not a path; write $args.name, $result.name, $args["any name"] or $args.list[0]`,
    );
  }
  return path;
}

/** Of a text that a manifest was found to hold as a path. */
export function parseTemplatePath(source: string): Path {
  const path = tryTemplatePath(source);
  if (path === undefined) throw invalid(`${JSON.stringify(source)} is not a path`);
  return path;
}

/** The value at the path, or undefined where any part of it is missing. */
export function readKeys(value: Json | undefined, keys: readonly (string | number)[]): Json | undefined {
  let here: Json | undefined = value;
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
  readonly args: Json | undefined;
  readonly result: Json | undefined;
  readonly before?: Json | undefined;
}

export function readPath({ root, keys }: Path, values: CallValues): Json | undefined {
  return readKeys(values[root], keys);
}

/**
 * Fills a template: every string that is a path becomes the value there. Answers undefined when a
 * path leads nowhere, because an undo with a missing argument must not run.
 */
export function fillTemplate(template: Json, values: CallValues): Json | undefined {
  if (typeof template === "string") {
    const path = tryTemplatePath(template);
    return path === undefined ? template : readPath(path, values);
  }
  if (Array.isArray(template)) {
    const out: Json[] = [];
    for (const item of template) {
      const filled = fillTemplate(item, values);
      if (filled === undefined) return undefined;
      out.push(filled);
    }
    return out;
  }
  if (template !== null && typeof template === "object") {
    const out: { [key: string]: Json } = {};
    for (const key of Object.keys(template)) {
      const filled = fillTemplate(template[key]!, values);
      if (filled === undefined) return undefined;
      out[key] = filled;
    }
    return out;
  }
  return template;
}

/** Every path that a template names. */
export function templatePaths(template: Json): string[] {
  if (typeof template === "string") return tryTemplatePath(template) === undefined ? [] : [template];
  if (template === null || typeof template !== "object") return [];
  return Object.values(template).flatMap(templatePaths);
}
