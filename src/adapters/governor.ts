/**
 * The part that all adapters share: decide, wait, execute and report one tool call of a framework. A refused call
 * becomes an answer for the model and never an exception. Each framework call executes at most once.
 */
import { OPEN_APPROVAL_STATUSES, pendingApprovalId } from "../govern/approvals/approval.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { endedReason, type OfferedApproval, offerOf, type WaitTime } from "../library/approvals.ts";
import type { CounterOffer } from "../library/errors.ts";
import { assertSendable } from "../library/request-size.ts";
import { type AgentRun, type CallOptions, jsonOf } from "../library/run.ts";
import type { AllowedDecision, CallIntent, DecisionPreview, IntentResponse } from "../library/transport.ts";

/** A tool call as the framework represents it. */
export interface FrameworkCall {
  /** The framework's id of the call, which stays the same when the framework resumes it. */
  id: string | undefined;
  tool: string;
  args: unknown;
}

/** The approval request that a call waits for. */
export interface ApprovalRequest {
  approval_id: string;
  tool: string;
  args: JsonValue;
  reasons: readonly string[];
}

/** The answer that the model gets instead of the tool's value if the call was not made. */
export interface CallRefusal {
  blocked: true;
  reasons: readonly string[];
  /** Alternatives for the agent that the policy suggests. */
  hints: readonly string[];
  /** The approval request, if it is still pending. */
  approval_id?: string;
  /** The approver's counter-proposal. */
  offer?: CounterOffer;
}

/** Options of every adapter. */
export interface GovernOptions extends Pick<CallOptions, "timeout_ms" | "read"> {
  /**
   * Runs after the user answered in the framework's own approval prompt. Decide the request here with that user's
   * credential, for example with `svc.approvals.approve(approval_id, { key })`. The call runs only if the request is
   * approved afterwards.
   */
  onApproval?: (request: ApprovalRequest, answer: unknown) => Promise<unknown> | unknown;
  /** How long a call waits for a decision that an approver makes elsewhere. */
  wait_for_approval?: WaitTime;
  /** Maps a framework tool's name to its name in the manifests. Default: the same name. */
  name?: (tool: string) => string;
  /** Reason of a call for the ledger. Must return the same text for the same call. */
  reason?: (call: { tool: string; args: JsonValue }) => string;
}

/** The answer to the framework's pause. Undefined if the framework did not pause. */
export type PauseAnswer = { answer: unknown } | typeof PAUSED_CALL | undefined;
/** Returned by a pause that ends without an answer. The framework repeats the call later. */
export const PAUSED_CALL = Symbol("paused");

type Verdict = { go: AllowedDecision } | { refusal: CallRefusal } | { request: ApprovalRequest };
/** A verdict that needs no further decision. */
type Settled = Exclude<Verdict, { request: ApprovalRequest }> | { paused: true };

export class CallGovernor {
  readonly run: AgentRun;
  private readonly options: GovernOptions;
  private readonly framework: string;
  /** Verdicts requested before the framework executes the call, by call id. */
  private readonly held = new Map<string, Verdict>();

  constructor(run: AgentRun, options: GovernOptions, framework: string) {
    this.run = run;
    this.options = options;
    this.framework = framework;
  }

  nameOf(tool: string): string {
    return this.options.name?.(tool) ?? tool;
  }

  /** Previews the decision for a hook that runs before the execution. Records nothing. */
  async preview(call: FrameworkCall): Promise<DecisionPreview> {
    const problem = problemIn(call);
    if (problem !== undefined) return { decision: "block", reasons: [problem], hints: [], risk_score: 0 };
    return this.run.preview(this.intentOf(call));
  }

  /**
   * Refuses a call from a hook that runs before the execution, and records the refusal. Undefined if the call turns out
   * not to be refused.
   */
  async refuse(call: FrameworkCall): Promise<CallRefusal | undefined> {
    const verdict = await this.ask(call);
    if ("refusal" in verdict) return verdict.refusal;
    if (call.id !== undefined) this.held.set(call.id, verdict);
    return undefined;
  }

  /**
   * Handles a call from decision to report. Resolves to undefined if the framework paused.
   *
   * `pause` triggers the framework's own pause. It may throw or never return: a resumed framework repeats the call,
   * which then gets its first answer.
   */
  async make<T>(
    call: FrameworkCall,
    execute: () => Promise<T> | T,
    pause: (request: ApprovalRequest) => Promise<PauseAnswer> | PauseAnswer = () => undefined,
  ): Promise<T | CallRefusal | undefined> {
    const asked = await this.ask(call);
    const settled =
      "request" in asked ? await this.settle(call, asked.request, () => pause(asked.request)) : asked;
    if ("refusal" in settled) return settled.refusal;
    if ("paused" in settled) return undefined;
    return this.run.carryOut(settled.go, this.nameOf(call.tool), execute, this.options);
  }

  private async ask(call: FrameworkCall): Promise<Verdict> {
    const { id } = call;
    const held = id === undefined ? undefined : this.held.get(id);
    if (held !== undefined) {
      this.held.delete(id!);
      return held;
    }
    const problem = problemIn(call);
    if (problem !== undefined) return refused([problem]);
    const intent = this.intentOf(call);
    const asked = await this.run.intent({ ...intent, ...this.once(id, intent) });
    if (asked.decision === "block") return blocked(intent, asked);
    if (asked.replayed !== true) return { go: asked };
    const status = await this.run.status(asked.step);
    // A failed call can be retried, as a new step.
    if (status === "failed") return verdictOn(intent, await this.run.intent(intent));
    return refused([`this call was already made as step ${asked.step} (${status}) and is not repeated`]);
  }

  /**
   * Key under which a resumed call finds its first answer, so that it executes only once. The key includes the
   * arguments, because small models repeat ids.
   */
  private once(id: string | undefined, { tool, args }: CallIntent): Pick<CallIntent, "idempotency_key"> {
    if (id === undefined || id === "") return {};
    return { idempotency_key: sha256Hex(toCanonicalJson([this.framework, id, tool, args])) };
  }

  private async settle(
    call: FrameworkCall,
    request: ApprovalRequest,
    pause: () => Promise<PauseAnswer> | PauseAnswer,
  ): Promise<Settled> {
    const { approval_id } = request;
    const { onApproval, wait_for_approval = 0 } = this.options;
    let approval: OfferedApproval = await this.run.approval(approval_id);
    if (OPEN_APPROVAL_STATUSES.has(approval.status)) {
      const answered = await pause();
      if (answered === PAUSED_CALL) return { paused: true };
      try {
        if (answered !== undefined) await onApproval?.(request, answered.answer);
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        return refused([`the approval was not given: ${error.message}`, ...request.reasons], { approval_id });
      }
      approval = await this.run.approval(approval_id, { for: wait_for_approval });
    }
    if (approval.status === "approved") return this.use(call, request);
    if (OPEN_APPROVAL_STATUSES.has(approval.status)) return refused(request.reasons, { approval_id });
    return ended(approval);
  }

  /**
   * Consumes an approval, which is valid once. A second attempt opens a new request by accident, so it is withdrawn.
   */
  private async use(call: FrameworkCall, { approval_id }: ApprovalRequest): Promise<Settled> {
    const intent = this.intentOf(call);
    const verdict = verdictOn(intent, await this.run.intent(intent));
    if (!("request" in verdict)) return verdict;
    await this.run.withdraw(verdict.request.approval_id).catch(() => {});
    return refused([`approval ${approval_id} was used already, so this call is not repeated`]);
  }

  private intentOf({ tool: named, args: given }: FrameworkCall): CallIntent {
    const tool = this.nameOf(named);
    const args = jsonOf(given) ?? {};
    const reason = this.options.reason?.({ tool, args }) ?? `called by an agent (${this.framework})`;
    return { tool, args, reason };
  }
}

/**
 * Describes arguments that JSON cannot represent exactly, or returns undefined. A framework converts the model's text
 * by the tool's schema, and the policy must evaluate the same arguments that the tool receives.
 */
function problemIn({ args }: FrameworkCall): string | undefined {
  try {
    const text = JSON.stringify(args ?? {}, (_, value: unknown) => {
      const lost = value instanceof Map || value instanceof Set;
      if (lost || (typeof value === "number" && !Number.isFinite(value)))
        throw new Error(`arguments: ${lost ? "a Map or Set" : value} is not a JSON value`);
      return value;
    });
    assertSendable(JSON.parse(text), "arguments");
    return undefined;
  } catch (error) {
    return `the call cannot be evaluated: ${messageOf(error)}`;
  }
}

function verdictOn(intent: CallIntent, asked: IntentResponse): Verdict {
  return asked.decision === "block" ? blocked(intent, asked) : { go: asked };
}

function blocked(
  { tool, args }: CallIntent,
  { reasons, hints }: Extract<IntentResponse, { decision: "block" }>,
): Verdict {
  const approval_id = pendingApprovalId(reasons);
  if (approval_id === null) return refused(reasons, { hints: hints ?? [] });
  return { request: { approval_id, tool, args, reasons } };
}

const refused = (reasons: readonly string[], more: Partial<CallRefusal> = {}): { refusal: CallRefusal } => ({
  refusal: { blocked: true, reasons, hints: [], ...more },
});

function ended(approval: OfferedApproval): Settled {
  const offer = offerOf(approval);
  return refused([endedReason(approval)], offer === null ? {} : { offer });
}

/** Whether a tool's value reports that the call was not made. */
export function isRefusal(value: unknown): value is CallRefusal {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { blocked?: unknown }).blocked === true &&
    "reasons" in value
  );
}

/** A refusal as one text, for frameworks that accept only text. */
export function refusalText({ reasons, hints }: Pick<CallRefusal, "reasons" | "hints">): string {
  const instead = hints.length === 0 ? "" : ` Instead: ${hints.join("; ")}`;
  return `blocked: ${reasons.join("; ")}.${instead}`;
}
