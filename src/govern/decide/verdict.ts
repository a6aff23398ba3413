/** Decision on an intent, and the changes to store with it. */
import type { LedgerEvent } from "../../ledger/events.ts";
import type { MergedApproval } from "../../rules/policy/checks/approvals.ts";
import type { CounterCharge } from "../../rules/policy/checks/limits.ts";
import type { ApprovalCauses } from "../cards/types.ts";
import type { GrantUse } from "../grants/coverage.ts";
import type { BeforeRead } from "./before-state.ts";
import type { EffectCheckRead } from "./effect-check.ts";

/**
 * Reads that an accepted call asks for: `before` is made first and reported with the outcome, and `effect_check` after a
 * success, reported as `observed`. Each is there if the manifest declares it.
 */
export type AskedReads = {
  before?: BeforeRead;
  effect_check?: EffectCheckRead;
};

/**
 * Answer to a call: allowed, allowed although `enforce` would block it, or blocked.
 */
export type IntentDecision =
  /** `approval_id` names the signed approval that the call used. */
  | ({ decision: "allow"; step: number; approval_id?: string } & AskedReads)
  | ({ decision: "would_block"; step: number; reasons: string[]; hints?: string[] } & AskedReads)
  | { decision: "block"; reasons: string[]; hints?: string[] };

/** Terms of an approval request, and its causes. */
export interface RequestTerms {
  spec: MergedApproval;
  rule: string | null;
  because: ApprovalCauses;
}

/** Change to the request for this call. */
export type ApprovalMove =
  | { move: "none" }
  /** `closes` is the open request for the same call if a plan's approval is used instead. */
  | { move: "consume"; id: string; closes: string | null }
  /** `terms` are the request's terms under the active rules. */
  | { move: "wait"; id: string; terms: RequestTerms | null }
  /** `replaces` is the approved request whose card shows an outdated state. */
  | ({ move: "open"; id: string; replaces: string | null } & RequestTerms)
  /** A grant replaces the approval; `closes` is the open request that needs no decision now. */
  | { move: "grant"; grant: GrantUse; closes: string | null };

export interface RecordPart {
  event: LedgerEvent;
  /** True if the engine acts on its own; otherwise the run's actor acts. */
  by_engine: boolean;
  detail: string | null;
}

export interface CallVerdict {
  decision: "allow" | "would_block" | "block";
  reasons: string[];
  /** Alternatives for the agent, from the policy's hints. */
  hints: string[];
  /** True if an approval alone would allow the call. */
  needs_approval: boolean;
  approval: ApprovalMove;
  /** Request past its deadline, to mark as expired. */
  expired: string | null;
  charges: CounterCharge[];
  risk_score: number;
  records: RecordPart[];
}
