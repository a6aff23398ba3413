/**
 * The Claude Agent SDK: hooks around every tool of a session, the built-in ones and those of MCP servers. What is
 * allowed here still meets the SDK's own permissions. Nothing of the package is imported: hooks are functions.
 *
 * @module takeback/claude-agent-sdk
 */

import { isDeepStrictEqual } from "node:util";
import { messageOf } from "../kernel/errors.ts";
import { waitMs } from "../library/approvals.ts";
import { UncertainError } from "../library/errors.ts";
import type { Run } from "../library/run.ts";
import {
  type ApprovalRequest,
  type FrameworkCall,
  type GovernOptions,
  Governor,
  isRefusal,
  PAUSED,
  type Refusal,
  textOf,
} from "./governor.ts";

export type { ApprovalRequest, GovernOptions, Refusal } from "./governor.ts";
export { threadRun } from "./thread.ts";

/** What every adapter takes, and who is asked at the session. */
export interface SessionOptions extends GovernOptions {
  /** Asks the person at the session, as the SDK's own option does; what the policy wants approved is asked here. */
  canUseTool?: CanUseTool;
}

/** As the SDK's own option of the name. */
export type CanUseTool = (
  tool: string,
  input: Record<string, unknown>,
  options: { signal: AbortSignal; toolUseID: string },
) => Promise<PermissionResult>;
export type PermissionResult =
  | { behavior: "allow"; updatedInput?: Record<string, unknown> }
  | { behavior: "deny"; message: string; interrupt?: boolean };

/** What the SDK tells a hook, as far as it is used here. */
interface HookInput {
  hook_event_name: string;
  tool_name?: string;
  tool_input?: unknown;
  tool_use_id?: string;
  tool_response?: unknown;
  error?: string;
  is_interrupt?: boolean;
  tool_calls?: { tool_use_id: string; tool_response?: unknown }[];
}
interface HookOutput {
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
type HookEvent = "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch";
/** How long the SDK waits for a hook that is not given another time. */
const HOOK_TIMEOUT_S = 60;

/** What the SDK's `query` takes over. */
export interface GovernedSession {
  /** For the options of `query`. */
  hooks: Record<HookEvent, { hooks: [Hook]; timeout?: number }[]>;
  /** Only where one was given: the SDK asks only that one. */
  canUseTool?: CanUseTool;
  /** The requests that deferred calls wait for: decide on them, then resume the session. */
  waiting: readonly ApprovalRequest[];
  /** For a session that was cut short: the SDK tells no hook of that. What was under way is uncertain. */
  end(): Promise<void>;
}

/**
 * Governs every tool call of a session: `query({ prompt, options: { ...govern(run), … } })`
 * ([guide](../../docs/guides/frameworks/claude-agent-sdk.md)).
 */
export function govern(run: Run, options: SessionOptions = {}): GovernedSession {
  const session = new SessionHooks(new Governor(run, options, "claude-agent-sdk"), options);
  const on = (hook: Hook): { hooks: [Hook] }[] => [{ hooks: [hook] }];
  const { canUseTool, wait_for_approval = 0 } = options;
  const timeout = HOOK_TIMEOUT_S + waitMs(wait_for_approval, "wait_for_approval") / 1_000;
  return {
    hooks: {
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

/** A call under way: the SDK carries it out, and its end is what the next hook says. */
interface UnderWay {
  end(settle: () => unknown): void;
  reported: Promise<unknown>;
}

class SessionHooks {
  private readonly governor: Governor;
  private readonly options: SessionOptions;
  private readonly under_way = new Map<string, UnderWay>();
  readonly waiting: ApprovalRequest[] = [];

  constructor(governor: Governor, options: SessionOptions) {
    this.governor = governor;
    this.options = options;
  }

  /** The SDK carries out what a hook fails over: what cannot be decided on is denied. */
  async before(input: HookInput, signal: AbortSignal): Promise<HookOutput> {
    try {
      const told = await this.decide(input);
      // The SDK waits for the answer no more, and does not make the call.
      if (signal.aborted) await this.fail(input.tool_use_id, "not made: the SDK no longer waited");
      return told;
    } catch (error) {
      return decided("deny", notDecided(error));
    }
  }

  private async decide({ tool_name = "", tool_input, tool_use_id }: HookInput): Promise<HookOutput> {
    const call: FrameworkCall = { id: tool_use_id, tool: tool_name, args: tool_input };
    if (this.options.canUseTool !== undefined) {
      const { decision, reasons } = await this.governor.preview(call);
      if (decision === "needs_approval") return decided("ask", reasons.join("; "));
    }
    const begun = await this.begin(call, false);
    if (begun === "made") return {};
    return begun === "paused"
      ? decided("defer", "waiting for a person's approval")
      : decided("deny", textOf(begun));
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
    // Older executables take no yes without the arguments.
    const yes: PermissionResult = { ...answer, updatedInput: wanted };
    // Begun before the SDK asked for reasons of its own: good for the arguments that were decided on.
    if (this.under_way.has(id)) {
      if (isDeepStrictEqual(wanted, args)) return yes;
      await this.fail(id, "not made: other arguments were chosen");
    }
    try {
      const begun = await this.begin({ id, tool, args: wanted }, true);
      return isRefusal(begun) ? deny(textOf(begun)) : yes;
    } catch (error) {
      return deny(notDecided(error));
    }
  }

  async after({ tool_use_id = "", tool_response, hook_event_name, ...told }: HookInput): Promise<HookOutput> {
    await this.finish(tool_use_id, () => {
      if (hook_event_name === "PostToolUse") return ownValue(tool_response);
      const text = told.error ?? "the call failed";
      throw told.is_interrupt === true ? new UncertainError(text) : new Error(text);
    });
    return {};
  }

  /** What the SDK's own permissions refused is told of here alone. */
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

  /** Asks, and answers as soon as the SDK may carry the call out. */
  private begin(call: FrameworkCall, approved: boolean): Promise<Refusal | "made" | "paused"> {
    const pause = (request: ApprovalRequest) => {
      if (approved) return { answer: true };
      if (this.options.wait_for_approval !== undefined) return undefined;
      this.waiting.push(request);
      return PAUSED;
    };
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
    // What the tool did wrong is the SDK's to tell.
    await call.reported.catch(() => {});
  }
}

const deny = (message: string): PermissionResult => ({ behavior: "deny", message });
const notDecided = (error: unknown): string =>
  `blocked: the call could not be decided on: ${messageOf(error)}`;
const decided = (
  permissionDecision: "deny" | "ask" | "defer",
  permissionDecisionReason: string,
): HookOutput => ({
  hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason },
});

/** The tool's own value: MCP servers wrap theirs in content. */
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
