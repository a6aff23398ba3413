/**
 * Plans: calls that an agent proposes before it makes them. Approvers decide them together, and the agent makes them in
 * order.
 */
import * as z from "zod";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { type ApprovalDoc, decidedFields } from "../approvals/approval.ts";

export const PLAN_STATUSES = ["pending", "approved", "denied", "expired", "ended", "done"] as const;
export type PlanStatus = (typeof PLAN_STATUSES)[number];

/** True for the id of a plan. Operations shared by plans and approval requests accept either id. */
export const isPlanId = (id: string): boolean => id.startsWith("pln_");

const planCall = z.strictObject({
  tool: z.string(),
  args_hash: z.string(),
  arg_names: z.array(z.string()),
  reason: z.string(),
  /** Positions of earlier calls in the plan. */
  depends_on: z.array(z.int()),
  /** Decision when the agent proposed the plan. */
  decision: z.enum(["allow", "needs_approval", "block"]),
  reasons: z.array(z.string()),
  risk_score: z.int(),
  /** Approval created for the call when the plan is decided; null if the call needs none. */
  approval_id: nullableSchema(z.string()),
});

/** Plan as the API shows it. */
export const planShape = z.strictObject({
  id: z.string(),
  run_id: z.string(),
  actor: z.string(),
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting: z.array(z.string()).optional(),
  tenant: nullableSchema(z.string()),
  reason: z.string(),
  status: z.enum(PLAN_STATUSES),
  calls: z.array(planCall),
  fully_reversible: z.boolean(),
  irreversible: z.array(z.string()),
  residue: z.array(z.string()),
  requested_ms: z.int(),
  expires_ms: z.int(),
  ...decidedFields,
  /** Position of the next call. */
  next: z.int(),
});

export type PlanView = z.output<typeof planShape>;
export type PlanCall = PlanView["calls"][number];

export interface PlanDoc extends PlanView {
  /** Internal fields, absent from listings. */
  internal: {
    principal: string;
    /** Each call in the form of an approval request. Those that need approval count the votes. */
    requests: ApprovalDoc[];
    /** Step of each call that was made, by position; absent until the first. */
    steps?: number[];
  };
}

/**
 * The request that represents a pending plan in a digest of notifications; empty if the plan is notified separately.
 */
export function digestRequests({ id, status, calls, internal }: PlanDoc): ApprovalDoc[] {
  const asking = internal.requests.find((_, i) => calls[i]?.approval_id !== null);
  if (status !== "pending" || asking?.internal.in_digest !== true) return [];
  return [{ ...asking, id }];
}

export function planView({ internal: _internal, ...view }: PlanDoc): PlanView {
  return view;
}
