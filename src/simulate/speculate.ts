/**
 * Speculation: runs several plans to their end, each in its own sandbox, and ranks them by the effects they would
 * leave.
 */
import type { OutcomeInput } from "../govern/decide/outcome.ts";
import { invalidError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { parseTemplatePath, readPath, templatePaths } from "../kernel/paths.ts";
import type { RollbackPlan } from "../rollback/plan/plan.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";
import { truncateReasons } from "./recorded-call.ts";
import { defaultAssumptions, listCauses, type SandboxDecision, type SandboxEngine } from "./sandbox.ts";
import { synthesizeResult } from "./synthetic-results.ts";

export interface SpeculatedCall {
  tool: string;
  args: JsonValue;
  /** Expected result of the call; synthesized from the manifest if absent. */
  result?: JsonValue | undefined;
}

export interface SpeculativePlan {
  name: string;
  calls: readonly SpeculatedCall[];
}

interface NeededApproval {
  call: number;
  tool: string;
  groups: string[];
  quorum: number;
  reasons: string[];
}

export interface PlanResult {
  name: string;
  rank: number;
  recommended: boolean;
  calls: number;
  /** First blocked call, counted from 0; the plan ends there. */
  blocked_at: { call: number; tool: string; reasons: string[]; hints?: string[]; by: string[] } | null;
  approvals: NeededApproval[];
  highest_risk: number;
  total_risk: number;
  irreversible_tools: string[];
  irreversible_calls: number;
  residue: string[];
  fully_reversible: boolean;
  rollback_plan: RollbackPlan;
  notes: string[];
}

export interface SpeculationReport {
  /** Name of the safest plan that can complete; null if none can. */
  recommended: string | null;
  /** Safest first. */
  plans: PlanResult[];
}

/** Weight of each finding in a plan's rank, to which the highest risk score is added. */
const RANK_WEIGHTS = {
  blocked: 10_000,
  approval: 10,
  irreversible_call: 50,
  not_fully_reversible: 25,
} as const;

interface Speculating {
  actor: string;
  environment: string | null;
  now_ms: number;
  /** Creates a new sandbox for each plan, so that plans do not share limits. */
  sandbox(): Promise<SandboxEngine>;
}

export async function rankPlans(
  plans: readonly SpeculativePlan[],
  how: Speculating,
): Promise<SpeculationReport> {
  checkPlans(plans);
  const results: PlanResult[] = [];
  for (const [i, plan] of plans.entries()) results.push(await tryPlan(plan, `plan-${i}`, how));
  results.sort((a, b) => a.rank - b.rank);
  const best = results.find(({ blocked_at }) => blocked_at === null);
  if (best !== undefined) best.recommended = true;
  return { recommended: best?.name ?? null, plans: results };
}

/** Throws an error with all problems of the list of plans. */
export function checkPlans(plans: readonly SpeculativePlan[]): void {
  if (plans.length === 0) throw invalidError("plans: the list is empty; add at least one");
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [i, { name, calls }] of plans.entries()) {
    if (seen.has(name)) problems.push(`plans[${i}].name: another plan is called ${JSON.stringify(name)} too`);
    seen.add(name);
    if (calls.length === 0) problems.push(`plans[${i}].calls: ${JSON.stringify(name)} has no calls`);
  }
  if (problems.length > 0) throw invalidError(problems.join("; "));
}

async function tryPlan(plan: SpeculativePlan, run_id: string, how: Speculating): Promise<PlanResult> {
  const sandbox = await how.sandbox();
  const { actor, environment } = how;
  sandbox.open({ run_id, actor, environment, tenant: null, mode: "enforce" });
  const tally = new Tally(plan);
  for (const [i, call] of plan.calls.entries()) {
    const asked = { run_id, step: i, call, at_ms: how.now_ms };
    const judgement = decidePlanCall(sandbox, asked, false);
    tally.judged(i, call, judgement);
    if (judgement.ruling === "block") break;
    if (!judgement.accepted) decidePlanCall(sandbox, asked, true);
    const outcome = tally.outcomeOf(i, call, judgement.result.manifest);
    sandbox.finish(defaultAssumptions(run_id, i), outcome, how.now_ms, false);
  }
  return tally.result(sandbox.plan(run_id));
}

/** Decides one call of a plan; `approved` assumes an approval. */
export function decidePlanCall(
  sandbox: SandboxEngine,
  { run_id, step, call, at_ms }: { run_id: string; step: number; call: SpeculatedCall; at_ms: number },
  approved: boolean,
): SandboxDecision {
  return sandbox.judge({
    ...defaultAssumptions(run_id, step),
    tool: call.tool,
    args: call.args,
    depends_on: [],
    at_ms,
    approved,
    dry: false,
    forget: false,
    explain: (ruling) => ruling !== "allow",
  });
}

const MAX_PLAN_NOTES = 100;

class Tally {
  private readonly plan: SpeculativePlan;
  private readonly approvals: NeededApproval[] = [];
  private readonly irreversible: string[] = [];
  private readonly notes: string[] = [];
  private blocked_at: PlanResult["blocked_at"] = null;
  private highest = 0;
  private total = 0;
  private untold = 0;

  constructor(plan: SpeculativePlan) {
    this.plan = plan;
  }

  judged(call: number, { tool }: SpeculatedCall, judgement: SandboxDecision): void {
    const { ruling, reasons, risk_score, evaluation, result } = judgement;
    this.highest = Math.max(this.highest, risk_score);
    this.total += risk_score;
    if (ruling === "block") {
      const { hints } = result.verdict;
      const why = { reasons: truncateReasons(reasons), ...(hints.length === 0 ? {} : { hints }) };
      this.blocked_at = { call, tool, ...why, by: truncateReasons(listCauses(judgement)) };
      return;
    }
    if (ruling === "needs_approval") {
      const { groups = [], quorum = 1 } = evaluation?.approval ?? {};
      this.approvals.push({ call, tool, groups, quorum, reasons: truncateReasons(reasons) });
    }
    if (result.manifest?.effect === "irreversible") this.irreversible.push(tool);
  }

  /** Result and before state of the call, given or synthesized. Notes values that its undo will lack. */
  outcomeOf(
    call: number,
    { tool, args, result: given }: SpeculatedCall,
    manifest: ToolManifest | null,
  ): OutcomeInput {
    const outcome = synthesizeResult(manifest, given);
    const { result, before } = outcome;
    if (given === undefined && result !== undefined)
      this.note(`call ${call} (${tool}): its result is synthetic, from the manifest`);
    if (before !== undefined)
      this.note(`call ${call} (${tool}): the state before it is synthetic, from the manifest`);
    for (const source of undoPaths(manifest)) {
      if (readPath(parseTemplatePath(source), { args, result, before }) !== undefined) continue;
      this.note(`call ${call} (${tool}): its undo needs ${source}, which is missing, so it cannot be undone`);
    }
    return outcome;
  }

  result(rollback_plan: RollbackPlan): PlanResult {
    const { fully_reversible, actions } = rollback_plan;
    const residue = actions.flatMap((action) => (action.kind === "compensate" ? action.residue : []));
    if (this.approvals.length > 0)
      this.note(`${counted(this.approvals.length, "approval")} assumed, so that the rest could be evaluated`);
    const left = this.plan.calls.length - 1 - (this.blocked_at?.call ?? this.plan.calls.length);
    if (left > 0) this.note(`${left} of its calls follow the blocked one and were not evaluated`);
    if (this.untold > 0) this.notes.push(`${this.untold} more notes are not listed`);
    const rank =
      (this.blocked_at === null ? 0 : RANK_WEIGHTS.blocked) +
      this.approvals.length * RANK_WEIGHTS.approval +
      this.highest +
      this.irreversible.length * RANK_WEIGHTS.irreversible_call +
      (fully_reversible ? 0 : RANK_WEIGHTS.not_fully_reversible);
    return {
      name: this.plan.name,
      rank,
      recommended: false,
      calls: this.plan.calls.length,
      blocked_at: this.blocked_at,
      approvals: this.approvals,
      highest_risk: this.highest,
      total_risk: this.total,
      irreversible_tools: [...new Set(this.irreversible)],
      irreversible_calls: this.irreversible.length,
      residue: [...new Set(residue)],
      fully_reversible,
      rollback_plan,
      notes: this.notes,
    };
  }

  private note(text: string): void {
    if (this.notes.length < MAX_PLAN_NOTES) this.notes.push(text);
    else this.untold++;
  }
}

/** Paths that the undo itself needs; a missing value of the read-back does no harm. */
function undoPaths(manifest: ToolManifest | null): string[] {
  return manifest?.compensation ? [...new Set(templatePaths(manifest.compensation.args))] : [];
}

function counted(n: number, what: string): string {
  return n === 1 ? `1 ${what} is` : `${n} ${what}s are`;
}
