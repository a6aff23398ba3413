/** Builds the manifest set that the engine uses: one active version per tool, found in one lookup. */

import { valueHash } from "../../kernel/hash.ts";
import { asJson } from "../../kernel/json/json.ts";
import type { ManifestLifecycle, ManifestSet, ToolManifest } from "./types.ts";
import { compareVersions } from "./version.ts";

/** Precedence of lifecycles; within a lifecycle, the newest version is active. */
const LIFECYCLE_RANK: Readonly<Record<ManifestLifecycle, number>> = { approved: 2, deprecated: 1, draft: 0 };

export function manifestSet(manifests: readonly ToolManifest[]): ManifestSet {
  const active = new Map<string, ToolManifest>();
  for (const manifest of manifests) {
    const other = active.get(manifest.tool);
    if (other === undefined || outranks(manifest, other)) active.set(manifest.tool, manifest);
  }
  const hashes = new WeakMap<ToolManifest, string>();
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

/** Content address of a normalised manifest, equal for two spellings of the same declaration. */
function manifestHash(manifest: ToolManifest): string {
  return valueHash(asJson(manifest));
}

function outranks(a: ToolManifest, b: ToolManifest): boolean {
  const rank = LIFECYCLE_RANK[a.lifecycle] - LIFECYCLE_RANK[b.lifecycle];
  return rank !== 0 ? rank > 0 : compareVersions(a.version, b.version) > 0;
}
