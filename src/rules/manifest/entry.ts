/** Manifest entry between file and set, with its problems. */
import type { ToolManifest } from "./types.ts";

export interface ManifestFile {
  readonly file: string;
  readonly text: string;
}

export interface CheckedEntry {
  readonly file: string;
  readonly line: number;
  /** `tool crm.create`, or `entry 3` without a usable name; null for a file that is not a list. */
  readonly label: string | null;
  /** Line of its prerequisites. */
  readonly requires_line: number;
  /** Line of its `before` read. */
  readonly before_line: number;
  /** Absent if the entry alone has problems. */
  readonly manifest: ToolManifest | undefined;
  /** In line order; later checks can add problems. */
  readonly problems: { line: number; text: string }[];
}
