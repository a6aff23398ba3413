/** Representative values of one argument, for conditions on it and on its parts. */
import { toCanonicalJson } from "../../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../../kernel/json/json.ts";
import { LruMap } from "../../../../kernel/lru.ts";
import { parsePath } from "../../../../kernel/paths.ts";
import type { ConditionDoc } from "../entries.ts";
import {
  type CandidateValue,
  candidateValues,
  freshList,
  freshObject,
  type ValueCondition,
} from "./candidate-values.ts";
import { UndecidableError } from "./machine.ts";

/** Maximum combinations of part values; above it the result is incomplete. */
const MAX_PARTS = 5_000;

/** `[0]` and `["0"]` name the same member of an object, but only the first names an element of a list. */
const TWO_WAYS = "conditions name a member of one argument both as a list index and as a text";

/** Largest list index that a condition can name here. */
const FURTHEST = 1_000;

interface Node {
  asked: ValueCondition[];
  amounts: number[];
  children: Map<string | number, Node>;
}

const empty = (): Node => ({ asked: [], amounts: [], children: new Map() });

export function argumentCandidates(
  conditions: readonly ConditionDoc[],
  amounts: readonly { path: string; max: number }[],
): CandidateValue[] {
  const key = JSON.stringify([conditions, amounts]);
  const known = knownValues.get(key);
  if (known !== undefined) return known;
  const root = empty();
  const at = (path: string): Node => {
    let node = root;
    for (const key of parsePath(path).keys.slice(1)) {
      let child = node.children.get(key);
      if (child === undefined) {
        child = empty();
        node.children.set(key, child);
      }
      node = child;
    }
    return node;
  };
  for (const { path, op, value } of conditions)
    at(path).asked.push({ op, value: value as JsonValue | undefined });
  for (const { path, max } of amounts) at(path).amounts.push(0, max);
  const starts = new Set([...conditions, ...amounts].map(({ path }) => typeof parsePath(path).keys[0]));
  if (starts.size > 1) throw new UndecidableError(TWO_WAYS);
  const values = valuesOf(root);
  knownValues.set(key, values);
  return values;
}

/** Cached, because many classes of tools need the same arguments. */
const knownValues = new LruMap<string, CandidateValue[]>(200);

function valuesOf({ asked, amounts, children }: Node): CandidateValue[] {
  const own = candidateValues(asked, amounts);
  if (children.size === 0) return own;
  if (asked.some(({ op }) => op === "contains" || op === "not_contains"))
    throw new UndecidableError("conditions check both the elements of a list and one of its indexes");
  let parts: { keys: (string | number)[]; values: CandidateValue[] }[] = [{ keys: [], values: [] }];
  for (const [key, child] of children) {
    const twin = [...children].find(([other]) => other !== key && String(other) === String(key));
    const values = valuesOf(twin === undefined ? child : together(child, twin[1]));
    parts = parts.flatMap((part) =>
      values.map((value) => ({ keys: [...part.keys, key], values: [...part.values, value] })),
    );
    if (parts.length > MAX_PARTS)
      throw new UndecidableError("conditions read too many parts of one argument");
  }
  const named = new Set(asked.flatMap(({ value }) => namedBy(value)));
  return [...own, ...parts.flatMap((part) => containers(part, named))];
}

/** Merges the conditions that two nodes have on the same value. */
function together(a: Node, b: Node): Node {
  const children = new Map(a.children);
  for (const [key, child] of b.children) children.set(key, together(children.get(key) ?? empty(), child));
  return { asked: [...a.asked, ...b.asked], amounts: [...a.amounts, ...b.amounts], children };
}

/**
 * Values that a condition compares an entire value with: its operand, and the elements of an operand that is a list.
 */
function namedBy(operand: JsonValue | undefined): string[] {
  if (operand === undefined) return [];
  return [operand, ...(Array.isArray(operand) ? operand : [])].map((one) => toCanonicalJson(one));
}

interface Parts {
  keys: (string | number)[];
  values: CandidateValue[];
}

/** Combines part values into an object, and into a list if all present keys are list indexes. */
function containers({ keys, values }: Parts, named: ReadonlySet<string>): CandidateValue[] {
  const present = keys.flatMap((key, i) =>
    values[i]!.value === undefined ? [] : [[key, values[i]!] as const],
  );
  const alone = present.every(([, value]) => value.alone);
  const object = Object.fromEntries(present.map(([key, { value }]) => [String(key), value!]));
  const made: CandidateValue[] = [{ value: object, alone }];
  // If a condition names this entire value, another value with the same parts is needed too.
  if (named.has(toCanonicalJson(object)))
    made.push({ value: freshObject(object, named, keys.map(String)), alone: false });
  const places = keys.filter((key) => typeof key === "number");
  // A list has no named members.
  if (places.length === 0 || present.some(([key]) => typeof key === "string")) return made;
  const list = listOf(new Map(present as [number, CandidateValue][]), places);
  if (list === undefined) return made;
  made.push({ value: list, alone });
  if (present.length === places.length && named.has(toCanonicalJson(list)))
    made.push({ value: freshList(list, named), alone: false });
  return made;
}

/** Builds a list. Lists have no holes: undefined if an absent index would precede a present one. */
function listOf(
  present: ReadonlyMap<number, CandidateValue>,
  places: readonly number[],
): JsonValue[] | undefined {
  if (Math.max(...places) > FURTHEST) throw new UndecidableError("a condition reads too far into a list");
  const length = Math.max(-1, ...present.keys()) + 1;
  if (places.some((place) => place < length && !present.has(place))) return undefined;
  return Array.from({ length }, (_, place) => (present.has(place) ? present.get(place)!.value! : 0));
}
