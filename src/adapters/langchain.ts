/**
 * LangChain.js and LangGraph: one middleware for all tools of an agent. A call that waits interrupts the graph, and a call
 * that is not made is a tool message, since what a middleware throws would end the agent.
 *
 * @module takeback/langchain
 */
import { type AgentMiddleware, createMiddleware, ToolMessage } from "langchain";
import type { Json } from "../kernel/json.ts";
import type { Run } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { type FrameworkCall, type GovernOptions, Governor, type Refusal } from "./governor.ts";
import { type RunOrThread, undoWith } from "./thread.ts";

export type { ApprovalRequest, GovernOptions, Refusal } from "./governor.ts";
export { type RunOrThread, threadRun } from "./thread.ts";

/**
 * Governs every tool of an agent ([guide](../../docs/guides/frameworks/langchain.md)). It comes first in the list of
 * middleware, so that what others do counts as part of the call.
 */
export function govern(run: RunOrThread, options: GovernOptions = {}): AgentMiddleware {
  return createMiddleware({
    name: "takeback",
    async wrapToolCall(request, handler) {
      const { toolCall, tool, runtime } = request;
      const governor = new Governor(await runOf(run, runtime), options, "langchain");
      const call: FrameworkCall = { id: toolCall.id, tool: toolCall.name, args: toolCall.args };
      const made: { answer?: Awaited<ReturnType<typeof handler>> } = {};
      const execute = async (): Promise<unknown> => {
        const seen = watched(tool);
        made.answer = await handler({ ...request, tool: seen.tool as typeof tool });
        return seen.ran ? seen.value : contentOf(made.answer);
      };
      try {
        const value = await governor.make(call, execute, (asked) => ({
          answer: runtime.interrupt!({ ...asked }),
        }));
        return made.answer ?? told(call, value as Refusal);
      } catch (error) {
        if (isForTheGraph(error)) throw error;
        // Without a middleware this is what the agent's tools node does.
        return new ToolMessage({
          ...addressed(call),
          content: `${error}\n Please fix your mistakes.`,
          status: "error",
        });
      }
    },
  });
}

/** Undoes the whole run; each undo is a call of one of these tools. */
export function undo(
  run: Run,
  tools: readonly Invokable[],
  { name = (tool) => tool, ...request }: Partial<RollbackRequest> & Pick<GovernOptions, "name"> = {},
): Promise<RollbackReport> {
  return undoWith(run, (wanted) => {
    const tool = tools.find((one) => name(one.name) === wanted);
    return tool && ((args) => tool.invoke(args as never));
  })(request);
}

interface Invokable {
  name: string;
  invoke(args: never): Promise<unknown>;
}

async function runOf(run: RunOrThread, runtime: { configurable?: object }): Promise<Run> {
  if (typeof run !== "function") return run;
  const { thread_id } = (runtime.configurable ?? {}) as { thread_id?: unknown };
  if (typeof thread_id !== "string")
    throw new Error(
      "takeback: invoke the agent with { configurable: { thread_id } }, or govern it with a run",
    );
  return run(thread_id);
}

/** The framework makes a message of what a tool returns; the undo needs the value itself. */
function watched(tool: unknown): { tool: unknown; ran: boolean; value: unknown } {
  const seen = { tool, ran: false, value: undefined as unknown };
  const { _call: call, responseFormat } = (tool ?? {}) as { _call?: unknown; responseFormat?: string };
  if (typeof call !== "function") return seen;
  const own = async (...given: unknown[]) => {
    const value: unknown = await call.apply(tool, given);
    seen.ran = true;
    seen.value = responseFormat === "content_and_artifact" && Array.isArray(value) ? value[1] : value;
    return value;
  };
  seen.tool = Object.create(tool as object, { _call: { value: own } });
  return seen;
}

/** For tools whose own value is not to be had: what the message says. */
function contentOf(answer: unknown): unknown {
  const { content } = answer as { content?: unknown };
  if (typeof content !== "string") return content;
  try {
    return JSON.parse(content) as Json;
  } catch {
    return content;
  }
}

const addressed = ({ id, tool }: FrameworkCall) => ({ tool_call_id: id ?? "", name: tool });

function told(call: FrameworkCall, refusal: Refusal): ToolMessage {
  return new ToolMessage({ ...addressed(call), content: JSON.stringify(refusal), status: "error" });
}

/** Interrupts and commands travel through the graph as exceptions, and arguments that do not fit are its own affair. */
function isForTheGraph(error: unknown): boolean {
  const { is_bubble_up, name } = error as { is_bubble_up?: boolean; name?: string };
  return is_bubble_up === true || name === "ToolInvocationError" || name === "AbortError";
}
