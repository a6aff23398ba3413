/**
 * Adapter for LangChain.js and LangGraph: one middleware for all tools of an agent. A pending call interrupts the
 * graph. A refused call becomes a tool message, because an exception in a middleware would end the agent.
 *
 * @module takeback/langchain
 */
import { type AgentMiddleware, createMiddleware, ToolMessage } from "langchain";
import type { JsonValue } from "../kernel/json/json.ts";
import type { AgentRun } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/plan/report.ts";
import { CallGovernor, type CallRefusal, type FrameworkCall, type GovernOptions } from "./governor.ts";
import { type RunOrThread, undoWith } from "./thread-run.ts";

export type { ApprovalRequest, CallRefusal as Refusal, GovernOptions } from "./governor.ts";
export { type RunOrThread, threadRun } from "./thread-run.ts";

/**
 * Governs every tool of an agent ([guide](../../docs/guides/frameworks/langchain.md)). Put it first in the list of
 * middleware, so that the work of the others counts as part of the call.
 */
function governAgent(run: RunOrThread, options: GovernOptions = {}): AgentMiddleware {
  return createMiddleware({
    name: "takeback",
    async wrapToolCall(request, handler) {
      const { toolCall, tool, runtime } = request;
      const governor = new CallGovernor(await runOf(run, runtime), options, "langchain");
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
        return made.answer ?? refusalMessage(call, value as CallRefusal);
      } catch (error) {
        if (isForTheGraph(error)) throw error;
        // Handles the error as the agent's tools node does without a middleware.
        return new ToolMessage({
          ...addressed(call),
          content: `${error}\n Please fix your mistakes.`,
          status: "error",
        });
      }
    },
  });
}

/** Undoes the whole run. Each undo calls one of these tools. */
function undoAgentRun(
  run: AgentRun,
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

async function runOf(run: RunOrThread, runtime: { configurable?: object }): Promise<AgentRun> {
  if (typeof run !== "function") return run;
  const { thread_id } = (runtime.configurable ?? {}) as { thread_id?: unknown };
  if (typeof thread_id !== "string")
    throw new Error(
      "takeback: invoke the agent with { configurable: { thread_id } }, or govern it with a run",
    );
  return run(thread_id);
}

/** Wraps a tool to capture its value, which the framework would turn into a message. The undo needs the value. */
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

/** Reads the value from the message, for tools whose own value is not available. */
function contentOf(answer: unknown): unknown {
  const { content } = answer as { content?: unknown };
  if (typeof content !== "string") return content;
  try {
    return JSON.parse(content) as JsonValue;
  } catch {
    return content;
  }
}

const addressed = ({ id, tool }: FrameworkCall) => ({ tool_call_id: id ?? "", name: tool });

function refusalMessage(call: FrameworkCall, refusal: CallRefusal): ToolMessage {
  return new ToolMessage({ ...addressed(call), content: JSON.stringify(refusal), status: "error" });
}

/**
 * Whether an error belongs to the graph: interrupts and commands travel as exceptions, and the graph handles arguments
 * that do not match the schema.
 */
function isForTheGraph(error: unknown): boolean {
  const { is_bubble_up, name } = error as { is_bubble_up?: boolean; name?: string };
  return is_bubble_up === true || name === "ToolInvocationError" || name === "AbortError";
}

export { governAgent as govern, undoAgentRun as undo };
