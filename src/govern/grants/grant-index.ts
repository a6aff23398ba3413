/**
 * Index of grants by tool and actor. A grant is in a bucket for each pair of names, or of literal prefixes of its
 * globs. One small document lists the existing kinds of buckets, and a call reads at most one bucket of each kind.
 */

import { conflictError, invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { compileGlob, globMatches } from "../../kernel/text/glob.ts";
import { isExpired } from "../expiry.ts";
import type { GrantBucketEntry, GrantShapes } from "../port/docs.ts";
import type { StoreTx } from "../port/store.ts";
import type { GrantDoc } from "./grant.ts";

const SHAPES_KEY = "all";
/** Literal prefixes are cut to one of these lengths, so that there are few kinds of buckets. */
const CUTS = [64, 16, 4, 0] as const;
const EXACT = "=";

/** `kind` is `=` for a name, or the length of a literal prefix. */
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
  if (tools.length * actors.length > SERVICE_LIMITS.grant_alternatives)
    throw invalidError(
      `match: its braces stand for ${tools.length * actors.length} pairs of tool and actor; at most ${SERVICE_LIMITS.grant_alternatives}, so create several grants`,
    );
  const places = tools.flatMap((one) => actors.map((other) => placeOf(one, other)));
  return [...new Map(places.map((place) => [place.key, place])).values()];
}

/** Reads every bucket for a grant's match. Throws if one of them is full. */
export function grantBuckets(tx: StoreTx, match: GrantDoc["match"], now: number) {
  return placesOf(match).map((place) => {
    const all = tx.get("grant_buckets", place.key)?.grants ?? [];
    const live = all.filter((entry) => !isExpired(entry, now));
    if (live.length >= SERVICE_LIMITS.grants_alike)
      throw conflictError(
        "grants_alike",
        `${SERVICE_LIMITS.grants_alike} grants for tools and actors like these are active; revoke some, or wait until they expire`,
      );
    return { ...place, all, live };
  });
}

/** Adds a grant to the index and removes ended ones from the same buckets. */
export function addGrantToIndex(tx: StoreTx, { id, expires_ms, match }: GrantDoc, now: number): void {
  for (const { shape, key, all, live } of grantBuckets(tx, match, now)) {
    tx.put("grant_buckets", key, { grants: [...live, { id, expires_ms, match }] });
    if (all.length === 0) countShape(tx, shape, 1);
  }
}

/** Removes an ended grant from the index. */
export function removeGrantFromIndex(tx: StoreTx, { id, match }: GrantDoc): void {
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

function countShape(tx: StoreTx, shape: string, by: 1 | -1): void {
  const shapes: GrantShapes = { ...tx.get("grant_shapes", SHAPES_KEY) };
  const count = (shapes[shape] ?? 0) + by;
  if (count > 0) shapes[shape] = count;
  else delete shapes[shape];
  tx.put("grant_shapes", SHAPES_KEY, shapes);
}

/** Ids of the unexpired grants for this tool and actor, the earliest expiry first. */
export function findGrantIds(tx: StoreTx, tool: string, actor: string, now: number): string[] {
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
      const { match, id } = entry;
      if (!isExpired(entry, now) && globMatches(match.tool, tool) && globMatches(match.actor, actor))
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
