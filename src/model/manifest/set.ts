/** Puts manifests together into the set the engine asks: one active version a tool, found in one step. */
import { valueHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import type { Lifecycle, Manifest, ManifestSet } from "./types.ts";
import { compareVersions } from "./version.ts";

/** Which lifecycle speaks for a tool first; within one, the newest version does. */
const STANDING: Readonly<Record<Lifecycle, number>> = { approved: 2, deprecated: 1, draft: 0 };

export function manifestSet(manifests: readonly Manifest[]): ManifestSet {
  const active = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const other = active.get(manifest.tool);
    if (other === undefined || outranks(manifest, other)) active.set(manifest.tool, manifest);
  }
  const hashes = new WeakMap<Manifest, string>();
  return {
    active: (tool) => active.get(tool),
    hashOf(manifest) {
      let hash = hashes.get(manifest);
      if (hash === undefined) {
        hash = manifestHash(manifest);
        hashes.set(manifest, hash);
      }
      return hash;
    },
    all: [...manifests],
    permissions: [...new Set(manifests.map(({ permission }) => permission))].sort(),
  };
}

/** The content address of a normalised manifest: two spellings of one declaration have the same. */
function manifestHash(manifest: Manifest): string {
  return valueHash(manifest as unknown as Json);
}

function outranks(a: Manifest, b: Manifest): boolean {
  const standing = STANDING[a.lifecycle] - STANDING[b.lifecycle];
  return standing !== 0 ? standing > 0 : compareVersions(a.version, b.version) > 0;
}
