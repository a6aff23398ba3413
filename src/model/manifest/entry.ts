/** A manifest entry on its way from a file into a set, with what was found wrong with it. */
import type { Manifest } from "./types.ts";

export interface ManifestFile {
  readonly file: string;
  readonly text: string;
}

export interface CheckedEntry {
  readonly file: string;
  readonly line: number;
  /** `tool crm.create`, or `entry 3` where it has no usable name; null for a file that is no list. */
  readonly label: string | null;
  /** Where its prerequisites stand. */
  readonly requires_line: number;
  /** Where its read before the call stands. */
  readonly before_line: number;
  /** Absent where the entry has problems of its own. */
  readonly manifest: Manifest | undefined;
  /** In the order of the lines; later checks may still add to them. */
  readonly problems: { line: number; text: string }[];
}
