/**
 * What every adapter does with a framework's tool call: ask, wait, carry out, report. A call that is not made is an
 * answer for the model, never an exception, and a call of the framework is carried out at most once.
 */
import { canonical } from "../kernel/canonical.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import { endedReason, type OfferedApproval, offerOf, type Wait } from "../library/approvals.ts";
import type { Offer } from "../library/errors.ts";
import { assertTellable } from "../library/fitting.ts";
import { type CallOptions, jsonOf, type Run } from "../library/run.ts";
import type { Allowed, Asked, Intent, Preview } from "../library/transport.ts";
import { approvalIn, OPEN_APPROVAL } from "../model/approval.ts";

/** A call as the framework has it. */
export interface FrameworkCall {
  /** The framework's own id of the call: the same when it resumes. */
  id: string | undefined;
  tool: string;
  args: unknown;
}

/** The request that a call waits for. */
export interface ApprovalRequest {
  approval_id: string;
  tool: string;
  args: Json;
  reasons: readonly string[];
}

/** What the model gets in place of the tool's value when the call was not made. */
export interface Refusal {
  blocked: true;
  reasons: readonly string[];
  /** What the agent can do instead, where the policy says so. */
  hints: readonly string[];
  /** The request that still waits for a person. */
  approval_id?: string;
  /** What a person offered in place of the call. */
  offer?: Offer;
}

/** What every adapter takes. */
export interface GovernOptions extends Pick<CallOptions, "timeout_ms" | "read"> {
  /**
   * A person said yes (or answered) in the framework's own way. Decides on the request with that person's credential, as
   * `svc.approvals.approve(approval_id, { key })`. What is still open afterwards is not carried out.
   */
  onApproval?: (request: ApprovalRequest, answer: unknown) => Promise<unknown> | unknown;
  /** How long to wait, in the call itself, for a decision that is made elsewhere. */
  wait_for_approval?: Wait;
  /** The name in the manifests of a tool of the framework, where it is another. */
  name?: (tool: string) => string;
  /** Why the call is made, for the ledger; the same for the same call. */
  reason?: (call: { tool: string; args: Json }) => string;
}

/** What the framework's pause was answered with; undefined where it did not pause. */
export type PauseAnswer = { answer: unknown } | typeof PAUSED | undefined;
/** Told by a pause that comes back although nothing was answered yet: the framework calls again. */
export const PAUSED = Symbol("paused");

type Verdict = { go: Allowed } | { refusal: Refusal } | { request: ApprovalRequest };
/** Where nothing is left to ask. */
type Settled = Exclude<Verdict, { request: ApprovalRequest }> | { paused: true };

export class Governor {
  readonly run: Run;
  private readonly options: GovernOptions;
  private readonly framework: string;
  /** Decisions that were asked for before the framework executes. */
  private readonly held = new Map<string, Verdict>();

  constructor(run: Run, options: GovernOptions, framework: string) {
    this.run = run;
    this.options = options;
    this.framework = framework;
  }

  nameOf(tool: string): string {
    return this.options.name?.(tool) ?? tool;
  }

  /** For a hook that comes before the execution; nothing is left behind. */
  async preview(call: FrameworkCall): Promise<Preview> {
    const problem = problemIn(call);
    if (problem !== undefined) return { decision: "block", reasons: [problem], hints: [], risk_score: 0 };
    return this.run.preview(this.intentOf(call));
  }

  /**
   * For a hook that refuses by itself: the refusal is recorded as any other. Undefined where the call is not refused
   * after all.
   */
  async refuse(call: FrameworkCall): Promise<Refusal | undefined> {
    const verdict = await this.ask(call);
    if ("refusal" in verdict) return verdict.refusal;
    if (call.id !== undefined) this.held.set(call.id, verdict);
    return undefined;
  }

  /**
   * The whole way of a call. `pause` stands for the framework's own: it may throw or never come back, since the call is
   * asked for again when the framework resumes, and answered as the first time. Undefined where it has paused.
   */
  async make<T>(
    call: FrameworkCall,
    execute: () => Promise<T> | T,
    pause: (request: ApprovalRequest) => Promise<PauseAnswer> | PauseAnswer = () => undefined,
  ): Promise<T | Refusal | undefined> {
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
    // A call that failed may be tried again, and is then a step of its own.
    if (status === "failed") return verdictOn(intent, await this.run.intent(intent));
    return refused([`this call was made already, as step ${asked.step} (${status}): it is not made again`]);
  }

  /**
   * A resumed call finds its first answer, and nothing is carried out twice. Ids of small models repeat: another call
   * under an old id is a call of its own.
   */
  private once(id: string | undefined, { tool, args }: Intent): Pick<Intent, "idempotency_key"> {
    if (id === undefined || id === "") return {};
    return { idempotency_key: sha256Hex(canonical([this.framework, id, tool, args])) };
  }

  private async settle(
    call: FrameworkCall,
    request: ApprovalRequest,
    pause: () => Promise<PauseAnswer> | PauseAnswer,
  ): Promise<Settled> {
    const { approval_id } = request;
    const { onApproval, wait_for_approval = 0 } = this.options;
    let approval: OfferedApproval = await this.run.approval(approval_id);
    if (OPEN_APPROVAL.has(approval.status)) {
      const answered = await pause();
      if (answered === PAUSED) return { paused: true };
      try {
        if (answered !== undefined) await onApproval?.(request, answered.answer);
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        return refused([`the approval was not given: ${error.message}`, ...request.reasons], { approval_id });
      }
      approval = await this.run.approval(approval_id, { for: wait_for_approval });
    }
    if (approval.status === "approved") return this.use(call, request);
    if (OPEN_APPROVAL.has(approval.status)) return refused(request.reasons, { approval_id });
    return ended(approval);
  }

  /** An approval is used once: whoever comes second opens a request that is not wanted. */
  private async use(call: FrameworkCall, { approval_id }: ApprovalRequest): Promise<Settled> {
    const intent = this.intentOf(call);
    const verdict = verdictOn(intent, await this.run.intent(intent));
    if (!("request" in verdict)) return verdict;
    await this.run.withdraw(verdict.request.approval_id).catch(() => {});
    return refused([`approval ${approval_id} was used already: this call is not made again`]);
  }

  private intentOf({ tool: named, args: given }: FrameworkCall): Intent {
    const tool = this.nameOf(named);
    const args = jsonOf(given) ?? {};
    const reason = this.options.reason?.({ tool, args }) ?? `called by an agent (${this.framework})`;
    return { tool, args, reason };
  }
}

/**
 * What is judged has to be what is called. Frameworks hand over what a tool's schema made of the model's words, and that
 * may have no JSON form, or another one.
 */
function problemIn({ args }: FrameworkCall): string | undefined {
  try {
    const text = JSON.stringify(args ?? {}, (_, value: unknown) => {
      const lost = value instanceof Map || value instanceof Set;
      if (lost || (typeof value === "number" && !Number.isFinite(value)))
        throw new Error(`arguments: ${lost ? "a Map or Set" : value} is not a JSON value`);
      return value;
    });
    assertTellable(JSON.parse(text), "arguments");
    return undefined;
  } catch (error) {
    return `the call cannot be judged: ${messageOf(error)}`;
  }
}

function verdictOn(intent: Intent, asked: Asked): Verdict {
  return asked.decision === "block" ? blocked(intent, asked) : { go: asked };
}

function blocked({ tool, args }: Intent, { reasons, hints }: Extract<Asked, { decision: "block" }>): Verdict {
  const approval_id = approvalIn(reasons);
  if (approval_id === null) return refused(reasons, { hints: hints ?? [] });
  return { request: { approval_id, tool, args, reasons } };
}

const refused = (reasons: readonly string[], more: Partial<Refusal> = {}): { refusal: Refusal } => ({
  refusal: { blocked: true, reasons, hints: [], ...more },
});

function ended(approval: OfferedApproval): Settled {
  const offer = offerOf(approval);
  return refused([endedReason(approval)], offer === null ? {} : { offer });
}

/** Whether a tool's value says that the call was not made. */
export function isRefusal(value: unknown): value is Refusal {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as { blocked?: unknown }).blocked === true &&
    "reasons" in value
  );
}

/** A refusal as one text, for frameworks that take no other. */
export function textOf({ reasons, hints }: Pick<Refusal, "reasons" | "hints">): string {
  const instead = hints.length === 0 ? "" : ` Instead: ${hints.join("; ")}`;
  return `blocked: ${reasons.join("; ")}.${instead}`;
}
