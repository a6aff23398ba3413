/** The answer to an intent, and what decide wants written with it. */
import type { LedgerEvent } from "../../ledger/events.ts";
import type { Because } from "../../model/card/types.ts";
import type { MergedApproval } from "../../model/policy/approvals.ts";
import type { Charge } from "../../model/policy/limits.ts";
import type { BeforeRead } from "../before.ts";
import type { GrantUse } from "../grants/coverage.ts";

/**
 * The answer to a call: it may be made, it may be made although `enforce` would have blocked it, or it may not be made.
 * `before` is what whoever makes the call reads first and tells with the outcome, where the manifest wants that.
 */
export type Decision =
  | { decision: "allow"; step: number; before?: BeforeRead }
  | { decision: "would_block"; step: number; reasons: string[]; hints?: string[]; before?: BeforeRead }
  | { decision: "block"; reasons: string[]; hints?: string[] };

/** By what a person is asked: what an approval must satisfy, and what asks for it. */
export interface RequestTerms {
  spec: MergedApproval;
  rule: string | null;
  because: Because;
}

/** What becomes of the request that speaks for this call. */
export type ApprovalMove =
  | { move: "none" }
  /** `closes`: the open request for the same call, where a plan's approval is used in its place. */
  | { move: "use"; id: string; closes: string | null }
  /** `terms`: by what the open request would be asked for now. */
  | { move: "wait"; id: string; terms: RequestTerms | null }
  /** `replaces`: the approved request whose card no longer shows what is there. */
  | ({ move: "open"; id: string; replaces: string | null } & RequestTerms)
  /** A grant stands in; `closes` is the open request that needs no decision any more. */
  | { move: "grant"; grant: GrantUse; closes: string | null };

export interface RecordPart {
  event: LedgerEvent;
  /** The engine, where it acts by itself; otherwise the run's actor. */
  by_engine: boolean;
  detail: string | null;
}

export interface Verdict {
  decision: "allow" | "would_block" | "block";
  reasons: string[];
  /** What the agent can do instead, where the policy says so. */
  hints: string[];
  /** Whether an approval alone would have let the call pass. */
  needs_approval: boolean;
  approval: ApprovalMove;
  /** A request that was found past its time, to be marked so. */
  expired: string | null;
  charges: Charge[];
  risk_score: number;
  records: RecordPart[];
}
