/**
 * Evaluates a plan call by call, as speculation does: each call sees the state that the calls before it would leave.
 */
import type { PausableWork } from "../kernel/pausable-work.ts";
import type { PolicyEvaluation } from "../rules/policy/evaluate.ts";
import { type PreviewDecision, truncateReasons } from "./recorded-call.ts";
import { defaultAssumptions, type SandboxEngine, type SandboxRun } from "./sandbox.ts";
import { decidePlanCall, type SpeculatedCall } from "./speculate.ts";
import { synthesizeResult } from "./synthetic-results.ts";

interface JudgedCall {
  decision: PreviewDecision;
  reasons: string[];
  risk_score: number;
  evaluation: PolicyEvaluation | null;
}

interface JudgedPlan {
  calls: JudgedCall[];
  fully_reversible: boolean;
  irreversible: string[];
  residue: string[];
}

/** Assumes that a blocked call is not made, and continues with the others. */
export function* evaluatingPlan(
  sandbox: SandboxEngine,
  run: Omit<SandboxRun, "mode">,
  calls: readonly SpeculatedCall[],
  now_ms: number,
): PausableWork<JudgedPlan> {
  const { run_id } = run;
  sandbox.open({ ...run, mode: "enforce" });
  const irreversible = new Set<string>();
  const judged: JudgedCall[] = [];
  for (const [i, call] of calls.entries()) {
    yield;
    const asked = { run_id, step: i, call, at_ms: now_ms };
    const { ruling, accepted, reasons, risk_score, evaluation, result } = decidePlanCall(
      sandbox,
      asked,
      false,
    );
    if (ruling !== "block") {
      if (!accepted) decidePlanCall(sandbox, asked, true);
      if (result.manifest?.effect === "irreversible") irreversible.add(call.tool);
      sandbox.finish(defaultAssumptions(run_id, i), synthesizeResult(result.manifest), now_ms, false);
    }
    judged.push({ decision: ruling, reasons: truncateReasons(reasons), risk_score, evaluation });
  }
  const { fully_reversible, actions } = sandbox.plan(run_id);
  const residue = actions.flatMap((action) => (action.kind === "compensate" ? action.residue : []));
  return { calls: judged, fully_reversible, irreversible: [...irreversible], residue: [...new Set(residue)] };
}
