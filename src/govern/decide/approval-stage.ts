/** Last stage: determines if an approval is required, exists, can be used, or must be requested. */

import type { MergedApproval } from "../../rules/policy/checks/approvals.ts";
import type { PolicyFinding } from "../../rules/policy/finding.ts";
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../approvals/approval.ts";
import { approvalCovers } from "../approvals/count-approvals.ts";
import type { ApprovalCauses } from "../cards/types.ts";
import { isExpired } from "../expiry.ts";
import { findCoveringGrant, type GrantedCall } from "../grants/coverage.ts";
import type { EarlyPlannedCall } from "../plans/plan-progress.ts";
import type { DecisionFacts } from "./facts.ts";
import type { ApprovalMove } from "./verdict.ts";

interface ApprovalStage {
  reason: string | null;
  move: ApprovalMove;
  expired: string | null;
}

/** `spec` has the required terms; `asked` has the policy's findings and those that require approval. */
export function approvalStage(
  facts: DecisionFacts,
  spec: MergedApproval,
  asked: { rule: string | null; because: ApprovalCauses; findings: readonly PolicyFinding[] },
  blocked: boolean,
): ApprovalStage {
  const isGood = (one: ApprovalDoc | null): one is ApprovalDoc =>
    one?.status === "approved" && !isExpired(one, facts.now) && approvalCovers(one, spec, facts.policy);
  // If the plan's approval no longer covers the call, uses the call's own request.
  const found = facts.own_request != null && !isGood(facts.request) ? facts.own_request : facts.request;
  const expired = found !== null && isExpired(found, facts.now) ? found.id : null;
  const request = expired === null ? found : null;
  const good = isGood(request) ? request : null;
  const shown = good === null ? null : asShown(good, facts);
  if (good !== null && shown === "same") {
    const closes = good === facts.request ? openId(facts.own_request) : null;
    return { reason: null, move: { move: "consume", id: good.id, closes }, expired };
  }
  const grant = blocked ? null : findCoveringGrant(facts.grants ?? [], granted(facts), asked.findings);
  if (grant !== null) {
    return { reason: null, move: { move: "grant", grant, closes: openId(request) }, expired };
  }
  if (facts.run.mode !== "enforce") {
    return {
      reason: "approval required: an approver must approve this call",
      move: { move: "none" },
      expired,
    };
  }
  // The call is blocked regardless of any approval, so do not request one.
  if (blocked) return { reason: null, move: { move: "none" }, expired };
  if (good !== null && shown === "not read")
    return { reason: notRead(good.id), move: { move: "wait", id: good.id, terms: null }, expired };
  if (request !== null && OPEN_APPROVAL_STATUSES.has(request.status)) {
    const terms = { spec, rule: asked.rule, because: asked.because };
    return { reason: pending(request.id), move: { move: "wait", id: request.id, terms }, expired };
  }
  // The plan's approval covers the call as soon as the earlier call has succeeded, so no request is opened.
  if (facts.early_planned != null)
    return { reason: tooEarly(facts.early_planned), move: { move: "none" }, expired };
  const cap = facts.policy.approvals.max_open_per_run;
  if (facts.open_requests >= cap) {
    const reason = `approval required: this run already has ${cap} open requests; wait until some are decided`;
    return { reason, move: { move: "none" }, expired };
  }
  const id = facts.fresh_approval_id;
  const { rule, because } = asked;
  const replaces = shown === "changed" ? good!.id : null;
  return { reason: pending(id), move: { move: "open", id, spec, rule, because, replaces }, expired };
}

/**
 * Compares the current state with the state on the card. A card without state matches anything. A failed required read
 * also matches, because the step then fails before the call is forwarded.
 */
function asShown(
  { internal: { before_hash: shown } }: ApprovalDoc,
  { seen_hash: now, before }: DecisionFacts,
): "same" | "changed" | "not read" {
  if (shown === undefined || shown === now) return "same";
  if (now === null && before?.read?.required !== false) return "same";
  return now === undefined ? "not read" : "changed";
}

const granted = ({ now, call, policy, run }: DecisionFacts): GrantedCall => ({
  now,
  call,
  policy,
  principal: run.principal,
});

/** Note on a request that ended without a decision. */
export function coveredBy(approval: `grant ${string}` | `request ${string}`): string {
  return `covered by ${approval}`;
}

function openId(request: ApprovalDoc | null | undefined): string | null {
  return request != null && OPEN_APPROVAL_STATUSES.has(request.status) ? request.id : null;
}

/** Note on an approval that ended unused because the state differs from the state on its card. */
export const STATE_CHANGED_NOTE = "the state has changed since the card was shown";

/** Only a surface that reads the state can verify that it matches the card. */
function notRead(id: string): string {
  return `approval required: request ${id} was approved for the state on its card; repeat the call through the gateway, which reads that state again`;
}

/** True if the detail of a `blocked` record names a pending request. */
export function waitsForApproval(detail: string | undefined): boolean {
  return detail !== undefined && /(?:^|; )approval required: request apr_/.test(detail);
}

const tooEarly = ({ plan_id, step }: EarlyPlannedCall): string =>
  `approval required: plan ${plan_id} approves this call after step ${step} has ended; report its outcome, then repeat the call`;

function pending(id: string): string {
  return `approval required: request ${id} is pending an operator decision; retry after it is approved`;
}
