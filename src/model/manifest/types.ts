/** What a tool declares about itself, as the engine reads it: normalised, with every default filled in. */
import type { Json } from "../../kernel/json.ts";
import type { CardTemplate } from "../card/template.ts";

export const EFFECTS = ["read", "idempotent", "reversible", "compensable", "irreversible"] as const;
export type Effect = (typeof EFFECTS)[number];

export const LIFECYCLES = ["draft", "approved", "deprecated"] as const;
export type Lifecycle = (typeof LIFECYCLES)[number];

export const BLAST_RADII = ["none", "single", "team", "org", "external"] as const;
export type BlastRadius = (typeof BLAST_RADII)[number];

export interface Compensation {
  tool: string;
  /** A template whose strings may be paths into the original call. */
  args: { [name: string]: Json };
  kind: "inverse" | "compensation";
  residue: string[];
  requires_approval: boolean;
  /** What undoes the call where nothing was there before it. */
  when_absent?: { tool: string; args: { [name: string]: Json } };
  /** How long after success the undo works: a duration, or a path to a time in the call. */
  until?: string;
}

/** A read of what is there before the call, for its undo. Fields that keep their default are left out. */
export interface Before {
  tool: string;
  /** A template whose strings may be paths into the arguments. A list reads once for each item. */
  args: { [name: string]: Json } | { [name: string]: Json }[];
  /** What the answer holds where nothing is there. */
  absent?: Json;
  /** Paths into the answer that change by themselves. */
  ignore?: string[];
  max_bytes?: number;
  required?: false;
}

export interface Verification {
  tool: string;
  args: { [name: string]: Json };
  expect: Json;
  /** Further reads after the first. */
  retries: number;
  backoff_ms: number;
}

/** A harmless example of the call, by which its undo is proven. */
export interface Drill {
  args: { [name: string]: Json };
  /** What its result must hold, in part; absent where any result will do. */
  expect?: Json;
}

export interface Manifest {
  tool: string;
  version: string;
  lifecycle: Lifecycle;
  effect: Effect;
  permission: string;
  owner: string | null;
  requires: string[];
  /** Paths whose values name one logical call; empty where repeats are fine. */
  idempotency: string[];
  risk: { data_class: string | null; blast_radius: BlastRadius | null; [label: string]: Json };
  compensation: Compensation | null;
  verification: Verification | null;
  /** Not there where none is declared: the content address of older manifests must not change. */
  before?: Before;
  audit: { redaction: string[]; retention_days: number | null; evidence_export: "required" | null };
  /** How a person is shown the call; absent where none is declared, so that older manifests keep their hash. */
  card?: CardTemplate;
  /** Absent where none is declared, for the same reason. */
  drill?: Drill;
}

/** The manifests in force: for each tool the newest approved version, or what stands in for it. */
export interface ManifestSet {
  /**
   * The manifest that speaks for the tool. A draft is answered only where no approved or deprecated
   * version exists; the engine decides whether a draft counts in the run's mode.
   */
  active(tool: string): Manifest | undefined;
  /** Content address of a manifest of this set. */
  hashOf(manifest: Manifest): string;
  /** Every entry, in file order, superseded versions and drafts included. */
  readonly all: readonly Manifest[];
  /** Every permission that any manifest declares, sorted. */
  readonly permissions: readonly string[];
}
