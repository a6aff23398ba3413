/** Findings: results of policy stages on a call. */

export const RULE_ACTIONS = ["allow", "require_approval", "deny"] as const;
export type RuleAction = (typeof RULE_ACTIONS)[number];

export const RESTRICTING_ACTIONS = ["require_approval", "deny"] as const;
export type RestrictingAction = (typeof RESTRICTING_ACTIONS)[number];

export type StageName =
  | "freeze"
  | "window"
  | "content"
  | "rule"
  | "flow"
  | "limit"
  | "budget"
  | "risk"
  | "undo";

/** Required approvers. Empty `groups` means any user who can approve. */
export interface ApprovalTerms {
  groups: string[];
  quorum: number;
  ttl_ms: number;
  escalate_after_ms: number | null;
  escalate_to: string[];
  /** Counts only decisions that a person signed with a passkey. */
  signed?: true;
}

/** Data of a call stored for approvers. */
export const APPROVAL_SHOWS = ["arguments", "names"] as const;
export type ApprovalShow = (typeof APPROVAL_SHOWS)[number];

export interface PolicyFinding {
  stage: StageName;
  action: "allow" | "warn" | "require_approval" | "deny";
  /** Names fields, kinds and bounds, never the value of an argument. */
  reason: string;
  /** Shorter reason for a card, which shows the rest elsewhere; `reason` applies if absent. */
  cause?: string;
  /** Id of the rule, flow, limit, budget, window or freeze. */
  rule: string | null;
  /** Terms of a `require_approval`; the policy's defaults apply if absent. */
  approval?: ApprovalTerms;
  /** The author's suggestion of an alternative for the agent. */
  hint?: string | null;
}

/** Common fields of flows, limits, budgets, windows and freezes. */
export interface RestrictingEntry {
  id: string;
  action: RestrictingAction;
  /** The author's text; null for a generated sentence. */
  reason: string | null;
  hint: string | null;
  approval: ApprovalTerms;
}

/** Finding of a restricting entry, with the author's reason or the generated one. */
export function restrictionFinding(
  stage: StageName,
  entry: RestrictingEntry,
  otherwise: string,
): PolicyFinding {
  const base: PolicyFinding = {
    stage,
    action: entry.action,
    reason: entry.reason ?? otherwise,
    rule: entry.id,
    hint: entry.hint,
  };
  return entry.action === "require_approval" ? { ...base, approval: entry.approval } : base;
}
