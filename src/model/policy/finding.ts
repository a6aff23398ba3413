/** What a stage of the policy says about a call. */

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

/** Who must approve. `groups` empty means any approver who may approve at all. */
export interface ApprovalTerms {
  groups: string[];
  quorum: number;
  ttl_ms: number;
  escalate_after_ms: number | null;
  escalate_to: string[];
}

/** What of a call is kept for whoever decides it. */
export const APPROVAL_SHOWS = ["arguments", "names"] as const;
export type ApprovalShow = (typeof APPROVAL_SHOWS)[number];

export interface Finding {
  stage: StageName;
  action: "allow" | "warn" | "require_approval" | "deny";
  /** Names fields, kinds and bounds; never holds an argument's value. */
  reason: string;
  /** The same for a person who is shown the rest elsewhere; the reason where absent. */
  cause?: string;
  /** The id of the rule, flow, limit, budget, window or freeze that spoke. */
  rule: string | null;
  /** Terms of a `require_approval`; the policy's defaults where absent. */
  approval?: ApprovalTerms;
  /** What the agent can do instead, where the author says so. */
  hint?: string | null;
}

/** What flows, limits, budgets, windows and freezes have in common. */
export interface Restriction {
  id: string;
  action: RestrictingAction;
  /** The author's own words, or null for a sentence made from the entry. */
  reason: string | null;
  hint: string | null;
  approval: ApprovalTerms;
}

/** The finding of an entry that restricts: in its author's words, or in ours. */
export function restricted(stage: StageName, entry: Restriction, otherwise: string): Finding {
  const base: Finding = {
    stage,
    action: entry.action,
    reason: entry.reason ?? otherwise,
    rule: entry.id,
    hint: entry.hint,
  };
  return entry.action === "require_approval" ? { ...base, approval: entry.approval } : base;
}
