/** Plans: calls that an agent proposes before it makes them, decided together and made in their order. */
import type { ApprovalDoc, Vote } from "./approval.ts";

export const PLAN_STATUSES = ["pending", "approved", "denied", "expired", "ended", "done"] as const;
export type PlanStatus = (typeof PLAN_STATUSES)[number];

/** What a plan shares with a request for approval is taken by either id; this tells them apart. */
export const isPlanId = (id: string): boolean => id.startsWith("pln_");

export interface PlanCall {
  tool: string;
  args_hash: string;
  arg_names: string[];
  reason: string;
  /** Earlier calls of the plan, by position. */
  depends_on: number[];
  /** As it was judged when the plan was proposed. */
  decision: "allow" | "needs_approval" | "block";
  reasons: string[];
  risk_score: number;
  /** The approval that the decision on the plan makes for it; null where it needs none. */
  approval_id: string | null;
}

/** A proposed plan, as it is shown. */
export interface PlanView {
  id: string;
  run_id: string;
  actor: string;
  tenant: string | null;
  reason: string;
  status: PlanStatus;
  calls: PlanCall[];
  fully_reversible: boolean;
  irreversible: string[];
  residue: string[];
  requested_ms: number;
  expires_ms: number;
  votes: Vote[];
  decided_by: string | null;
  decided_ms: number | null;
  note: string | null;
  /** The position of the call that may be made next. */
  next: number;
}

export interface PlanDoc extends PlanView {
  /** Working facts that listings leave out. */
  internal: {
    principal: string;
    /** Each call as a request for approval would be; those that need one count the votes. */
    requests: ApprovalDoc[];
  };
}

/** A plan that waits, as one request among those of which people are told in a digest; none where it is told alone. */
export function toldTogether({ id, status, calls, internal }: PlanDoc): ApprovalDoc[] {
  const asking = internal.requests.find((_, i) => calls[i]?.approval_id !== null);
  if (status !== "pending" || asking?.internal.in_digest !== true) return [];
  return [{ ...asking, id }];
}

export function planView({ internal: _internal, ...view }: PlanDoc): PlanView {
  return view;
}
