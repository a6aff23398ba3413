/**
 * Adapter for the Claude Agent SDK: hooks around every tool of a session, both built-in tools and those of MCP servers.
 * The SDK still applies its own permissions to allowed calls. This module imports nothing from the package, because
 * hooks are plain functions.
 *
 * @module takeback/claude-agent-sdk
 */

import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../kernel/errors.ts";
import { waitMs } from "../library/approvals.ts";
import { UncertainError } from "../library/errors.ts";
import type { AgentRun } from "../library/run.ts";
import {
  type ApprovalRequest,
  CallGovernor,
  type CallRefusal,
  type FrameworkCall,
  type GovernOptions,
  isRefusal,
  PAUSED_CALL,
  type PauseAnswer,
  refusalText,
} from "./governor.ts";

export type { ApprovalRequest, CallRefusal as Refusal, GovernOptions } from "./governor.ts";
export { threadRun } from "./thread-run.ts";

/** The options of every adapter, and the function that asks the user of the session. */
export interface SessionOptions extends GovernOptions {
  /**
   * Asks the user of the session, like the SDK option of the same name. It also handles approvals that the policy
   * requires.
   */
  canUseTool?: CanUseTool;
  /**
   * Gives the run each prompt of the user, so that the values in it do not count as foreign. On a server, your key needs
   * `may_give`.
   */
  give_prompts?: boolean;
}

/** Same signature as the SDK option `canUseTool`. */
export type CanUseTool = (
  tool: string,
  input: Record<string, unknown>,
  options: { signal: AbortSignal; toolUseID: string },
) => Promise<PermissionResult>;
export type PermissionResult =
  | { behavior: "allow"; updatedInput?: Record<string, unknown> }
  | { behavior: "deny"; message: string; interrupt?: boolean };

/** The fields of a hook's input that this adapter uses. */
interface HookInput {
  hook_event_name: string;
  tool_name?: string;
  tool_input?: unknown;
  tool_use_id?: string;
  tool_response?: unknown;
  error?: string;
  is_interrupt?: boolean;
  /** Present for a subagent. */
  agent_id?: string;
  tool_calls?: { tool_use_id: string; tool_response?: unknown }[];
  /** The user's text, before the model gets it. */
  prompt?: string;
}
interface HookOutput {
  /** Shown to the user. */
  systemMessage?: string;
  hookSpecificOutput?: {
    hookEventName: "PreToolUse";
    permissionDecision: "deny" | "ask" | "defer";
    permissionDecisionReason: string;
  };
}
type Hook = (
  input: HookInput,
  tool_use_id: string | undefined,
  options: { signal: AbortSignal },
) => Promise<HookOutput>;
type HookEvent = "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch";
/** The SDK's default timeout of a hook. */
const HOOK_TIMEOUT_S = 60;

/** Options for the SDK's `query`, and the state of the governed session. */
export interface GovernedSession {
  /** Pass these hooks in the options of `query`. */
  hooks: Partial<Record<HookEvent, { hooks: [Hook]; timeout?: number }[]>>;
  /** Present only if you pass your own function. The SDK then asks only this one. */
  canUseTool?: CanUseTool;
  /** Approval requests of deferred calls. Decide them, then resume the session. */
  waiting: readonly ApprovalRequest[];
  /** Ends a session that was cut short, which the SDK reports to no hook. Calls in progress become uncertain. */
  end(): Promise<void>;
}

/**
 * Governs every tool call of a session: `query({ prompt, options: { ...govern(run), … } })`
 * ([guide](../../docs/guides/frameworks/claude-agent-sdk.md)).
 */
function governSession(run: AgentRun, options: SessionOptions = {}): GovernedSession {
  const session = new SessionHooks(new CallGovernor(run, options, "claude-agent-sdk"), options);
  const on = (hook: Hook): { hooks: [Hook] }[] => [{ hooks: [hook] }];
  const { canUseTool, give_prompts, wait_for_approval = 0 } = options;
  const timeout = HOOK_TIMEOUT_S + waitMs(wait_for_approval, "wait_for_approval") / 1_000;
  return {
    hooks: {
      ...(give_prompts === true ? { UserPromptSubmit: on((input) => session.prompted(input)) } : {}),
      PreToolUse: [{ hooks: [(input, _, { signal }) => session.before(input, signal)], timeout }],
      PostToolUse: on((input) => session.after(input)),
      PostToolUseFailure: on((input) => session.after(input)),
      PostToolBatch: on((input) => session.afterAll(input)),
    },
    ...(canUseTool === undefined
      ? {}
      : { canUseTool: (tool, input, given) => session.asked(tool, input, given) }),
    waiting: session.waiting,
    end: () => session.end(),
  };
}

/** A call in progress. The SDK executes it, and a later hook reports its result. */
interface UnderWay {
  end(settle: () => unknown): void;
  reported: Promise<unknown>;
}

class SessionHooks {
  private readonly governor: CallGovernor;
  private readonly options: SessionOptions;
  private readonly under_way = new Map<string, UnderWay>();
  readonly waiting: ApprovalRequest[] = [];

  constructor(governor: CallGovernor, options: SessionOptions) {
    this.governor = governor;
    this.options = options;
  }

  /** Without its texts a run is only stricter, so a prompt that could not be given stops nothing. */
  async prompted({ prompt }: HookInput): Promise<HookOutput> {
    if (prompt === undefined || prompt === "") return {};
    try {
      await this.governor.run.give([prompt]);
      return {};
    } catch (error) {
      return { systemMessage: `your prompt was not given to the run: ${messageOf(error)}` };
    }
  }

  /** Denies calls that cannot be decided, because the SDK executes a call after its hook fails. */
  async before(input: HookInput, signal: AbortSignal): Promise<HookOutput> {
    try {
      const decided = await this.decide(input);
      // The SDK stopped waiting for this hook and does not make the call.
      if (signal.aborted) await this.fail(input.tool_use_id, "not made: the SDK had stopped waiting");
      return decided;
    } catch (error) {
      return decided("deny", notDecided(error));
    }
  }

  private async decide(input: HookInput): Promise<HookOutput> {
    const { tool_name = "", tool_input, tool_use_id, agent_id } = input;
    const call: FrameworkCall = { id: tool_use_id, tool: tool_name, args: tool_input };
    if (this.options.canUseTool !== undefined) {
      const { decision, reasons } = await this.governor.preview(call);
      if (decision === "needs_approval") return decided("ask", reasons.join("; "));
    }
    // A deferred call would end a subagent, and the session would continue without it.
    const defers = this.options.wait_for_approval === undefined && agent_id === undefined;
    const begun = await this.begin(call, (request) => {
      if (!defers) return undefined;
      this.waiting.push(request);
      return PAUSED_CALL;
    });
    if (begun === "made") return {};
    return begun === "paused"
      ? decided("defer", "waiting for a person's approval")
      : decided("deny", refusalText(begun));
  }

  async asked(
    tool: string,
    args: Record<string, unknown>,
    given: Parameters<CanUseTool>[2],
  ): Promise<PermissionResult> {
    const id = given.toolUseID;
    const answer = await this.options.canUseTool!(tool, args, given);
    if (answer.behavior === "deny") {
      await this.fail(id, `not permitted: ${answer.message}`);
      return answer;
    }
    const wanted = answer.updatedInput ?? args;
    // Older SDK executables accept an approval only together with the arguments.
    const yes: PermissionResult = { ...answer, updatedInput: wanted };
    // The call began before the SDK asked for its own reasons, so only the decided arguments are allowed.
    if (this.under_way.has(id)) {
      if (isDeepStrictEqual(wanted, args)) return yes;
      await this.fail(id, "not made: other arguments were chosen");
    }
    try {
      const begun = await this.begin({ id, tool, args: wanted }, () => ({ answer: true }));
      return isRefusal(begun) ? deny(refusalText(begun)) : yes;
    } catch (error) {
      return deny(notDecided(error));
    }
  }

  async after({
    tool_use_id = "",
    tool_response,
    hook_event_name,
    ...failure
  }: HookInput): Promise<HookOutput> {
    await this.finish(tool_use_id, () => {
      if (hook_event_name === "PostToolUse") return ownValue(tool_response);
      const text = failure.error ?? "the call failed";
      throw failure.is_interrupt === true ? new UncertainError(text) : new Error(text);
    });
    return {};
  }

  /** Fails the calls that the SDK's own permissions refused. No other hook reports them. */
  async afterAll({ tool_calls = [] }: HookInput): Promise<HookOutput> {
    for (const { tool_use_id, tool_response } of tool_calls)
      await this.fail(tool_use_id, `not made: ${JSON.stringify(tool_response)}`);
    return {};
  }

  async end(): Promise<void> {
    const lost = () => {
      throw new UncertainError("the session ended before the call did");
    };
    await Promise.all([...this.under_way.keys()].map((id) => this.finish(id, lost)));
  }

  /** Requests a decision, and resolves as soon as the SDK can execute the call. */
  private begin(
    call: FrameworkCall,
    pause: (request: ApprovalRequest) => PauseAnswer,
  ): Promise<CallRefusal | "made" | "paused"> {
    return new Promise((resolve, reject) => {
      const reported = this.governor.make(
        call,
        () =>
          new Promise<unknown>((settle) => {
            const end = (work: () => unknown) => settle(Promise.resolve().then(work));
            this.under_way.set(call.id ?? "", { end, reported });
            resolve("made");
          }),
        pause,
      );
      reported.then((value) => resolve(isRefusal(value) ? value : "paused"), reject);
    });
  }

  private fail(id: string | undefined, why: string): Promise<void> {
    return this.finish(id ?? "", () => {
      throw new Error(why);
    });
  }

  private async finish(id: string, work: () => unknown): Promise<void> {
    const call = this.under_way.get(id);
    if (call === undefined) return;
    this.under_way.delete(id);
    call.end(work);
    // The SDK reports the tool's own errors itself.
    await call.reported.catch(() => {});
  }
}

const deny = (message: string): PermissionResult => ({ behavior: "deny", message });
const notDecided = (error: unknown): string => `blocked: no decision could be made: ${messageOf(error)}`;
const decided = (
  permissionDecision: "deny" | "ask" | "defer",
  permissionDecisionReason: string,
): HookOutput => ({
  hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason },
});

/** The tool's own value, without the content wrapper of MCP servers. */
function ownValue(response: unknown): unknown {
  const { structuredContent, content = response } = Object(response) as {
    structuredContent?: unknown;
    content?: unknown;
  };
  if (structuredContent !== undefined) return structuredContent;
  const [only, ...more] = Array.isArray(content) ? (content as { type?: string; text?: string }[]) : [];
  if (only?.type !== "text" || only.text === undefined || more.length > 0) return response;
  try {
    return JSON.parse(only.text);
  } catch {
    return only.text;
  }
}

export { governSession as govern };
