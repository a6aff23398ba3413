/** Documents that belong to the running of the service rather than to its vocabulary. */
import type { Json } from "../kernel/json.ts";
import type { GrantMatch } from "../model/grant.ts";
import type { KeptPrincipal } from "../model/roles.ts";

export type { CounterDoc } from "../model/policy/counters.ts";

/** Grants of one kind of names, and what each covers by name; see engine/grants/index-of. */
export interface GrantBucketEntry {
  id: string;
  expires_ms: number;
  match: GrantMatch;
}

/** How many buckets there are of each kind. */
export type GrantShapes = Record<string, number>;

export interface ReplyDoc {
  run_id: string;
  request_hash: string;
  body: Json;
  at_ms: number;
}

/** Who works on a subject. `epoch` fences: a holder whose epoch is no longer stored may not write. */
export interface LeaseDoc {
  holder: string;
  epoch: number;
  /** Counts renewals, so that each one changes the document; earlier versions did not write it. */
  beat?: number;
  /** How long the holder must be silent before another takes over; earlier versions did not write it. */
  lasts_ms?: number;
  /** For servers of earlier versions on the same store: they take over by the time of day. Not read here. */
  expires_ms: number;
}

/** The state that an overwrite restores: the one before the named call, or the one before the run changed anything there. */
export const OVERWRITE_TARGETS = ["before_call", "before_run"] as const;
export type OverwriteTarget = (typeof OVERWRITE_TARGETS)[number];

export interface JobDoc {
  run_id: string;
  state: "running" | "done" | "failed";
  started_ms: number;
  finished_ms: number | null;
  by: string;
  /** Whose authority the job goes on; stores of before do not have it. */
  authority?: KeptPrincipal | undefined;
  /** The run's own principal started it without the role that others need. */
  own?: true;
  current_step: number | null;
  report: Json;
  error: string | null;
  options: {
    retries: number;
    approve_compensations: boolean;
    /** A person's word to undo one step over a conflict. */
    overwrite?: { step: number; reason: string; current_hash: string; to?: OverwriteTarget | undefined };
  };
  /** Where the ledger stood when the job began: what was undone from there on is the job's own work. */
  since_seq: number;
}

/** A call that stands and whose undo looks first: what it touched, as a hash, and where it ended. */
export interface TouchDoc {
  run_id: string;
  step: number;
  thing: string;
  succeeded_seq: number;
}

/** A key entry as a containment names it: never by its value. */
export interface ContainedKey {
  name: string;
  fingerprint: string;
}

/** A containment under way or ended: what was asked for, and what it has done so far. */
export interface ContainmentDoc {
  id: string;
  state: "running" | "done" | "failed";
  started_ms: number;
  finished_ms: number | null;
  by: string;
  authority?: KeptPrincipal | undefined;
  /** Globs; whoever matches is contained. */
  actor: string;
  tenant: string | null;
  since_ms: number | null;
  reason: string;
  /** Whether steps are rolled back, and if not, whether that was asked for. */
  rollback: "yes" | "no" | "no_compensator";
  /** Who matched when it began. */
  actors: string[];
  halt_id: string;
  halt_was_there: boolean;
  /** Where the ledger stood when it began: what was undone from there on is its own work. */
  since_seq: number;
  phase: "keys" | "requests" | "authority" | "rollback" | "bundles";
  /** Keys that are to be disabled, and how many of them are, on record; null until they were chosen. */
  keys: { planned: ContainedKey[]; done: number } | null;
  denied: string[];
  revoked: { plans: string[]; delegations: string[]; grants: string[] };
  report: Json;
  error: string | null;
}

export interface CaptureDoc {
  run_id: string;
  step: number | null;
  tool: string;
  actor: string;
  tenant: string | null;
  environment: string | null;
  args: Json;
  result: Json;
  /** Whether a result was reported (a result may itself be null). */
  has_result: boolean;
  decision: "allow" | "would_block" | "block";
  reasons: string[];
  outcome: string | null;
  manifest_version: string | null;
  risk_score: number;
  captured_ms: number;
  expires_ms: number;
  redacted: boolean;
  /** `allow`, `needs_approval` or `block`: what simulation compares with. */
  verdict: "allow" | "needs_approval" | "block";
  depends_on: number[];
  /** Whether the call was already the use of an approval. */
  mode: string;
  /** When the service saw that the call had been undone; a worker's word is not noted. */
  undone_ms?: number | undefined;
}

/** An undo that stops working at a known time. */
export interface ClosingDoc {
  run_id: string;
  step: number;
  tool: string;
  closes_ms: number;
  /** When the call succeeded; entries of an earlier version lack it. */
  succeeded_ms?: number;
}

export interface PinDoc {
  tool: string;
  hash: string;
  first_seen_ms: number;
  /** The upstream that has the name. Pins of earlier versions have none, and learn it. */
  upstream?: string;
  changed_ms: number | null;
  changed_hash: string | null;
  /** Where the changed definition comes from, when that is not the upstream of the pin. */
  changed_upstream?: string;
  /** Other upstreams that offer the name too, and since when; they are refused. */
  claimed?: { by: readonly string[]; since_ms: number };
  /** The manifest that stood for the definition when it was pinned; a new one accepts a changed definition. */
  manifest_hash: string | null;
}

/** Under which key of `meta` the last probe is kept. */
export const PROBE_KEY = "probe";

/** A type and no interface, so that it is JSON by itself. */
export type ProbeState = {
  at_ms: number;
  holds: number;
  not_checked: number;
  /** The guarantees that did not hold, each with its surface. */
  broken: string[];
};
