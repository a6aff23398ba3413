/**
 * Finds the values in JSON that can be followed from a result into a later call: addresses, URLs, hosts, account and
 * phone numbers, ids, file names, amounts, and sequences of five words. Pure, and linear in the length of the text.
 */
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { type PausableWork, runAtOnce, textUnits, UNITS_PER_PAUSE } from "../../kernel/pausable-work.ts";
import { TextValues } from "./text-values.ts";
import type { TraceOptions, TraceValues } from "./value-list.ts";

export function findTraceValues(value: JsonValue, root: string, options: TraceOptions): TraceValues {
  return runAtOnce(findingTraceValues(value, root, options));
}

export function* findingTraceValues(
  value: JsonValue,
  root: string,
  options: TraceOptions,
): PausableWork<TraceValues> {
  const finder = new TextValues(options);
  const open: { here: JsonValue; path: string }[] = [{ here: value, path: root }];
  for (let units = 0; ; ) {
    const next = open.pop();
    if (next === undefined) return finder.found;
    const { here, path } = next;
    units += typeof here === "string" ? textUnits(here) : 1;
    if (units >= UNITS_PER_PAUSE) {
      units = 0;
      yield;
    }
    if (typeof here === "string") finder.addText(here, path);
    else if (typeof here === "number") finder.addNumber(here, path);
    else if (Array.isArray(here)) {
      for (let i = here.length - 1; i >= 0; i--) open.push({ here: here[i]!, path: `${path}[]` });
    } else if (here !== null && typeof here === "object") pushMembers(open, here, path, finder);
  }
}

/** Names of members are texts, too: an agent could put a value there. */
function pushMembers(
  open: { here: JsonValue; path: string }[],
  object: JsonObject,
  path: string,
  finder: TextValues,
): void {
  const names = Object.keys(object);
  for (let i = names.length - 1; i >= 0; i--) {
    const name = names[i]!;
    const plain = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name);
    if (!plain || /\d/.test(name)) finder.addText(name, path);
    open.push({ here: object[name]!, path: `${path}.${plain ? name : "*"}` });
  }
}
