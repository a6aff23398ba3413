/** The values that one argument can have, where conditions look at it and into it. */
import type { Json } from "../../../kernel/json.ts";
import { Lru } from "../../../kernel/lru.ts";
import { parsePath } from "../../../kernel/paths.ts";
import type { ConditionDoc } from "./entries.ts";
import { Undecidable } from "./machine.ts";
import { type Asked, type Candidate, candidates } from "./values.ts";

/** Values made of parts that are looked at each; beyond it the question is too large. */
const MOST_PARTS = 5_000;

interface Node {
  asked: Asked[];
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
    const values = valuesOf(child);
    parts = parts.flatMap((part) =>
      values.map((value) => ({ keys: [...part.keys, key], values: [...part.values, value] })),
    );
    if (parts.length > MOST_PARTS) throw new Undecidable("conditions look at too many parts of one argument");
  }
  return [...own, ...parts.flatMap(containers)];
}

/** The parts put together: as an object, and as a list where their names are places. */
function containers({ keys, values }: { keys: (string | number)[]; values: Candidate[] }): Candidate[] {
  const present = keys.flatMap((key, i) =>
    values[i]!.value === undefined ? [] : [[key, values[i]!] as const],
  );
  const alone = present.every(([, value]) => value.alone);
  const object = Object.fromEntries(present.map(([key, { value }]) => [String(key), value!]));
  const made: Candidate[] = [{ value: object, alone }];
  if (keys.every((key) => typeof key === "number")) {
    const list: Json[] = [];
    for (const [key, { value }] of present) list[key as number] = value!;
    // A list has no holes, so what is missing can only be behind its end.
    if (list.length <= 1_000 && list.length === present.length) made.push({ value: list, alone });
  }
  return made;
}
