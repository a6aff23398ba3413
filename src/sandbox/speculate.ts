/** Speculation: several plans, each run to its end in a sandbox of its own, and ranked by what they would leave. */
import type { OutcomeInput } from "../engine/outcome.ts";
import { invalid } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { parseTemplatePath, readPath, templatePaths } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import { madeUpSuccess } from "./made-up.ts";
import { few } from "./past-call.ts";
import { assumeNothing, causesOf, type Judgement, type Sandbox } from "./sandbox.ts";

export interface SpeculatedCall {
  tool: string;
  args: Json;
  /** What the call is expected to answer; made up from the manifest where it is left out. */
  result?: Json | undefined;
}

export interface Plan {
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
  /** The first refused call, counted from 0; the plan ends there. */
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
  /** The name of the safest plan that can run to its end; null where none can. */
  recommended: string | null;
  /** The safest first. */
  plans: PlanResult[];
}

/** What each finding adds to a plan's rank; the highest risk score is added as it is. */
export const RANK = {
  blocked: 10_000,
  approval: 10,
  irreversible_call: 50,
  not_fully_reversible: 25,
} as const;

interface Speculating {
  actor: string;
  environment: string | null;
  now_ms: number;
  /** A fresh one for each plan: no plan feels the limits that another has used up. */
  sandbox(): Promise<Sandbox>;
}

export async function rankPlans(plans: readonly Plan[], how: Speculating): Promise<SpeculationReport> {
  checkPlans(plans);
  const results: PlanResult[] = [];
  for (const [i, plan] of plans.entries()) results.push(await tryPlan(plan, `plan-${i}`, how));
  results.sort((a, b) => a.rank - b.rank);
  const best = results.find(({ blocked_at }) => blocked_at === null);
  if (best !== undefined) best.recommended = true;
  return { recommended: best?.name ?? null, plans: results };
}

/** Throws with everything that is wrong with the list of plans itself. */
export function checkPlans(plans: readonly Plan[]): void {
  if (plans.length === 0) throw invalid("plans: there is none; give at least one");
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const [i, { name, calls }] of plans.entries()) {
    if (seen.has(name)) problems.push(`plans[${i}].name: another plan is called ${JSON.stringify(name)} too`);
    seen.add(name);
    if (calls.length === 0) problems.push(`plans[${i}].calls: ${JSON.stringify(name)} has no calls`);
  }
  if (problems.length > 0) throw invalid(problems.join("; "));
}

async function tryPlan(plan: Plan, run_id: string, how: Speculating): Promise<PlanResult> {
  const sandbox = await how.sandbox();
  const { actor, environment } = how;
  sandbox.open({ run_id, actor, environment, tenant: null, mode: "enforce" });
  const tally = new Tally(plan);
  for (const [i, call] of plan.calls.entries()) {
    const asked = { run_id, step: i, call, at_ms: how.now_ms };
    const judgement = ask(sandbox, asked, false);
    tally.judged(i, call, judgement);
    if (judgement.ruling === "block") break;
    if (!judgement.accepted) ask(sandbox, asked, true);
    const outcome = tally.outcomeOf(i, call, judgement.result.manifest);
    sandbox.finish(assumeNothing(run_id, i), outcome, how.now_ms, false);
  }
  return tally.result(sandbox.plan(run_id));
}

/** Asks for one call of a plan; `approved` takes a person to have said yes. */
export function ask(
  sandbox: Sandbox,
  { run_id, step, call, at_ms }: { run_id: string; step: number; call: SpeculatedCall; at_ms: number },
  approved: boolean,
): Judgement {
  return sandbox.judge({
    ...assumeNothing(run_id, step),
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

const MOST_NOTES = 100;

class Tally {
  private readonly plan: Plan;
  private readonly approvals: NeededApproval[] = [];
  private readonly irreversible: string[] = [];
  private readonly notes: string[] = [];
  private blocked_at: PlanResult["blocked_at"] = null;
  private highest = 0;
  private total = 0;
  private untold = 0;

  constructor(plan: Plan) {
    this.plan = plan;
  }

  judged(call: number, { tool }: SpeculatedCall, judgement: Judgement): void {
    const { ruling, reasons, risk_score, evaluation, result } = judgement;
    this.highest = Math.max(this.highest, risk_score);
    this.total += risk_score;
    if (ruling === "block") {
      const { hints } = result.verdict;
      const why = { reasons: few(reasons), ...(hints.length === 0 ? {} : { hints }) };
      this.blocked_at = { call, tool, ...why, by: few(causesOf(judgement)) };
      return;
    }
    if (ruling === "needs_approval") {
      const { groups = [], quorum = 1 } = evaluation?.approval ?? {};
      this.approvals.push({ call, tool, groups, quorum, reasons: few(reasons) });
    }
    if (result.manifest?.effect === "irreversible") this.irreversible.push(tool);
  }

  /** The call's result, given or made up, and what it found there; what its undo will miss is noted. */
  outcomeOf(
    call: number,
    { tool, args, result: given }: SpeculatedCall,
    manifest: Manifest | null,
  ): OutcomeInput {
    const outcome = madeUpSuccess(manifest, given);
    const { result, before } = outcome;
    if (given === undefined && result !== undefined)
      this.note(`call ${call} (${tool}): its result was made up from the manifest`);
    if (before !== undefined)
      this.note(`call ${call} (${tool}): what is there before it was made up from the manifest`);
    for (const source of undoPaths(manifest)) {
      if (readPath(parseTemplatePath(source), { args, result, before }) !== undefined) continue;
      this.note(
        `call ${call} (${tool}): its undo needs ${source}, which is not there, so it cannot be undone`,
      );
    }
    return outcome;
  }

  result(rollback_plan: RollbackPlan): PlanResult {
    const { fully_reversible, actions } = rollback_plan;
    const residue = actions.flatMap((action) => (action.kind === "compensate" ? action.residue : []));
    if (this.approvals.length > 0)
      this.note(
        `${counted(this.approvals.length, "approval")} taken as given, so that the rest could be tried`,
      );
    const left = this.plan.calls.length - 1 - (this.blocked_at?.call ?? this.plan.calls.length);
    if (left > 0) this.note(`${left} of its calls come behind the refused one and were not tried`);
    if (this.untold > 0) this.notes.push(`${this.untold} more notes are not listed`);
    const rank =
      (this.blocked_at === null ? 0 : RANK.blocked) +
      this.approvals.length * RANK.approval +
      this.highest +
      this.irreversible.length * RANK.irreversible_call +
      (fully_reversible ? 0 : RANK.not_fully_reversible);
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
    if (this.notes.length < MOST_NOTES) this.notes.push(text);
    else this.untold++;
  }
}

/** What the undo itself is built from; the read-back can be missing something without harm to it. */
function undoPaths(manifest: Manifest | null): string[] {
  return manifest?.compensation ? [...new Set(templatePaths(manifest.compensation.args))] : [];
}

function counted(n: number, what: string): string {
  return n === 1 ? `1 ${what} is` : `${n} ${what}s are`;
}
