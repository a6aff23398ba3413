/**
 * The Vercel AI SDK: one call wraps a set of tools. Its approval hooks only look ahead; executing asks, carries out and
 * reports. Written for `ai` 6 (`needsApproval` of a tool) and 7 (`toolApproval` beside the tools).
 *
 * @module takeback/ai-sdk
 */
import type { ToolSet } from "ai";
import type { Run } from "../library/run.ts";
import { type GovernOptions, Governor, isRefusal, type PauseAnswer, textOf } from "./governor.ts";
import { type Undo, undoWith } from "./thread.ts";

export type { ApprovalRequest, GovernOptions, Refusal } from "./governor.ts";
export { isRefusal } from "./governor.ts";
export { threadRun, type Undo } from "./thread.ts";

/** A set of tools under a run. */
export interface Governed<TOOLS extends ToolSet> {
  /** The same tools, governed. Those that the client or the provider executes are not, and stay as they are. */
  tools: TOOLS;
  /** For `ai` 7: what becomes of a call before it is executed. */
  toolApproval: { [NAME in keyof TOOLS]: ToolApproval };
  /** Undoes the whole run with these tools. */
  undo: Undo;
}

/** As the SDK calls it, with its answer. */
export type ToolApproval = (input: unknown, call: HookOptions) => Promise<ToolApprovalStatus>;
export type ToolApprovalStatus =
  | { type: "not-applicable" }
  | { type: "denied"; reason: string }
  | { type: "user-approval"; reason: string };
interface HookOptions {
  toolCallId: string;
  messages: readonly unknown[];
}

/** Governs every tool of the set that is executed here ([guide](../../docs/guides/frameworks/ai-sdk.md)). */
export function govern<TOOLS extends ToolSet>(
  run: Run,
  tools: TOOLS,
  options: GovernOptions = {},
): Governed<TOOLS> {
  const governor = new Governor(run, options, "ai-sdk");
  const given = Object.entries(tools as unknown as Record<string, AnyTool>);
  const each = <T>(make: (name: string, tool: AnyTool) => T) =>
    Object.fromEntries(given.map(([name, tool]) => [name, make(name, tool)])) as unknown;
  return {
    tools: each((name, tool) => governed(governor, name, tool)) as TOOLS,
    toolApproval: each((name, tool) => approvalHook(governor, name, tool)) as Governed<TOOLS>["toolApproval"],
    undo: undoWith(run, (wanted) => {
      const execute = given.find(([name]) => governor.nameOf(name) === wanted)?.[1].execute;
      return execute && ((args, key) => lastOf(execute(args, { toolCallId: key, messages: [] })));
    }),
  };
}

/** What is used of a tool, whatever it takes and gives. */
interface AnyTool {
  execute?: (input: unknown, options: HookOptions) => unknown;
  needsApproval?: boolean | ((input: unknown, options: HookOptions) => boolean | PromiseLike<boolean>);
  toModelOutput?: (told: { output: unknown }) => unknown;
}

function governed(governor: Governor, name: string, tool: AnyTool): AnyTool {
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
      // The SDK asks again before it carries out what was approved, and drops what no longer needs it.
      if (answerIn(options) !== undefined || (await wants(own, input, options))) return true;
      return (await governor.preview(callOf(input, options.toolCallId))).decision === "needs_approval";
    },
    execute: isGenerator(execute)
      ? (input, options) => streamed((pass) => make(input, options, pass))
      : (input, options) => make(input, options),
  };
  if (toModelOutput !== undefined)
    wrapped.toModelOutput = (told) =>
      isRefusal(told.output) ? { type: "json", value: told.output } : toModelOutput(told);
  return wrapped;
}

/** Whether the tool itself asks for a person. */
async function wants(own: AnyTool["needsApproval"], input: unknown, options: HookOptions): Promise<boolean> {
  return typeof own === "function" ? own(input, options) : own === true;
}

function approvalHook(governor: Governor, tool: string, { execute, needsApproval }: AnyTool): ToolApproval {
  return async (args, options) => {
    const own = await wants(needsApproval, args, options);
    if (own) return { type: "user-approval", reason: "the tool asks for a person" };
    if (execute === undefined) return { type: "not-applicable" };
    const call = { id: options.toolCallId, tool, args };
    const { decision, reasons } = await governor.preview(call);
    if (decision === "needs_approval") return { type: "user-approval", reason: reasons.join("; ") };
    const refusal = decision === "block" ? await governor.refuse(call) : undefined;
    return refusal === undefined ? { type: "not-applicable" } : { type: "denied", reason: textOf(refusal) };
  };
}

interface ApprovalPart {
  type?: string;
  approvalId?: string;
  toolCallId?: string;
  approved?: boolean;
}

/** What a person answered to this call's request, in the messages that the SDK resumes from. */
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

/** A tool that yields shows its last value as its result. */
async function lastOf(given: unknown, pass: (value: unknown) => unknown = () => {}): Promise<unknown> {
  const value = await given;
  if (!isIterable(value)) return value;
  let last: unknown;
  for await (last of value) await pass(last);
  return last;
}

/** What the tool yields is passed on while it works. */
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
