/** The last stage: whether an approval is needed, is there, may be used, or must be asked for. */
import { OPEN_APPROVAL } from "../../model/approval.ts";
import type { Because } from "../../model/card/types.ts";
import type { MergedApproval } from "../../model/policy/approvals.ts";
import type { Finding } from "../../model/policy/finding.ts";
import { covers } from "../approvals/counting.ts";
import { coveringGrant, type GrantedCall } from "../grants/coverage.ts";
import type { Facts } from "./facts.ts";
import type { ApprovalMove } from "./verdict.ts";

export interface ApprovalStage {
  reason: string | null;
  move: ApprovalMove;
  expired: string | null;
}

/** `spec`: what an approval must satisfy; `asked`: what the policy found, and what of it asks. */
export function approvalStage(
  facts: Facts,
  spec: MergedApproval,
  asked: { rule: string | null; because: Because; findings: readonly Finding[] },
  blocked: boolean,
): ApprovalStage {
  const found = facts.request;
  const expired = found !== null && facts.now >= found.expires_ms ? found.id : null;
  const request = expired === null ? found : null;
  if (request?.status === "approved" && covers(request, spec, facts.policy.approvals.four_eyes)) {
    return { reason: null, move: { move: "use", id: request.id }, expired };
  }
  const grant = blocked ? null : coveringGrant(facts.grants ?? [], granted(facts), asked.findings);
  if (grant !== null) {
    const closes = request !== null && OPEN_APPROVAL.has(request.status) ? request.id : null;
    return { reason: null, move: { move: "grant", grant, closes }, expired };
  }
  if (facts.run.mode !== "enforce") {
    return { reason: "approval required: a person must approve this call", move: { move: "none" }, expired };
  }
  // Something that no approval can lift already refuses the call: do not trouble a person.
  if (blocked) return { reason: null, move: { move: "none" }, expired };
  if (request !== null && OPEN_APPROVAL.has(request.status)) {
    return { reason: pending(request.id), move: { move: "wait", id: request.id }, expired };
  }
  const cap = facts.policy.approvals.max_open_per_run;
  if (facts.run.open_approvals >= cap) {
    const reason = `approval required: this run already has ${cap} open requests; wait until some are decided`;
    return { reason, move: { move: "none" }, expired };
  }
  const id = facts.fresh_approval_id;
  const { rule, because } = asked;
  return { reason: pending(id), move: { move: "open", id, spec, rule, because }, expired };
}

const granted = ({ now, call, policy, run }: Facts): GrantedCall => ({
  now,
  call,
  policy,
  principal: run.principal,
});

/** Why a request ended that nobody had to decide. */
export function coveredBy(grant: string): string {
  return `covered by grant ${grant}`;
}

function pending(id: string): string {
  return `approval required: request ${id} is pending an operator decision; retry after it is approved`;
}
