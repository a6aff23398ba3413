/**
 * The decision function: pure, from facts to a verdict and the records to write. The live engine, simulation, replay,
 * impact preview and speculation share it, so each rule exists once.
 */
import type { LedgerEvent } from "../../ledger/events.ts";
import { evaluatePolicy, type PolicyEvaluation } from "../../rules/policy/evaluate.ts";
import { liftedBySandbox } from "../../rules/policy/rules.ts";
import { approvalStage, coveredBy, STATE_CHANGED_NOTE } from "./approval-stage.ts";
import type { DecisionFacts } from "./facts.ts";
import { DECISION_STAGES, type StageRefusal } from "./stages.ts";
import type { ApprovalMove, CallVerdict, RecordPart } from "./verdict.ts";

export function decideCall(facts: DecisionFacts): CallVerdict {
  const refusals: StageRefusal[] = [];
  for (const stage of DECISION_STAGES) for (const refusal of stage(facts)) refusals.push(refusal);
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
  const satisfied = approval !== null && SATISFIES.has(approval.move.move);
  if (approval?.reason) reasons.push(approval.reason);

  const passes = !blocked && (!needs_approval || satisfied);
  const decision = passes ? "allow" : hard || facts.run.mode === "enforce" ? "block" : "would_block";
  // A call that is blocked for another reason does not consume its approval.
  const move =
    passes || !satisfied ? (approval?.move ?? { move: "none" as const }) : { move: "none" as const };
  return {
    decision,
    reasons: passes ? [] : reasons,
    hints: passes ? [] : [...meantHint(facts), ...policy.hints],
    needs_approval: needs_approval && !satisfied && refusals.length === 0,
    approval: move,
    expired: approval?.expired ?? null,
    charges: decision === "block" ? [] : policy.charges,
    risk_score: policy.risk.score,
    records: recordParts(decision, reasons, move, approval?.expired ?? null, sandboxNote(facts)),
  };
}

/** The rules that the sandbox lifted, or null. */
function sandboxNote({ policy, call }: DecisionFacts): string | null {
  const lifted = liftedBySandbox(policy, call);
  return lifted.length === 0
    ? null
    : `sandboxed by run ${call.sandboxed}: no approval needed by ${lifted.join(", ")}`;
}

function meantHint({ meant }: DecisionFacts): string[] {
  return meant === undefined ? [] : [`a tool with a name close to this one is registered: ${meant}`];
}

const SATISFIES: ReadonlySet<ApprovalMove["move"]> = new Set(["consume", "grant"]);

function askedBy({ policy }: DecisionFacts, { rules, causes, risk, findings }: PolicyEvaluation) {
  const { score, factors } = risk;
  return {
    rule: rules[0] ?? null,
    findings,
    because: { causes, risk: policy.risk === null ? null : { score, factors } },
  };
}

function recordParts(
  decision: CallVerdict["decision"],
  reasons: string[],
  move: ApprovalMove,
  expired: string | null,
  note: string | null,
): RecordPart[] {
  const parts: RecordPart[] = [];
  const byEngine = (event: LedgerEvent, detail: string) => parts.push({ event, by_engine: true, detail });
  if (expired !== null) byEngine("approval_expired", `request ${expired}`);
  if (move.move === "open" && move.replaces !== null)
    byEngine("approval_expired", `request ${move.replaces}: ${STATE_CHANGED_NOTE}`);
  const why = reasons.join("; ");
  if (decision === "block") return [...parts, { event: "blocked", by_engine: false, detail: why }];
  if (decision === "would_block") parts.push({ event: "would_block", by_engine: false, detail: why });
  if (move.move === "consume") {
    if (move.closes !== null)
      byEngine("approval_expired", `request ${move.closes}: ${coveredBy(`request ${move.id}`)}`);
    byEngine("approved", `used request ${move.id}`);
  }
  if (move.move === "grant") {
    const { id, use, max_uses } = move.grant;
    if (move.closes !== null)
      byEngine("approval_expired", `request ${move.closes}: ${coveredBy(`grant ${id}`)}`);
    byEngine("approved", `used grant ${id} (${use} of ${max_uses})`);
  }
  parts.push({ event: "intended", by_engine: false, detail: note });
  return parts;
}
