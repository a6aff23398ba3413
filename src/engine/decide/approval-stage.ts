/** The last stage: whether an approval is needed, is there, may be used, or must be asked for. */
import { type ApprovalDoc, OPEN_APPROVAL } from "../../model/approval.ts";
import type { Because } from "../../model/card/types.ts";
import type { MergedApproval } from "../../model/policy/approvals.ts";
import type { Finding } from "../../model/policy/finding.ts";
import { covers } from "../approvals/counting.ts";
import { coveringGrant, type GrantedCall } from "../grants/coverage.ts";
import type { Facts } from "./facts.ts";
import type { ApprovalMove } from "./verdict.ts";

interface ApprovalStage {
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
  const isGood = (one: ApprovalDoc | null): one is ApprovalDoc =>
    one?.status === "approved" &&
    facts.now < one.expires_ms &&
    covers(one, spec, facts.policy.approvals.four_eyes);
  // An approval that a plan brought and that covers the call no more leaves it to the call's own request.
  const found = facts.beside != null && !isGood(facts.request) ? facts.beside : facts.request;
  const expired = found !== null && facts.now >= found.expires_ms ? found.id : null;
  const request = expired === null ? found : null;
  const good = isGood(request) ? request : null;
  const stands = good === null ? null : asShown(good, facts);
  if (good !== null && stands === "same") {
    const closes = good === facts.request ? openId(facts.beside) : null;
    return { reason: null, move: { move: "use", id: good.id, closes }, expired };
  }
  const grant = blocked ? null : coveringGrant(facts.grants ?? [], granted(facts), asked.findings);
  if (grant !== null) {
    return { reason: null, move: { move: "grant", grant, closes: openId(request) }, expired };
  }
  if (facts.run.mode !== "enforce") {
    return { reason: "approval required: a person must approve this call", move: { move: "none" }, expired };
  }
  // Something that no approval can lift already refuses the call: do not trouble a person.
  if (blocked) return { reason: null, move: { move: "none" }, expired };
  if (good !== null && stands === "not read")
    return { reason: notRead(good.id), move: { move: "wait", id: good.id, terms: null }, expired };
  if (request !== null && OPEN_APPROVAL.has(request.status)) {
    const terms = { spec, rule: asked.rule, because: asked.because };
    return { reason: pending(request.id), move: { move: "wait", id: request.id, terms }, expired };
  }
  const cap = facts.policy.approvals.max_open_per_run;
  if (facts.run.open_approvals >= cap) {
    const reason = `approval required: this run already has ${cap} open requests; wait until some are decided`;
    return { reason, move: { move: "none" }, expired };
  }
  const id = facts.fresh_approval_id;
  const { rule, because } = asked;
  const replaces = stands === "changed" ? good!.id : null;
  return { reason: pending(id), move: { move: "open", id, spec, rule, because, replaces }, expired };
}

/**
 * Whether what is there is what the approver saw. A card that showed nothing of it is held against nothing; and where a
 * read that the call needs fails, the step fails before anything is forwarded, whatever was seen.
 */
function asShown(
  { internal: { before_hash: shown } }: ApprovalDoc,
  { seen_hash: now, before }: Facts,
): "same" | "changed" | "not read" {
  if (shown === undefined || shown === now) return "same";
  if (now === null && before?.read?.required !== false) return "same";
  return now === undefined ? "not read" : "changed";
}

const granted = ({ now, call, policy, run }: Facts): GrantedCall => ({
  now,
  call,
  policy,
  principal: run.principal,
});

/** Why a request ended without a decision. */
export function coveredBy(approval: `grant ${string}` | `request ${string}`): string {
  return `covered by ${approval}`;
}

function openId(request: ApprovalDoc | null | undefined): string | null {
  return request != null && OPEN_APPROVAL.has(request.status) ? request.id : null;
}

/** Why an approval ended that was not used: what it would change is not what was judged. */
export const CHANGED_SINCE = "what the call would change is no longer as its card showed";

/** Only whoever reads what is there can tell that it is still what the approver saw. */
function notRead(id: string): string {
  return `approval required: request ${id} was approved on what its card showed to be there; repeat the call through the gateway, which reads that again`;
}

/** Whether the detail of a `blocked` record says that nothing but a decision on an open request is missing. */
export function waitsForApproval(detail: string | undefined): boolean {
  return detail !== undefined && /(?:^|; )approval required: request apr_/.test(detail);
}

function pending(id: string): string {
  return `approval required: request ${id} is pending an operator decision; retry after it is approved`;
}
