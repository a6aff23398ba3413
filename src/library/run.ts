/** A run as an agent's code holds it; the same on an embedded engine and on a remote server. */
import { answerProblem, type BeforeRead } from "../engine/before.ts";
import type { Decision } from "../engine/decide/verdict.ts";
import { within } from "../kernel/deadline.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { type ApprovalView, approvalIn, OPEN_APPROVAL, withEnding } from "../model/approval.ts";
import type { PlanView } from "../model/plan.ts";
import type { OutcomeStatus, StepStatus } from "../model/run.ts";
import type { RollbackPlan } from "../rollback/plan.ts";
import type { ReadRequest } from "../rollback/ports.ts";
import { readEach } from "../rollback/read-each.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { endedReason, type OfferedApproval, offerOf, type Wait, waitFor, waitMs } from "./approvals.ts";
import { BlockedError, UncertainError } from "./errors.ts";
import { assertTellable } from "./fitting.ts";
import type {
  Allowed,
  Asked,
  Intent,
  Outcome,
  PlannedCall,
  Preview,
  RollbackRequest,
  RunTransport,
} from "./transport.ts";

/** How {@link Run.call} waits, reads and gives up. */
export interface CallOptions {
  /** After this long the outcome counts as unknown. */
  timeout_ms?: number;
  /**
   * Makes the read that a manifest's `before` asks for, before the call and after it. Without it such a call is not
   * made, unless the manifest says `required: false`.
   */
  read?: (request: ReadRequest) => Promise<Json> | Json;
  /** How long to wait for a person, where one must decide: a duration such as `10m`, or seconds. */
  wait_for_approval?: Wait;
  /** Ends the waiting. */
  signal?: AbortSignal;
}

/**
 * A piece of work of one agent: its calls are judged, recorded and undone together. Runs come from `svc.run` and
 * `svc.attach`.
 */
export class Run {
  readonly run_id: string;
  /** Keeps the run's permissions as they were given: they cannot be widened later. */
  readonly scope_seal: string;
  private readonly transport: RunTransport;

  constructor(run_id: string, scope_seal: string, transport: RunTransport) {
    this.run_id = run_id;
    this.scope_seal = scope_seal;
    this.transport = transport;
  }

  /** Asks whether a call may be made. Whoever makes it then tells its {@link Run.outcome}; {@link Run.call} does both. */
  intent(intent: Intent): Promise<Asked> {
    return this.transport.intent(intent);
  }

  /**
   * Proposes calls before they are made: one decision on all of them, and then in this order.
   *
   * @example
   * ```ts
   * const plan = await run.propose(
   *   [
   *     { tool: "payments.refund", args: { charge: "ch_4", amount: 600 } },
   *     { tool: "payments.refund", args: { charge: "ch_5", amount: 10 } },
   *   ],
   *   { reason: "two items of one order came back" },
   * );
   * console.log(plan.status, plan.fully_reversible); // pending true
   * ```
   */
  propose(calls: readonly PlannedCall[], options: { reason?: string } = {}): Promise<PlanView> {
    const reason = options.reason ?? calls.find((call) => call.reason !== undefined)?.reason ?? "a plan";
    return this.transport.propose({ reason, calls: [...calls] });
  }

  /** Says what the call would be answered, and leaves nothing behind. */
  preview(intent: Intent): Promise<Preview> {
    return this.transport.preview(intent);
  }

  /** Tells how a call ended that was allowed by {@link Run.intent}. */
  outcome(step: number, outcome: Outcome): Promise<{ step: number; status: OutcomeStatus }> {
    return this.transport.outcome(step, outcome);
  }

  /** What a rollback would do now, and what it could not; nothing is changed. */
  plan(): Promise<RollbackPlan> {
    return this.transport.plan();
  }

  /**
   * Undoes what the run did, newest first, and reads back what the manifests say. May be run again: what is undone
   * already is left alone.
   *
   * @example
   * ```ts
   * const report = await run.rollback({
   *   compensator: ({ tool, args, idempotency_key }) => payments.undo(tool, args, idempotency_key),
   *   verifier: ({ tool, arguments: args }) => payments.read(tool, args),
   * });
   * if (!report.complete) console.log("still standing:", report.failed, report.unrecoverable);
   * ```
   */
  rollback(request: RollbackRequest): Promise<RollbackReport> {
    return this.transport.rollback(request);
  }

  /** Takes back a request of this run that no person has decided yet, or a plan that has not ended. */
  withdraw(id: string): Promise<ApprovalView | PlanView> {
    return this.transport.withdraw(id);
  }

  /** A request of this run; with `for`, once it is decided or the time is over. */
  approval(id: string, options: { for?: Wait; signal?: AbortSignal } = {}): Promise<OfferedApproval> {
    return waitFor(this.transport.look, id, { for: 0, ...options });
  }

  /** What became of a step. */
  status(step: number): Promise<StepStatus> {
    return this.transport.status(step);
  }

  private async blocked({ decision, ended }: Refused): Promise<BlockedError> {
    const { reasons, hints } = decision;
    if (ended !== undefined)
      return new BlockedError(withEnding(reasons, endedReason(ended)), hints, offerOf(ended), ended.id);
    const plain = new BlockedError(reasons, hints);
    if (plain.approval_id === null) return plain;
    // An offer is good news beside the refusal; that it cannot be had now does not change the refusal.
    const found = await this.transport.look(plain.approval_id, 0).catch(() => undefined);
    return found === undefined ? plain : new BlockedError(reasons, hints, offerOf(found));
  }

  /**
   * Asks, executes and reports; with `wait_for_approval` it waits for a person in between. Throws a {@link BlockedError}
   * when the call may not be made. Whatever the function throws is recorded and thrown on: the step is then `failed`, or
   * `uncertain` for an {@link UncertainError} or a timeout.
   *
   * @example
   * ```ts
   * const args = { charge: "ch_1", amount: 45 };
   * const { id } = await run.call(
   *   { tool: "payments.refund", args, reason: "the parcel never came" },
   *   (step) => payments.refund(args.charge, args.amount),
   *   { wait_for_approval: "10m", timeout_ms: 30_000 },
   * );
   * ```
   */
  async call<T>(
    intent: Intent,
    execute: (step: number) => Promise<T> | T,
    options: CallOptions = {},
  ): Promise<T> {
    const decided = await this.decided(intent, options);
    if (isRefused(decided)) throw await this.blocked(decided);
    return this.carryOut(decided.decision, intent.tool, execute, options);
  }

  /** Executes what was allowed and reports it, as `call` does. */
  async carryOut<T>(
    decision: Allowed,
    tool: string,
    execute: (step: number) => Promise<T> | T,
    options: Pick<CallOptions, "timeout_ms" | "read"> = {},
  ): Promise<T> {
    const { before: asked } = decision;
    const { read, timeout_ms } = options;
    const notAnswered = () => {
      throw new UncertainError(`${tool} did not answer within ${timeout_ms} ms`);
    };
    const before = asked === undefined ? undefined : await this.readBefore(decision.step, asked, read);
    let result: T;
    try {
      const executed = Promise.resolve(execute(decision.step));
      result = await (timeout_ms === undefined ? executed : within(executed, timeout_ms, notAnswered));
    } catch (error) {
      const status = error instanceof UncertainError ? "uncertain" : "failed";
      await this.tell(decision.step, {
        status,
        error: messageOf(error),
        ...(before === undefined ? {} : { before }),
      });
      throw error;
    }
    const value = keptOf(result);
    // What cannot be read afterwards is not told: an undo then meets it as changed.
    const after = before === undefined ? undefined : await readOnce(read!, asked!).catch(() => undefined);
    await this.tell(decision.step, {
      status: "succeeded",
      ...(value === undefined ? {} : { result: value }),
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
    });
    return result;
  }

  /** What cannot be told as it is is left out or mended, because what is not told stays unresolved. */
  private tell(step: number, outcome: Outcome): Promise<{ step: number; status: OutcomeStatus }> {
    const { error, ...told } = this.transport.fit?.fitting(outcome) ?? outcome;
    return this.outcome(step, error === undefined ? told : { ...told, error: error.toWellFormed() });
  }

  /** A read that fails fails the step before anything is called, unless its manifest lets it pass. */
  private async readBefore(
    step: number,
    asked: BeforeRead,
    read: CallOptions["read"],
  ): Promise<Json | undefined> {
    try {
      if (read === undefined) throw new Error("the call was made without `read`");
      const before = await readOnce(read, asked);
      const problem = answerProblem(asked, before) ?? this.transport.fit?.untellable(before) ?? null;
      if (problem !== null) throw new Error(problem);
      return before;
    } catch (error) {
      if (asked.required === false) return undefined;
      const text = `before: ${asked.tool} could not be read: ${messageOf(error)}`;
      await this.tell(step, { status: "failed", error: text });
      throw new Error(text, { cause: error });
    }
  }

  /** The decision, asked for again once the request that it waits for was approved. */
  private async decided(
    intent: Intent,
    { wait_for_approval = 0, signal }: CallOptions,
  ): Promise<Decided | Refused> {
    const until = performance.now() + waitMs(wait_for_approval, "wait_for_approval");
    for (;;) {
      const decision = await this.intent(intent);
      if (decision.decision !== "block") return { decision };
      const id = approvalIn(decision.reasons);
      const left_s = (until - performance.now()) / 1_000;
      if (id === null || left_s <= 0) return { decision };
      const approval = await waitFor(this.transport.look, id, { for: left_s, signal });
      if (OPEN_APPROVAL.has(approval.status)) return { decision };
      // Whoever said no is not asked again.
      if (approval.status !== "approved" && approval.status !== "consumed")
        return { decision, ended: approval };
    }
  }
}

interface Decided {
  decision: Allowed;
}

interface Refused {
  decision: Extract<Decision, { decision: "block" }>;
  /** The request that was waited for, where it ended without a yes. */
  ended?: OfferedApproval;
}

const isRefused = (decided: Decided | Refused): decided is Refused => decided.decision.decision === "block";

async function readOnce(read: NonNullable<CallOptions["read"]>, asked: BeforeRead): Promise<Json> {
  const value = await readEach(async (one) => read(one), { tool: asked.tool, arguments: asked.arguments });
  assertTellable(value, "read");
  return value;
}

/** A result that cannot be kept exactly is not kept: an undo must never use a rounded id. */
function keptOf(result: unknown): Json | undefined {
  const value = jsonOf(result);
  try {
    if (value !== undefined) assertTellable(value, "result");
    return value;
  } catch {
    return undefined;
  }
}

/** Undefined for what has no JSON form: a socket, a function. */
export function jsonOf(value: unknown): Json | undefined {
  if (value === undefined) return undefined;
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : (JSON.parse(text) as Json);
  } catch {
    return undefined;
  }
}
