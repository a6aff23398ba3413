/** What an intent's caller is answered. */
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import { effectCheckOf } from "./effect-check.ts";
import type { DecisionFacts } from "./facts.ts";
import type { AskedReads, CallVerdict, IntentDecision } from "./verdict.ts";

/** The id of the signed approval that the call used, so that its caller can verify the signatures. */
export function signedApprovalOf(tx: StoreTx, { decision, approval }: CallVerdict): { approval_id?: string } {
  if (decision !== "allow" || approval.move !== "consume") return {};
  const used = tx.get("approvals", approval.id)?.internal.signatures ?? [];
  return used.length === 0 ? {} : { approval_id: approval.id };
}

export function askedReads(core: EngineCore, { before, run, caller, manifest }: DecisionFacts): AskedReads {
  const effect_check = effectCheckOf(core.rules().manifests, run, caller, manifest);
  return {
    ...(before === undefined || before.read === null ? {} : { before: before.read }),
    ...(effect_check === null ? {} : { effect_check }),
  };
}

export function decisionOf(
  verdict: CallVerdict,
  step: number | undefined,
  asked: AskedReads,
): IntentDecision {
  const why = { reasons: verdict.reasons, ...(verdict.hints.length === 0 ? {} : { hints: verdict.hints }) };
  if (step === undefined) return { decision: "block", ...why };
  if (verdict.decision === "would_block") return { decision: "would_block", step, ...why, ...asked };
  return { decision: "allow", step, ...asked };
}
