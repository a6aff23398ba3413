/**
 * What a run asks for and is answered, and the few things it needs from wherever the engine is: in this process, or
 * behind a server.
 */
import type { Decision } from "../engine/decide/verdict.ts";
import { notFound } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { ApprovalView } from "../model/approval.ts";
import type { PlanView } from "../model/plan.ts";
import type { OutcomeStatus, StepStatus } from "../model/run.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import type { Compensator, Overwrite, Reader } from "../rollback/ports.ts";
import type { RollbackReport } from "../rollback/report.ts";
import type { LookAtApproval } from "./approvals.ts";

/** A call that an agent wants to make. */
export interface Intent {
  /** The name in the manifests. */
  tool: string;
  /** What the call is made with: it is judged, and an approval is for exactly this. The ledger gets a hash of it. */
  args: Json;
  /** The agent's own words, on the ledger and for whoever decides. */
  reason: string;
  /** Steps of this run that the call builds on: they are not undone before it is. */
  depends_on?: readonly number[];
  /** The same call asked for again under the same key is answered as the first time. */
  idempotency_key?: string;
}

/** `replayed`: the answer was given before, under the same key. Whoever got it then may have made the call. */
export type Asked = Decision & { replayed?: true };
/** A decision under which a call may be made. */
export type Allowed = Exclude<Decision, { decision: "block" }>;

/** How a call ended. */
export interface Outcome {
  status: OutcomeStatus;
  /** What the tool answered; the undo takes its arguments from it. */
  result?: Json;
  /** What went wrong, where it did. */
  error?: string;
  /** What the decision's `before` showed before the call, and after it. */
  before?: Json;
  after?: Json;
}

/** Who undoes, who looks, and how far. */
export interface RollbackRequest {
  /** Makes the undo of one step. */
  compensator: Compensator;
  /** Makes declared read-backs; without it such steps end unverified. */
  verifier?: Reader;
  /** How often an undo is tried, under one key; three times unless told. */
  retries?: number;
  /** Makes undos that need an approval without asking; on a server such a decision is a person's. */
  approve_compensations?: boolean;
  /** Undoes this one step over a conflict, as it was when `current_hash` was shown. */
  overwrite?: Overwrite;
  /** Gives up at once with RollbackInterrupted; how the undo under way ended is not known, and it is done again. */
  signal?: AbortSignal;
}

/** One call of a proposed plan. */
export interface PlannedCall {
  tool: string;
  args: Json;
  reason?: string;
  /** Earlier calls of the plan, by position. */
  depends_on?: number[];
}

export interface ProposedPlan {
  reason: string;
  calls: PlannedCall[];
}

/** What a call would be answered now. */
export interface Preview {
  decision: "allow" | "needs_approval" | "block";
  reasons: readonly string[];
  hints: readonly string[];
  risk_score: number;
}

/** The few things a run needs from wherever the engine is. */
export interface RunTransport {
  intent(intent: Intent): Promise<Asked>;
  preview(intent: Intent): Promise<Preview>;
  status(step: number): Promise<StepStatus>;
  /** A request of this run, with what was offered in its place. */
  look: LookAtApproval;
  propose(plan: ProposedPlan): Promise<PlanView>;
  outcome(step: number, outcome: Outcome): Promise<{ step: number; status: OutcomeStatus }>;
  /** Where the engine is told in requests that have a size: what of a call that `call` makes fits into one. */
  fit?: { untellable(before: Json): string | null; fitting(outcome: Outcome): Outcome };
  withdraw(id: string): Promise<ApprovalView | PlanView>;
  plan(): Promise<RollbackPlan>;
  rollback(request: RollbackRequest): Promise<RollbackReport>;
}

/** As the operations take it. */
export function dependingOn(steps: Intent["depends_on"]): { depends_on?: number[] } {
  return steps === undefined ? {} : { depends_on: [...steps] };
}

/** Keys that the library makes are used for its own retries alone; a key of the caller's own may have been used before. */
export async function tellingReplays(
  own: string | undefined,
  ask: (replayed: () => void) => Promise<Decision>,
): Promise<Asked> {
  let replayed = false;
  const decision = await ask(() => {
    replayed = true;
  });
  return replayed && own !== undefined ? { ...decision, replayed: true } : decision;
}

export function statusIn({ steps }: { steps: readonly { status: StepStatus }[] }, step: number): StepStatus {
  const found = steps[step];
  if (found === undefined) throw notFound(`step ${step} does not exist`, "unknown_step");
  return found.status;
}
