/**
 * The Claude Agent SDK: hooks around every tool of a session, the built-in ones and those of MCP servers. What is
 * allowed here still meets the SDK's own permissions. Written for the documented shape of `hooks` and `canUseTool`;
 * the package brings an executable of hundreds of megabytes and is not installed for the tests.
 *
 * @module takeback/claude-agent-sdk
 */

import { isDeepStrictEqual } from "node:util";
import { UncertainError } from "../library/errors.ts";
import type { Run } from "../library/run.ts";
import {
  type FrameworkCall,
  type GovernOptions,
  Governor,
  isRefusal,
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
  reason?: string;
}
interface HookOutput {
  hookSpecificOutput?: {
    hookEventName: "PreToolUse";
    permissionDecision: "deny" | "ask";
    permissionDecisionReason: string;
  };
}
type Hook = (input: HookInput) => Promise<HookOutput>;
const EVENTS = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionDenied", "SessionEnd"] as const;

/** What the SDK's `query` takes over. */
export interface GovernedSession {
  /** For the options of `query`. */
  hooks: Record<(typeof EVENTS)[number], { hooks: [Hook] }[]>;
  /** Only where one was given: the SDK asks only that one. */
  canUseTool?: CanUseTool;
}

/**
 * Governs every tool call of a session: `query({ prompt, options: { ...govern(run), … } })`
 * ([guide](../../docs/guides/frameworks/claude-agent-sdk.md)).
 */
export function govern(run: Run, options: SessionOptions = {}): GovernedSession {
  const session = new SessionHooks(new Governor(run, options, "claude-agent-sdk"), options.canUseTool);
  const on = (hook: Hook): { hooks: [Hook] }[] => [{ hooks: [hook] }];
  return {
    hooks: {
      PreToolUse: on((input) => session.before(input)),
      PostToolUse: on((input) => session.after(input)),
      PostToolUseFailure: on((input) => session.after(input)),
      PermissionDenied: on((input) => session.after(input)),
      SessionEnd: on(() => session.end()),
    },
    ...(options.canUseTool === undefined
      ? {}
      : { canUseTool: (tool, input, given) => session.asked(tool, input, given) }),
  };
}

/** A call under way: the SDK carries it out, and its end is what the next hook says. */
interface UnderWay {
  end(settle: () => unknown): void;
  reported: Promise<unknown>;
}

class SessionHooks {
  private readonly governor: Governor;
  private readonly own: CanUseTool | undefined;
  private readonly under_way = new Map<string, UnderWay>();

  constructor(governor: Governor, own: CanUseTool | undefined) {
    this.governor = governor;
    this.own = own;
  }

  async before({ tool_name = "", tool_input, tool_use_id }: HookInput): Promise<HookOutput> {
    const call: FrameworkCall = { id: tool_use_id, tool: tool_name, args: tool_input };
    if (this.own !== undefined) {
      const { decision, reasons } = await this.governor.preview(call);
      if (decision === "needs_approval") return decided("ask", reasons.join("; "));
    }
    const refusal = await this.begin(call, false);
    return refusal === undefined ? {} : decided("deny", textOf(refusal));
  }

  async asked(
    tool: string,
    args: Record<string, unknown>,
    given: Parameters<CanUseTool>[2],
  ): Promise<PermissionResult> {
    const id = given.toolUseID;
    const answer = await this.own!(tool, args, given);
    if (answer.behavior === "deny") {
      await this.finish(id, () => {
        throw new Error(`not permitted: ${answer.message}`);
      });
      return answer;
    }
    const wanted = answer.updatedInput ?? args;
    // Begun before the SDK asked for reasons of its own: good for the arguments that were decided on.
    if (this.under_way.has(id)) {
      if (isDeepStrictEqual(wanted, args)) return answer;
      await this.finish(id, () => {
        throw new Error("not made: other arguments were chosen");
      });
    }
    const refusal = await this.begin({ id, tool, args: wanted }, true);
    return refusal === undefined ? answer : deny(textOf(refusal));
  }

  async after({ tool_use_id = "", tool_response, hook_event_name, ...told }: HookInput): Promise<HookOutput> {
    await this.finish(tool_use_id, () => {
      if (hook_event_name === "PostToolUse") return ownValue(tool_response);
      const text = told.error ?? told.reason ?? "the call failed";
      throw told.is_interrupt === true ? new UncertainError(text) : new Error(text);
    });
    return {};
  }

  async end(): Promise<HookOutput> {
    const lost = () => {
      throw new UncertainError("the session ended before the call did");
    };
    await Promise.all([...this.under_way.keys()].map((id) => this.finish(id, lost)));
    return {};
  }

  /** Asks, and answers as soon as the SDK may carry the call out. */
  private begin(call: FrameworkCall, approved: boolean): Promise<Refusal | undefined> {
    return new Promise((resolve, reject) => {
      const reported = this.governor.make(
        call,
        () =>
          new Promise<unknown>((settle) => {
            const end = (work: () => unknown) => settle(Promise.resolve().then(work));
            this.under_way.set(call.id ?? "", { end, reported });
            resolve(undefined);
          }),
        () => (approved ? { answer: true } : undefined),
      );
      reported.then((value) => isRefusal(value) && resolve(value), reject);
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
const decided = (permissionDecision: "deny" | "ask", permissionDecisionReason: string): HookOutput => ({
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
