/**
 * Finding the grants that could cover a call without looking at the others. A grant lies in a bucket for the
 * names, or the literal starts of the globs, that it gives for tool and actor; which kinds of buckets there are
 * at all stands in one small document. A call looks into at most one bucket of each kind.
 */
import { conflict, invalid } from "../../kernel/errors.ts";
import { compileGlob, globMatches } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { GrantDoc } from "../../model/grant.ts";
import type { GrantBucketEntry, GrantShapes } from "../../port/docs.ts";
import type { Tx } from "../../port/store.ts";

const SHAPES_KEY = "all";
/** Literal starts are cut to one of these lengths, so that there are few kinds of buckets whatever people write. */
const CUTS = [64, 16, 4, 0] as const;
const EXACT = "=";

/** `=` for a name, else how much of a literal start is looked at. */
interface Part {
  kind: string;
  text: string;
}

interface Place {
  shape: string;
  key: string;
}

function partsOf(glob: string): Part[] {
  return compileGlob(glob).prefixes.map(({ prefix, exact }) => {
    if (exact) return { kind: EXACT, text: prefix };
    const cut = CUTS.find((length) => length <= prefix.length)!;
    return { kind: String(cut), text: prefix.slice(0, cut) };
  });
}

const placeOf = (tool: Part, actor: Part): Place => {
  const shape = `${tool.kind} ${actor.kind}`;
  return { shape, key: JSON.stringify([shape, tool.text, actor.text]) };
};

function placesOf({ tool, actor }: GrantDoc["match"]): Place[] {
  const [tools, actors] = [partsOf(tool), partsOf(actor)];
  if (tools.length * actors.length > LIMITS.grant_alternatives)
    throw invalid(
      `match: its braces stand for ${tools.length * actors.length} pairs of tool and actor; at most ${LIMITS.grant_alternatives}, so give several grants`,
    );
  const places = tools.flatMap((one) => actors.map((other) => placeOf(one, other)));
  return [...new Map(places.map((place) => [place.key, place])).values()];
}

/** What lies in each place that a grant would lie in; throws where one of them has no room. */
export function roomFor(tx: Tx, match: GrantDoc["match"], now: number) {
  return placesOf(match).map((place) => {
    const all = tx.get("grant_buckets", place.key)?.grants ?? [];
    const live = all.filter((entry) => now < entry.expires_ms);
    if (live.length >= LIMITS.grants_alike)
      throw conflict(
        "grants_alike",
        `${LIMITS.grants_alike} grants for tools and actors like these are in force; revoke some, or let them end`,
      );
    return { ...place, all, live };
  });
}

/** Puts a grant where calls find it; ended ones that lie in the same place go. */
export function enterGrant(tx: Tx, { id, expires_ms, match }: GrantDoc, now: number): void {
  for (const { shape, key, all, live } of roomFor(tx, match, now)) {
    tx.put("grant_buckets", key, { grants: [...live, { id, expires_ms, match }] });
    if (all.length === 0) countShape(tx, shape, 1);
  }
}

/** Takes an ended grant away again. */
export function removeGrant(tx: Tx, { id, match }: GrantDoc): void {
  for (const { shape, key } of placesOf(match)) {
    const all = tx.get("grant_buckets", key)?.grants ?? [];
    const left = all.filter((entry) => entry.id !== id);
    if (left.length === all.length) continue;
    if (left.length > 0) tx.put("grant_buckets", key, { grants: left });
    else {
      tx.delete("grant_buckets", key);
      countShape(tx, shape, -1);
    }
  }
}

function countShape(tx: Tx, shape: string, by: 1 | -1): void {
  const shapes: GrantShapes = { ...tx.get("grant_shapes", SHAPES_KEY) };
  const count = (shapes[shape] ?? 0) + by;
  if (count > 0) shapes[shape] = count;
  else delete shapes[shape];
  tx.put("grant_shapes", SHAPES_KEY, shapes);
}

/** Ids of the grants that name this tool and this actor and are not past their time, the one that ends first first. */
export function namedGrants(tx: Tx, tool: string, actor: string, now: number): string[] {
  const shapes = tx.get("grant_shapes", SHAPES_KEY);
  if (shapes === undefined) return [];
  const found = new Map<string, GrantBucketEntry>();
  const keys = Object.keys(shapes).map((shape) => {
    const [of_tool, of_actor] = shape.split(" ") as [string, string];
    return placeOf(cutTo(of_tool, tool), cutTo(of_actor, actor)).key;
  });
  tx.expect(keys.map((key) => ["grant_buckets", key]));
  for (const key of keys) {
    for (const entry of tx.get("grant_buckets", key)?.grants ?? []) {
      const { match, expires_ms, id } = entry;
      if (now < expires_ms && globMatches(match.tool, tool) && globMatches(match.actor, actor))
        found.set(id, entry);
    }
  }
  return [...found.values()]
    .sort((a, b) => a.expires_ms - b.expires_ms || (a.id < b.id ? -1 : 1))
    .map(({ id }) => id);
}

const cutTo = (kind: string, name: string): Part => ({
  kind,
  text: kind === EXACT ? name : name.slice(0, Number(kind)),
});
