/** The values that one argument can have, where conditions look at it and into it. */
import { canonical } from "../../../kernel/canonical.ts";
import type { Json } from "../../../kernel/json.ts";
import { Lru } from "../../../kernel/lru.ts";
import { parsePath } from "../../../kernel/paths.ts";
import type { ConditionDoc } from "./entries.ts";
import { Undecidable } from "./machine.ts";
import { type Candidate, candidates, freshList, freshObject, type ValueCondition } from "./values.ts";

/** Values made of parts that are looked at each; beyond it the question is too large. */
const MOST_PARTS = 5_000;

/** `[0]` and `["0"]` are one member of an object, and of a list the second is nothing. */
const TWO_WAYS = "conditions name one argument as a place of a list and as a text";

/** The last place of a list that a condition may look at. */
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
): Candidate[] {
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
  for (const { path, op, value } of conditions) at(path).asked.push({ op, value: value as Json | undefined });
  for (const { path, max } of amounts) at(path).amounts.push(0, max);
  const starts = new Set([...conditions, ...amounts].map(({ path }) => typeof parsePath(path).keys[0]));
  if (starts.size > 1) throw new Undecidable(TWO_WAYS);
  const values = valuesOf(root);
  knownValues.set(key, values);
  return values;
}

/** Class after class of tools asks for the same arguments. */
const knownValues = new Lru<string, Candidate[]>(200);

function valuesOf({ asked, amounts, children }: Node): Candidate[] {
  const own = candidates(asked, amounts);
  if (children.size === 0) return own;
  if (asked.some(({ op }) => op === "contains" || op === "not_contains"))
    throw new Undecidable("conditions ask what a list contains and what stands at one of its places");
  let parts: { keys: (string | number)[]; values: Candidate[] }[] = [{ keys: [], values: [] }];
  for (const [key, child] of children) {
    const twin = [...children].find(([other]) => other !== key && String(other) === String(key));
    const values = valuesOf(twin === undefined ? child : together(child, twin[1]));
    parts = parts.flatMap((part) =>
      values.map((value) => ({ keys: [...part.keys, key], values: [...part.values, value] })),
    );
    if (parts.length > MOST_PARTS) throw new Undecidable("conditions look at too many parts of one argument");
  }
  const named = new Set(asked.flatMap(({ value }) => namedBy(value)));
  return [...own, ...parts.flatMap((part) => containers(part, named))];
}

/** One value, of which both ask. */
function together(a: Node, b: Node): Node {
  const children = new Map(a.children);
  for (const [key, child] of b.children) children.set(key, together(children.get(key) ?? empty(), child));
  return { asked: [...a.asked, ...b.asked], amounts: [...a.amounts, ...b.amounts], children };
}

/** What a condition may compare a whole value with: its operand, or one of them. */
function namedBy(operand: Json | undefined): string[] {
  if (operand === undefined) return [];
  return [operand, ...(Array.isArray(operand) ? operand : [])].map((one) => canonical(one));
}

interface Parts {
  keys: (string | number)[];
  values: Candidate[];
}

/** The parts put together: as an object, and as a list where those that are there stand at places of one. */
function containers({ keys, values }: Parts, named: ReadonlySet<string>): Candidate[] {
  const present = keys.flatMap((key, i) =>
    values[i]!.value === undefined ? [] : [[key, values[i]!] as const],
  );
  const alone = present.every(([, value]) => value.alone);
  const object = Object.fromEntries(present.map(([key, { value }]) => [String(key), value!]));
  const made: Candidate[] = [{ value: object, alone }];
  // Where the whole is compared, too, there is also one that has these parts and is not what it is compared with.
  if (named.has(canonical(object)))
    made.push({ value: freshObject(object, named, keys.map(String)), alone: false });
  const places = keys.filter((key) => typeof key === "number");
  // A name is nowhere in a list.
  if (places.length === 0 || present.some(([key]) => typeof key === "string")) return made;
  const list = listOf(new Map(present as [number, Candidate][]), places);
  if (list === undefined) return made;
  made.push({ value: list, alone });
  if (present.length === places.length && named.has(canonical(list)))
    made.push({ value: freshList(list, named), alone: false });
  return made;
}

/** A list has no holes: where a place is missing that a condition looks at, nothing can stand behind it. */
function listOf(present: ReadonlyMap<number, Candidate>, places: readonly number[]): Json[] | undefined {
  if (Math.max(...places) > FURTHEST) throw new Undecidable("a condition looks far into a list");
  const length = Math.max(-1, ...present.keys()) + 1;
  if (places.some((place) => place < length && !present.has(place))) return undefined;
  return Array.from({ length }, (_, place) => (present.has(place) ? present.get(place)!.value! : 0));
}
