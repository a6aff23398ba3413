/**
 * The decision. A pure function from facts to a verdict and the records it writes: the live engine, the
 * simulation, replay, impact preview and speculation all call this one, so no rule exists twice.
 */
import { type Evaluation, evaluatePolicy } from "../../model/policy/evaluate.ts";
import { approvalStage } from "./approval-stage.ts";
import type { Facts } from "./facts.ts";
import { type Refusal, STAGES } from "./stages.ts";
import type { RecordPart, Verdict } from "./verdict.ts";

export function decide(facts: Facts): Verdict {
  const refusals: Refusal[] = [];
  for (const stage of STAGES) for (const refusal of stage(facts)) refusals.push(refusal);
  const policy = evaluatePolicy(facts.policy, facts.call, facts.now, facts.counters);

  const stageReasons = refusals.map((refusal) => refusal.reason);
  const reasons = [...stageReasons, ...policy.reasons];
  const denied = policy.action === "deny";
  const hard = refusals.some((refusal) => refusal.force === "always");
  const blocked = refusals.length > 0 || denied;
  const needs_approval = policy.action === "require_approval";

  const approval =
    policy.approval === null
      ? null
      : approvalStage(facts, policy.approval, askedBy(facts, policy), blocked || hard);
  const satisfied = approval?.move.move === "use";
  if (approval?.reason) reasons.push(approval.reason);

  const passes = !blocked && (!needs_approval || satisfied);
  const decision = passes ? "allow" : hard || facts.run.mode === "enforce" ? "block" : "would_block";
  // An approval is spent only by a call that goes ahead because of it.
  const move =
    passes || approval?.move.move !== "use"
      ? (approval?.move ?? { move: "none" as const })
      : { move: "none" as const };
  return {
    decision,
    reasons: passes ? [] : reasons,
    hints: passes ? [] : policy.hints,
    needs_approval: needs_approval && !satisfied && refusals.length === 0,
    approval: move,
    expired: approval?.expired ?? null,
    charges: decision === "block" ? [] : policy.charges,
    risk_score: policy.risk.score,
    records: recordParts(decision, reasons, move.move === "use" ? move.id : null, approval?.expired ?? null),
  };
}

function askedBy({ policy }: Facts, { rules, causes, risk }: Evaluation) {
  const { score, factors } = risk;
  return {
    rule: rules[0] ?? null,
    because: { causes, risk: policy.risk === null ? null : { score, factors } },
  };
}

function recordParts(
  decision: Verdict["decision"],
  reasons: string[],
  used: string | null,
  expired: string | null,
): RecordPart[] {
  const parts: RecordPart[] = [];
  if (expired !== null)
    parts.push({ event: "approval_expired", by_engine: true, detail: `request ${expired}` });
  const why = reasons.join("; ");
  if (decision === "block") return [...parts, { event: "blocked", by_engine: false, detail: why }];
  if (decision === "would_block") parts.push({ event: "would_block", by_engine: false, detail: why });
  if (used !== null) parts.push({ event: "approved", by_engine: true, detail: `used request ${used}` });
  parts.push({ event: "intended", by_engine: false, detail: null });
  return parts;
}
