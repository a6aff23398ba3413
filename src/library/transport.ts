/** Requests and answers of a run, and the transport that carries them to the engine in this process or on a server. */
import type { ApprovalView } from "../govern/approvals/approval.ts";
import type { OutcomeAnswer } from "../govern/decide/outcome.ts";
import type { IntentDecision } from "../govern/decide/verdict.ts";
import type { PlanView } from "../govern/plans/plan.ts";
import type { OutcomeStatus, StepStatus } from "../govern/runs/run.ts";
import type { GivenText } from "../govern/traces/trace.ts";
import { notFoundError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { RollbackPlan } from "../rollback/plan/plan.ts";
import type { TreeReport } from "../rollback/plan/report.ts";
import type { CompensatorFn, OverwriteDecision, ReaderFn } from "../rollback/ports.ts";
import type { ReadApproval } from "./approvals.ts";

/** A call that an agent wants to make. */
export interface CallIntent {
  /** Name of the tool in the manifests. */
  tool: string;
  /**
   * Arguments of the call. The policy evaluates them, and an approval covers exactly these. The ledger stores their
   * hash.
   */
  args: JsonValue;
  /** The agent's own explanation, for the ledger and for approvers. */
  reason: string;
  /** Earlier steps of this run that the call depends on. Those steps are undone only after this one. */
  depends_on?: readonly number[];
  /** Requests with the same key and content get the first answer again. */
  idempotency_key?: string;
}

/** Decision on an intent. `replayed` marks a repeated answer: the earlier requester may have made the call already. */
export type IntentResponse = IntentDecision & { replayed?: true };
/** A decision that allows the call. */
export type AllowedDecision = Exclude<IntentDecision, { decision: "block" }>;

/** Result of a call. */
export interface CallOutcome {
  status: OutcomeStatus;
  /** The tool's result. The undo takes its arguments from it. */
  result?: JsonValue;
  /** Error message of a call that did not succeed. */
  error?: string;
  /** Answers of the decision's `before` read, made before the call and after it. */
  before?: JsonValue;
  after?: JsonValue;
  /** Last answer of the decision's `effect_check` read. */
  observed?: JsonValue;
}

/** Functions and limits of a rollback. */
export interface RollbackRequest {
  /** Undoes one step. */
  compensator: CompensatorFn;
  /** Makes the declared read-backs. Without it those steps end unverified. */
  verifier?: ReaderFn;
  /** Attempts per undo, all under one idempotency key. Default: 3. */
  retries?: number;
  /** Runs undos that need approval without an approval. Not available on a server, where an approver decides. */
  approve_compensations?: boolean;
  /** Also undoes all runs below this one. The report then has their reports in `children`. */
  children?: boolean;
  /** Undoes this one step despite a conflict, if its state still has the hash `current_hash`. */
  overwrite?: OverwriteDecision;
  /** Aborts at once with RollbackInterrupted. The undo in progress then has an unknown result and runs again later. */
  signal?: AbortSignal;
}

/** One call of a proposed plan. */
export interface PlannedCall {
  tool: string;
  args: JsonValue;
  reason?: string;
  /** Positions of earlier calls in the plan that this call depends on. */
  depends_on?: number[];
}

export interface ProposedPlan {
  reason: string;
  calls: PlannedCall[];
}

/** The decision that a call would get now. */
export interface DecisionPreview {
  decision: "allow" | "needs_approval" | "block";
  reasons: readonly string[];
  hints: readonly string[];
  risk_score: number;
}

/** Operations that a run needs from the engine, in this process or on a server. */
export interface RunTransport {
  /** Why the approvers file does not permit an allowed call, or null. Absent without such a file. */
  objection?(intent: CallIntent, approval_id: string | undefined): Promise<string | null>;
  intent(intent: CallIntent): Promise<IntentResponse>;
  preview(intent: CallIntent): Promise<DecisionPreview>;
  status(step: number): Promise<StepStatus>;
  /** Reads a request of this run, with its counter-proposal. */
  look: ReadApproval;
  propose(plan: ProposedPlan): Promise<PlanView>;
  outcome(step: number, outcome: CallOutcome): Promise<OutcomeAnswer>;
  /** Fits the values of a call into requests of limited size. Absent if the engine is in this process. */
  fit?: { untellable(before: JsonValue): string | null; fitting(outcome: CallOutcome): CallOutcome };
  withdraw(id: string): Promise<ApprovalView | PlanView>;
  give(texts: readonly string[]): Promise<GivenText[]>;
  plan(): Promise<RollbackPlan>;
  rollback(request: RollbackRequest): Promise<TreeReport>;
}

/** Dependencies in the form that the operations accept. */
export function toDependsOn(steps: CallIntent["depends_on"]): { depends_on?: number[] } {
  return steps === undefined ? {} : { depends_on: [...steps] };
}

/**
 * Adds `replayed` to a repeated answer. Only a key of the caller counts, because the library uses its own keys just for
 * its own retries.
 */
export async function withReplayDetection(
  own: string | undefined,
  ask: (replayed: () => void) => Promise<IntentDecision>,
): Promise<IntentResponse> {
  let replayed = false;
  const decision = await ask(() => {
    replayed = true;
  });
  return replayed && own !== undefined ? { ...decision, replayed: true } : decision;
}

export function statusIn({ steps }: { steps: readonly { status: StepStatus }[] }, step: number): StepStatus {
  const found = steps[step];
  if (found === undefined) throw notFoundError(`step ${step} does not exist`, "unknown_step");
  return found.status;
}
