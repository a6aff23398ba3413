/** Documents for the operation of the service. The domain documents are in `src/model`. */

import type { JsonValue } from "../../kernel/json/json.ts";
import type { EarlierCall } from "../../rules/policy/checks/compared-calls.ts";
import type { TraceKind } from "../../rules/trace/fingerprint-map.ts";
import type { GrantMatch } from "../grants/grant.ts";
import type { StoredPrincipal } from "../roles.ts";

export type { CounterDoc } from "../../rules/policy/checks/counters.ts";

/** A grant as the grant index stores it, in the bucket for one shape of names. See `engine/grants`. */
export interface GrantBucketEntry {
  id: string;
  expires_ms: number;
  match: GrantMatch;
}

/** The number of buckets of each shape. */
export type GrantShapes = Record<string, number>;

export interface IdempotentReplyDoc {
  run_id: string;
  request_hash: string;
  body: JsonValue;
  at_ms: number;
}

/**
 * The owner of a job or task. `epoch` is a fencing token: a holder whose epoch is not the stored one must not write.
 */
export interface LeaseDoc {
  holder: string;
  epoch: number;
  /** Counts renewals, so that each renewal changes the document. Missing in documents of older versions. */
  beat?: number;
  /** How long the holder must be silent before another process takes over. Missing in documents of older versions. */
  lasts_ms?: number;
  /** For servers of older versions on the same store, which take over by wall-clock time. This version ignores it. */
  expires_ms: number;
}

/** The state that an overwrite restores: the one before the given call, or the one before the run's first change. */
export const OVERWRITE_TARGETS = ["before_call", "before_run"] as const;
export type OverwriteTarget = (typeof OVERWRITE_TARGETS)[number];

export interface JobDoc {
  run_id: string;
  state: "running" | "done" | "failed";
  started_ms: number;
  finished_ms: number | null;
  by: string;
  /** The principal whose authority the job uses. Missing in documents of older versions. */
  authority?: StoredPrincipal | undefined;
  /** The run's own principal started the job, without the role that other callers need. */
  own?: true;
  current_step: number | null;
  report: JsonValue;
  error: string | null;
  options: {
    retries: number;
    approve_compensations: boolean;
    /** An operator's request to undo one step despite a conflict. */
    overwrite?: { step: number; reason: string; current_hash: string; to?: OverwriteTarget | undefined };
    /** Parts that every undo leaves alone, such as files. */
    skip?: readonly string[];
    /** The rollback covers all runs below too. */
    children?: true;
    /** Steps of other runs that are undone with it. */
    with?: readonly { run_id: string; step: number }[];
  };
  /** The length of the ledger when the job began. Undos recorded after it are the job's work. */
  since_seq: number;
}

/**
 * A call on a resource, for the calls of other runs on it. Reads are listed if their values are followed. A call on
 * several resources has a document for each; the first has their number.
 */
export interface ResourceCallDoc {
  run_id: string;
  step: number;
  /** Hash of the resource, keyed with the tenant's key. */
  thing: string;
  succeeded_seq: number;
  read?: true;
  items?: number;
}

/** A call that a later call was built on. */
export interface ValueFeedDoc {
  run_id: string;
  step: number;
  to: { run_id: string; step: number };
  /** What it took from there: kinds of values and where they were, never a value. */
  via: FeedReason[];
}

/** A call that was built on a contained one. */
export interface ContainedDependent {
  run_id: string;
  step: number;
  tool: string;
  kind: "compensate" | "skip" | "unrecoverable" | "unresolved" | "unmanifested";
  because: {
    run_id: string;
    step: number;
    kind: FeedReason["kind"] | "resource" | "dependency";
    path?: string;
  }[];
}

export interface FeedReason {
  /** `stored`: the call read from a store that the first call wrote to. */
  kind: TraceKind | "stored";
  path?: string;
}

/** An active step whose undo checks state first: a hash of the resource it changed, and its position in the ledger. */
export interface ResourceTouchDoc {
  run_id: string;
  step: number;
  thing: string;
  succeeded_seq: number;
}

/** A key as a containment names it, without its value. */
export interface ContainedKey {
  name: string;
  fingerprint: string;
}

/** A running or finished containment: the request, and its progress so far. */
export interface ContainmentDoc {
  id: string;
  state: "running" | "done" | "failed";
  started_ms: number;
  finished_ms: number | null;
  by: string;
  authority?: StoredPrincipal | undefined;
  /** Actor globs. The containment applies to every actor that matches. */
  actor: string;
  tenant: string | null;
  since_ms: number | null;
  reason: string;
  /**
   * Whether steps are rolled back. `no` is the caller's choice; `no_compensator` means that no compensator is
   * configured.
   */
  rollback: "yes" | "no" | "no_compensator";
  /** The actors that matched when the containment began. */
  actors: string[];
  halt_id: string;
  halt_was_there: boolean;
  /** The length of the ledger when the containment began. Undos recorded after it are its work. */
  since_seq: number;
  phase: "keys" | "requests" | "authority" | "rollback" | "bundles";
  /** The keys to disable, and how many are already disabled on record. Null until the containment has chosen them. */
  keys: { planned: ContainedKey[]; done: number } | null;
  denied: string[];
  revoked: { plans: string[]; delegations: string[]; grants: string[] };
  /** The preview of the rollback, made again before its first undo. Absent before that. */
  promised?: JsonValue;
  /** Calls of other runs that were built on the contained ones; absent without any. */
  dependents?: readonly ContainedDependent[];
  report: JsonValue;
  error: string | null;
}

export interface CaptureDoc {
  run_id: string;
  /** Root of the run's tree, if it is a child run. */
  counted_run?: string | undefined;
  step: number | null;
  tool: string;
  actor: string;
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting?: readonly string[] | undefined;
  tenant: string | null;
  environment: string | null;
  args: JsonValue;
  result: JsonValue;
  /** Whether the agent reported a result. A result can be null. */
  has_result: boolean;
  decision: "allow" | "would_block" | "block";
  reasons: string[];
  outcome: string | null;
  manifest_version: string | null;
  risk_score: number;
  captured_ms: number;
  expires_ms: number;
  redacted: boolean;
  /** The policy verdict that a simulation compares with. */
  verdict: "allow" | "needs_approval" | "block";
  depends_on: number[];
  /** The mode of the run, such as `observe`. */
  mode: string;
  /** Run whose sandbox the call came from; absent outside of `svc run`. */
  sandboxed?: string | undefined;
  /** When this service recorded the undo of the call. Undos that only a worker reported do not count. */
  undone_ms?: number | undefined;
}

/** An undo that expires at a known time. */
export interface UndoDeadlineDoc {
  run_id: string;
  step: number;
  tool: string;
  closes_ms: number;
  /** When the call succeeded. Missing in entries of older versions. */
  succeeded_ms?: number;
}

export interface PinDoc {
  tool: string;
  hash: string;
  first_seen_ms: number;
  /** The upstream that owns the tool name. Pins of older versions lack it until the next check fills it in. */
  upstream?: string;
  changed_ms: number | null;
  changed_hash: string | null;
  /** The upstream of the changed definition, if it differs from the upstream of the pin. */
  changed_upstream?: string;
  /** Other upstreams that also offer the name, and since when. The gateway rejects them. */
  claimed?: { by: readonly string[]; since_ms: number };
  /** The manifest of the tool when the definition was pinned. A new manifest accepts a changed definition. */
  manifest_hash: string | null;
}

/** The `meta` key of the last probe result. */
export const PROBE_KEY = "probe";

/** A type alias, because an interface is not assignable to `Json`. */
export type ProbeState = {
  at_ms: number;
  holds: number;
  not_checked: number;
  /** The guarantees that failed, each with its surface. */
  broken: string[];
};

/** Calls that one flow compares later calls with, of one run or of one actor's runs. */
export interface EarlierCallsDoc {
  /** Empty for calls of several runs. */
  run_id: string;
  /** Oldest first. */
  calls: EarlierCall[];
  /** Time of the latest call that the list lost. */
  dropped_ms?: number;
}
