/**
 * Finds out whether a push loses commits. A push has no flag for force, but its pack contains the new commits: if they
 * lead back to the old commit, none is lost.
 */
import { createHash } from "node:crypto";
import { type Inflate, inflateSync } from "node:zlib";

/** `unknown` counts as true in a policy. */
export type ForcedPush = boolean | "unknown";

export interface RefUpdate {
  readonly from: string;
  readonly to: string;
}

const MAX_OBJECTS = 20_000;
const MAX_OBJECT_BYTES = 16_777_216;
const TYPE = { commit: 1, offset_delta: 6, ref_delta: 7 } as const;
const CHECKSUM_BYTES = { 40: 20, 64: 32 } as const;
const ZERO_ID = /^0+$/;

/** `pack`: everything after the list of refs; undefined if it is too long to read. */
export function forcedPush(updates: readonly RefUpdate[], pack: Buffer | undefined): ForcedPush {
  const moved = updates.filter(({ from, to }) => !ZERO_ID.test(from) && !ZERO_ID.test(to));
  if (moved.length === 0) return false;
  const parents = pack === undefined ? null : commitParents(pack, moved[0]!.to.length as 40 | 64);
  if (parents === null) return "unknown";
  const found = moved.map((update) => losesCommits(update, parents));
  if (found.includes(true)) return true;
  return found.includes("unknown") ? "unknown" : false;
}

/** Certain only where the pack shows it: it leads to the old commit, or to the begin of a history without it. */
function losesCommits({ from, to }: RefUpdate, parents: ReadonlyMap<string, readonly string[]>): ForcedPush {
  const seen = new Set<string>();
  const open = [to];
  let isWhole = true;
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    if (id === from) return false;
    if (seen.has(id)) continue;
    seen.add(id);
    const above = parents.get(id);
    if (above === undefined) isWhole = false;
    else open.push(...above);
  }
  return isWhole ? true : "unknown";
}

/** Parents of the commits in the pack. Null for a pack that cannot be read. */
function commitParents(pack: Buffer, id_chars: 40 | 64): Map<string, string[]> | null {
  const parents = new Map<string, string[]>();
  if (pack.length === 0) return parents;
  if (pack.length < 12 || pack.toString("latin1", 0, 4) !== "PACK") return null;
  const count = pack.readUInt32BE(8);
  if (count > MAX_OBJECTS) return null;
  let at = 12;
  try {
    for (let n = 0; n < count; n++) {
      const { type, data_at } = objectHeader(pack, at, CHECKSUM_BYTES[id_chars]);
      // With `info` the result has two members, which its type does not say.
      const { buffer, engine } = inflateSync(pack.subarray(data_at), {
        info: true,
        maxOutputLength: MAX_OBJECT_BYTES,
      }) as unknown as { buffer: Buffer; engine: Inflate };
      at = data_at + engine.bytesWritten;
      if (type === TYPE.commit) parents.set(commitId(buffer, id_chars), parentsOf(buffer));
    }
  } catch {
    return null;
  }
  return parents;
}

function objectHeader(pack: Buffer, start: number, base_bytes: number): { type: number; data_at: number } {
  let at = start;
  const first = pack.readUInt8(at++);
  const type = (first >> 4) & 7;
  for (let byte = first; (byte & 0x80) !== 0; ) byte = pack.readUInt8(at++);
  if (type === TYPE.offset_delta) while ((pack.readUInt8(at++) & 0x80) !== 0);
  return { type, data_at: type === TYPE.ref_delta ? at + base_bytes : at };
}

const commitId = (data: Buffer, id_chars: 40 | 64): string =>
  createHash(id_chars === 40 ? "sha1" : "sha256")
    .update(`commit ${data.length}\0`)
    .update(data)
    .digest("hex");

function parentsOf(commit: Buffer): string[] {
  const head = commit.toString("latin1").split("\n\n", 1)[0]!;
  return [...head.matchAll(/^parent ([0-9a-f]+)$/gm)].map(([, id]) => id!);
}
