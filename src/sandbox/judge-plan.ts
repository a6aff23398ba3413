/** A plan judged call by call, as speculation judges: each on what the calls before it would have left. */
import type { Paced } from "../kernel/turns.ts";
import type { Evaluation } from "../model/policy/evaluate.ts";
import { madeUpSuccess } from "./made-up.ts";
import { few, type Ruling } from "./past-call.ts";
import { assumeNothing, type Sandbox, type SandboxRun } from "./sandbox.ts";
import { ask, type SpeculatedCall } from "./speculate.ts";

interface JudgedCall {
  decision: Ruling;
  reasons: string[];
  risk_score: number;
  evaluation: Evaluation | null;
}

interface JudgedPlan {
  calls: JudgedCall[];
  fully_reversible: boolean;
  irreversible: string[];
  residue: string[];
}

/** A refused call is taken not to have been made; the others go on without it. */
export function* judgingPlan(
  sandbox: Sandbox,
  run: Omit<SandboxRun, "mode">,
  calls: readonly SpeculatedCall[],
  now_ms: number,
): Paced<JudgedPlan> {
  const { run_id } = run;
  sandbox.open({ ...run, mode: "enforce" });
  const irreversible = new Set<string>();
  const judged: JudgedCall[] = [];
  for (const [i, call] of calls.entries()) {
    yield;
    const asked = { run_id, step: i, call, at_ms: now_ms };
    const { ruling, accepted, reasons, risk_score, evaluation, result } = ask(sandbox, asked, false);
    if (ruling !== "block") {
      if (!accepted) ask(sandbox, asked, true);
      if (result.manifest?.effect === "irreversible") irreversible.add(call.tool);
      sandbox.finish(assumeNothing(run_id, i), madeUpSuccess(result.manifest), now_ms, false);
    }
    judged.push({ decision: ruling, reasons: few(reasons), risk_score, evaluation });
  }
  const { fully_reversible, actions } = sandbox.plan(run_id);
  const residue = actions.flatMap((action) => (action.kind === "compensate" ? action.residue : []));
  return { calls: judged, fully_reversible, irreversible: [...irreversible], residue: [...new Set(residue)] };
}
