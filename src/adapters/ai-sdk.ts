/**
 * Adapter for the Vercel AI SDK: one call wraps a set of tools. The SDK's approval hooks only preview the decision;
 * execution requests it, runs the tool and reports the outcome. Supports `ai` 6 (`needsApproval` of a tool) and 7
 * (`toolApproval`, separate from the tools).
 *
 * @module takeback/ai-sdk
 */
import type { ToolSet } from "ai";
import type { AgentRun } from "../library/run.ts";
import { CallGovernor, type GovernOptions, isRefusal, type PauseAnswer, refusalText } from "./governor.ts";
import { type UndoRun, undoWith } from "./thread-run.ts";

export type { ApprovalRequest, CallRefusal as Refusal, GovernOptions } from "./governor.ts";
export { isRefusal } from "./governor.ts";
export { threadRun, type UndoRun as Undo } from "./thread-run.ts";

/** A set of tools governed by a run. */
interface GovernedTools<TOOLS extends ToolSet> {
  /** The same tools, governed. Tools that the client or the provider executes stay as they are and are not governed. */
  tools: TOOLS;
  /** Approval hooks for `ai` 7, which decide on a call before it executes. */
  toolApproval: { [NAME in keyof TOOLS]: ToolApproval };
  /** Undoes the whole run with these tools. */
  undo: UndoRun;
}

/** Approval hook in the form that the SDK calls. */
export type ToolApproval = (input: unknown, call: HookOptions) => Promise<ToolApprovalStatus>;
export type ToolApprovalStatus =
  | { type: "not-applicable" }
  | { type: "denied"; reason: string }
  | { type: "user-approval"; reason: string };
interface HookOptions {
  toolCallId: string;
  messages: readonly unknown[];
}

/** Governs every tool of the set that executes in this process ([guide](../../docs/guides/frameworks/ai-sdk.md)). */
function governTools<TOOLS extends ToolSet>(
  run: AgentRun,
  tools: TOOLS,
  options: GovernOptions = {},
): GovernedTools<TOOLS> {
  const governor = new CallGovernor(run, options, "ai-sdk");
  // The type of a tool names its input and output; the adapter calls every tool with unknown ones.
  const given = Object.entries(tools as unknown as Record<string, AnyTool>);
  const each = <T>(make: (name: string, tool: AnyTool) => T) =>
    Object.fromEntries(given.map(([name, tool]) => [name, make(name, tool)])) as unknown;
  return {
    tools: each((name, tool) => governed(governor, name, tool)) as TOOLS,
    toolApproval: each((name, tool) =>
      approvalHook(governor, name, tool),
    ) as GovernedTools<TOOLS>["toolApproval"],
    undo: undoWith(run, (wanted) => {
      const execute = given.find(([name]) => governor.nameOf(name) === wanted)?.[1].execute;
      return execute && ((args, key) => lastOf(execute(args, { toolCallId: key, messages: [] })));
    }),
  };
}

/** The members of a tool that this adapter uses, without their types. */
interface AnyTool {
  execute?: (input: unknown, options: HookOptions) => unknown;
  needsApproval?: boolean | ((input: unknown, options: HookOptions) => boolean | PromiseLike<boolean>);
  toModelOutput?: (result: { output: unknown }) => unknown;
}

function governed(governor: CallGovernor, name: string, tool: AnyTool): AnyTool {
  const { execute, needsApproval: own, toModelOutput } = tool;
  if (execute === undefined) return tool;
  const callOf = (args: unknown, id: string) => ({ id, tool: name, args });
  const make = (input: unknown, options: HookOptions, pass?: (value: unknown) => unknown) =>
    governor.make(
      callOf(input, options.toolCallId),
      () => lastOf(execute(input, options), pass),
      () => approvedIn(options),
    );
  const wrapped: AnyTool = {
    ...tool,
    async needsApproval(input, options) {
      // The SDK asks again before it executes an approved call, and drops a call that no longer needs approval.
      if (answerIn(options) !== undefined || (await wants(own, input, options))) return true;
      return (await governor.preview(callOf(input, options.toolCallId))).decision === "needs_approval";
    },
    execute: isGenerator(execute)
      ? (input, options) => streamed((pass) => make(input, options, pass))
      : (input, options) => make(input, options),
  };
  if (toModelOutput !== undefined)
    wrapped.toModelOutput = (result) =>
      isRefusal(result.output) ? { type: "json", value: result.output } : toModelOutput(result);
  return wrapped;
}

/** Whether the tool's own definition requires approval. */
async function wants(own: AnyTool["needsApproval"], input: unknown, options: HookOptions): Promise<boolean> {
  return typeof own === "function" ? own(input, options) : own === true;
}

function approvalHook(
  governor: CallGovernor,
  tool: string,
  { execute, needsApproval }: AnyTool,
): ToolApproval {
  return async (args, options) => {
    const own = await wants(needsApproval, args, options);
    if (own) return { type: "user-approval", reason: "the tool requires approval" };
    if (execute === undefined) return { type: "not-applicable" };
    const call = { id: options.toolCallId, tool, args };
    const { decision, reasons } = await governor.preview(call);
    if (decision === "needs_approval") return { type: "user-approval", reason: reasons.join("; ") };
    const refusal = decision === "block" ? await governor.refuse(call) : undefined;
    return refusal === undefined
      ? { type: "not-applicable" }
      : { type: "denied", reason: refusalText(refusal) };
  };
}

interface ApprovalPart {
  type?: string;
  approvalId?: string;
  toolCallId?: string;
  approved?: boolean;
}

/** Finds the user's answer to this call's approval request in the messages that the SDK resumes from. */
function answerIn({ messages, toolCallId }: HookOptions): ApprovalPart | undefined {
  const parts = messages.flatMap((message): ApprovalPart[] => {
    const { content } = message as { content?: unknown };
    return Array.isArray(content) ? content : [];
  });
  const asked = parts.findLast(
    (part) => part.type === "tool-approval-request" && part.toolCallId === toolCallId,
  );
  if (asked === undefined) return undefined;
  return parts.find((part) => part.type === "tool-approval-response" && part.approvalId === asked.approvalId);
}

function approvedIn(options: HookOptions): PauseAnswer {
  const answer = answerIn(options);
  return answer?.approved === true ? { answer } : undefined;
}

const isGenerator = (execute: unknown): boolean =>
  Object.prototype.toString.call(execute) === "[object AsyncGeneratorFunction]";
const isIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

/** The result of a tool: for a tool that yields, its last value. */
async function lastOf(given: unknown, pass: (value: unknown) => unknown = () => {}): Promise<unknown> {
  const value = await given;
  if (!isIterable(value)) return value;
  let last: unknown;
  for await (last of value) await pass(last);
  return last;
}

/** Passes on the values that a tool yields while it runs. */
async function* streamed(
  work: (pass: (value: unknown) => Promise<void>) => Promise<unknown>,
): AsyncGenerator<unknown> {
  const { readable, writable } = new TransformStream<unknown, unknown>();
  const writer = writable.getWriter();
  const done = work((value) => writer.write(value)).finally(() => writer.close().catch(() => {}));
  done.catch(() => {});
  yield* readable;
  const value = await done;
  if (isRefusal(value)) yield value;
}

export { type GovernedTools as Governed, governTools as govern };
