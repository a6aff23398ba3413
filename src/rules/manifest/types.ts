/** A tool's manifest as the engine reads it: the output of the schema, with every default. */
import type * as z from "zod";
import type { manifestEntrySchema } from "./schema.ts";

export type ToolManifest = z.output<typeof manifestEntrySchema>;
export type ToolEffect = ToolManifest["effect"];
export type ManifestLifecycle = ToolManifest["lifecycle"];
export type BlastRadius = NonNullable<ToolManifest["risk"]["blast_radius"]>;
export type BeforeSpec = NonNullable<ToolManifest["before"]>;
export type CardTemplate = NonNullable<ToolManifest["card"]>;

/** Active manifests: the newest approved version of each tool, or its substitute. */
export interface ManifestSet {
  /**
   * Active manifest of a tool. Returns a draft only if there is no approved or deprecated version; the engine decides
   * if a draft counts in the run's mode.
   */
  active(tool: string): ToolManifest | undefined;
  /** Content address of a manifest in this set. */
  hashOf(manifest: ToolManifest): string;
  /** Every entry in file order, including superseded versions and drafts. */
  readonly all: readonly ToolManifest[];
  /** All permissions that the manifests declare, sorted. */
  readonly permissions: readonly string[];
}
