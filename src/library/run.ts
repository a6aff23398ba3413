/** A run as the agent's code uses it, identical for an embedded engine and a remote server. */
import {
  type ApprovalView,
  OPEN_APPROVAL_STATUSES,
  pendingApprovalId,
  replacePendingReason,
} from "../govern/approvals/approval.ts";
import { type BeforeRead, beforeAnswerProblem } from "../govern/decide/before-state.ts";
import { observeEffect } from "../govern/decide/effect-check.ts";
import type { OutcomeAnswer } from "../govern/decide/outcome.ts";
import type { IntentDecision } from "../govern/decide/verdict.ts";
import type { PlanView } from "../govern/plans/plan.ts";
import type { StepStatus } from "../govern/runs/run.ts";
import type { GivenText } from "../govern/traces/trace.ts";
import { systemEnv } from "../kernel/env.ts";
import { messageOf } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { withTimeout } from "../kernel/timeout.ts";
import type { RollbackPlan } from "../rollback/plan/plan.ts";
import type { TreeReport } from "../rollback/plan/report.ts";
import type { ReadRequest } from "../rollback/ports.ts";
import { readEach } from "../rollback/undo/read-each.ts";
import { endedReason, type OfferedApproval, offerOf, type WaitTime, waitFor, waitMs } from "./approvals.ts";
import { BlockedError, UncertainError } from "./errors.ts";
import { assertSendable } from "./request-size.ts";
import type {
  AllowedDecision,
  CallIntent,
  CallOutcome,
  DecisionPreview,
  IntentResponse,
  PlannedCall,
  RollbackRequest,
  RunTransport,
} from "./transport.ts";

/** Options of a run's `call` for waiting, reading and timeouts. */
export interface CallOptions {
  /** Timeout of the tool in milliseconds. After it the outcome counts as unknown. */
  timeout_ms?: number;
  /**
   * Makes the read that a manifest's `before` requires, before the call and after it. Without `read` such a call is not
   * made, unless the manifest sets `required: false`. Also makes the read of an `effect_check`, which is not made
   * without it.
   */
  read?: (request: ReadRequest) => Promise<JsonValue> | JsonValue;
  /** How long to wait for an approval: a duration such as `10m`, or seconds. */
  wait_for_approval?: WaitTime;
  /** Stops the waiting. */
  signal?: AbortSignal;
}

/**
 * A task of one agent. Its calls are decided, recorded and undone together. Create runs with `svc.run` and
 * `svc.attach`.
 */
export class AgentRun {
  readonly run_id: string;
  /** Signature over the run's permissions, which cannot be widened later. */
  readonly scope_seal: string;
  private readonly transport: RunTransport;
  /** Arguments of allowed calls whose effect will be checked, by step. */
  private readonly argsToCheck = new Map<number, JsonValue>();

  constructor(run_id: string, scope_seal: string, transport: RunTransport) {
    this.run_id = run_id;
    this.scope_seal = scope_seal;
    this.transport = transport;
  }

  /**
   * Requests a decision on a call. If you make the call, report its `outcome`. `call` does both.
   */
  async intent(intent: CallIntent): Promise<IntentResponse> {
    const decision = await this.transport.intent(intent);
    if (decision.decision !== "block" && decision.effect_check !== undefined)
      this.argsToCheck.set(decision.step, intent.args);
    if (decision.decision === "block" || this.transport.objection === undefined) return decision;
    const approval_id = decision.decision === "allow" ? decision.approval_id : undefined;
    const objection = await this.transport.objection(intent, approval_id);
    if (objection === null) return decision;
    // A server that made the step up cannot record its outcome either.
    await this.tell(decision.step, { status: "failed", error: objection }).catch(() => undefined);
    return { decision: "block", reasons: [objection] };
  }

  /**
   * Proposes several calls in advance. One decision covers them all, and the agent then makes them in this order.
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

  /** Returns the decision that the call would get now, and records nothing. */
  preview(intent: CallIntent): Promise<DecisionPreview> {
    return this.transport.preview(intent);
  }

  /** Reports how a call that `intent` allowed ended. */
  outcome(step: number, outcome: CallOutcome): Promise<OutcomeAnswer> {
    this.argsToCheck.delete(step);
    return this.transport.outcome(step, outcome);
  }

  /** Previews a rollback: what it would undo now, and what it could not. Changes nothing. */
  plan(): Promise<RollbackPlan> {
    return this.transport.plan();
  }

  /**
   * Undoes the run's steps, newest first, and verifies each undo as its manifest declares. You can repeat a rollback:
   * it skips steps that are undone already.
   *
   * @example
   * ```ts
   * const report = await run.rollback({
   *   compensator: ({ tool, args, idempotency_key }) => payments.undo(tool, args, idempotency_key),
   *   verifier: ({ tool, arguments: args }) => payments.read(tool, args),
   * });
   * if (!report.complete) console.log("not undone:", report.failed, report.unrecoverable);
   * ```
   */
  rollback(request: RollbackRequest): Promise<TreeReport> {
    return this.transport.rollback(request);
  }

  /** Withdraws a pending approval request of this run, or a plan that has not ended. */
  withdraw(id: string): Promise<ApprovalView | PlanView> {
    return this.transport.withdraw(id);
  }

  /** Returns a request of this run. With `for`, waits until it is decided or the time has passed. */
  approval(id: string, options: { for?: WaitTime; signal?: AbortSignal } = {}): Promise<OfferedApproval> {
    return waitFor(this.transport.look, id, { for: 0, ...options });
  }

  /** Returns the status of a step. */
  status(step: number): Promise<StepStatus> {
    return this.transport.status(step);
  }

  /**
   * Gives a user's text to the run, such as the next prompt. Values in these texts no longer count as foreign. Only
   * their fingerprints are kept. Returns when each text of the run was given, and its length. On a server, your key
   * needs `may_give`.
   */
  give(texts: readonly string[]): Promise<GivenText[]> {
    return this.transport.give(texts);
  }

  private async blocked({ decision, ended }: Refused): Promise<BlockedError> {
    const { reasons, hints } = decision;
    if (ended !== undefined)
      return new BlockedError(
        replacePendingReason(reasons, endedReason(ended)),
        hints,
        offerOf(ended),
        ended.id,
      );
    const plain = new BlockedError(reasons, hints);
    if (plain.approval_id === null) return plain;
    // A counter-proposal is optional: if it cannot be read now, the refusal stays the same.
    const found = await this.transport.look(plain.approval_id, 0).catch(() => undefined);
    return found === undefined ? plain : new BlockedError(reasons, hints, offerOf(found));
  }

  /**
   * Requests a decision, executes the call and reports its outcome. With `wait_for_approval` it waits for an approver
   * first. Throws a {@link BlockedError} if the call is not allowed.
   *
   * An error from `execute` is recorded and rethrown. The step is then `failed`, or `uncertain` after an
   * {@link UncertainError} or a timeout. If the manifest's effect check does not show the effect, the step is `uncertain`
   * and the call throws an {@link UncertainError}.
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
    intent: CallIntent,
    execute: (step: number) => Promise<T> | T,
    options: CallOptions = {},
  ): Promise<T> {
    const decided = await this.decided(intent, options);
    if (isRefused(decided)) throw await this.blocked(decided);
    return this.carryOut(decided.decision, intent.tool, execute, options);
  }

  /** Executes an allowed call and reports its outcome, as `call` does. */
  async carryOut<T>(
    decision: AllowedDecision,
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
      result = await (timeout_ms === undefined ? executed : withTimeout(executed, timeout_ms, notAnswered));
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
    // A failed read is not reported. The undo then treats the state as changed.
    const after = before === undefined ? undefined : await readOnce(read!, asked!).catch(() => undefined);
    const observed = await this.observe(decision, { result: value, before }, read);
    const told = await this.tell(decision.step, {
      status: "succeeded",
      ...(value === undefined ? {} : { result: value }),
      ...(before === undefined ? {} : { before }),
      ...(after === undefined ? {} : { after }),
      ...(observed === undefined ? {} : { observed }),
    });
    if (told.effect_check === "missing")
      throw new UncertainError(
        `${tool} reported success, but ${decision.effect_check?.tool} does not show its effect`,
      );
    return result;
  }

  /** Reads whether the call took effect. Undefined without a declared check, or if it cannot be run. */
  private async observe(
    { step, effect_check: check }: AllowedDecision,
    values: { result: JsonValue | undefined; before: JsonValue | undefined },
    read: CallOptions["read"],
  ): Promise<JsonValue | undefined> {
    const args = this.argsToCheck.get(step);
    if (check === undefined || read === undefined || args === undefined) return undefined;
    const once = async (request: ReadRequest) => {
      const value = await read(request);
      assertSendable(value, "read");
      return value;
    };
    return observeEffect(systemEnv, once, check, { args, ...values });
  }

  /** Reports an outcome, trimmed and with valid Unicode, because a step without a reported outcome stays unresolved. */
  private tell(step: number, outcome: CallOutcome): Promise<OutcomeAnswer> {
    const { error, ...rest } = this.transport.fit?.fitting(outcome) ?? outcome;
    return this.outcome(step, error === undefined ? rest : { ...rest, error: error.toWellFormed() });
  }

  /**
   * Reads the state before the call. A failed read fails the step before the tool runs, unless the manifest allows it.
   */
  private async readBefore(
    step: number,
    asked: BeforeRead,
    read: CallOptions["read"],
  ): Promise<JsonValue | undefined> {
    try {
      if (read === undefined) throw new Error("the call was made without `read`");
      const before = await readOnce(read, asked);
      const problem = beforeAnswerProblem(asked, before) ?? this.transport.fit?.untellable(before) ?? null;
      if (problem !== null) throw new Error(problem);
      return before;
    } catch (error) {
      if (asked.required === false) return undefined;
      const text = `before: ${asked.tool} could not be read: ${messageOf(error)}`;
      await this.tell(step, { status: "failed", error: text });
      throw new Error(text, { cause: error });
    }
  }

  /** Requests a decision, and requests it again after the approval that it needs. */
  private async decided(
    intent: CallIntent,
    { wait_for_approval = 0, signal }: CallOptions,
  ): Promise<Decided | Refused> {
    const until = performance.now() + waitMs(wait_for_approval, "wait_for_approval");
    for (;;) {
      const decision = await this.intent(intent);
      if (decision.decision !== "block") return { decision };
      const id = pendingApprovalId(decision.reasons);
      const left_s = (until - performance.now()) / 1_000;
      if (id === null || left_s <= 0) return { decision };
      const approval = await waitFor(this.transport.look, id, { for: left_s, signal });
      if (OPEN_APPROVAL_STATUSES.has(approval.status)) return { decision };
      // A denial is final: do not request another approval.
      if (approval.status !== "approved" && approval.status !== "consumed")
        return { decision, ended: approval };
    }
  }
}

interface Decided {
  decision: AllowedDecision;
}

interface Refused {
  decision: Extract<IntentDecision, { decision: "block" }>;
  /** The awaited request, if it ended without approval. */
  ended?: OfferedApproval;
}

const isRefused = (decided: Decided | Refused): decided is Refused => decided.decision.decision === "block";

async function readOnce(read: NonNullable<CallOptions["read"]>, asked: BeforeRead): Promise<JsonValue> {
  const value = await readEach(async (one) => read(one), { tool: asked.tool, arguments: asked.arguments });
  assertSendable(value, "read");
  return value;
}

/** The tool's result, or undefined if JSON cannot represent it exactly: an undo must never use a rounded id. */
function keptOf(result: unknown): JsonValue | undefined {
  const value = jsonOf(result);
  try {
    if (value !== undefined) assertSendable(value, "result");
    return value;
  } catch {
    return undefined;
  }
}

/** The value as JSON. Undefined for values without a JSON form, such as a socket or a function. */
export function jsonOf(value: unknown): JsonValue | undefined {
  if (value === undefined) return undefined;
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : (JSON.parse(text) as JsonValue);
  } catch {
    return undefined;
  }
}
