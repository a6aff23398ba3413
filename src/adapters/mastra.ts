/**
 * Adapter for Mastra: turns a tool definition into a governed one for `createTool`. A pending call suspends the way
 * Mastra's tools do. This module imports nothing from `@mastra/core`, because a definition is a plain object.
 *
 * @module takeback/mastra
 */
import type { AgentRun } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/plan/report.ts";
import { CallGovernor, type GovernOptions, PAUSED_CALL } from "./governor.ts";
import { type RunOrThread, undoWith } from "./thread-run.ts";

export type { ApprovalRequest, CallRefusal as Refusal, GovernOptions } from "./governor.ts";
export { isRefusal } from "./governor.ts";
export { type RunOrThread, threadRun } from "./thread-run.ts";

/** The members of a `createTool` definition that this adapter uses. */
export interface ToolDefinition {
  id: string;
  execute?: (input: never, context: never) => unknown;
}

/** Returns the same definition, governed and with the same types ([guide](../../docs/guides/frameworks/mastra.md)). */
export function governedTool<D extends ToolDefinition>(
  run: RunOrThread,
  definition: D,
  options: GovernOptions = {},
): D {
  const { id } = definition;
  const execute = definition.execute as ((args: unknown, context?: ToolContext) => unknown) | undefined;
  if (execute === undefined) return definition;
  const governed = async (args: unknown, context?: ToolContext): Promise<unknown> => {
    // An agent, a workflow or an MCP server can run the tool, and the one that runs it also suspends it.
    const place = context?.agent ?? context?.workflow ?? context ?? {};
    const governor = new CallGovernor(await runOf(run, context), options, "mastra");
    return governor.make(
      { id: context?.agent?.toolCallId, tool: id, args },
      () => execute(args, context),
      async (request) => {
        if (place.resumeData !== undefined) return { answer: place.resumeData };
        if (place.suspend === undefined) return undefined;
        await place.suspend({ ...request });
        return PAUSED_CALL;
      },
    );
  };
  return { ...definition, execute: governed };
}

/** Undoes the whole run. Each undo calls one of these definitions. */
function undoAgentRun(
  run: AgentRun,
  definitions: readonly ToolDefinition[],
  { name = (tool) => tool, ...request }: Partial<RollbackRequest> & Pick<GovernOptions, "name"> = {},
): Promise<RollbackReport> {
  return undoWith(run, (wanted) => {
    const execute = definitions.find(({ id }) => name(id) === wanted)?.execute;
    return execute && ((args) => execute(args as never, {} as never));
  })(request);
}

interface Suspendable {
  suspend?: (payload: unknown) => Promise<unknown>;
  resumeData?: unknown;
}
interface ToolContext extends Suspendable {
  requestContext?: { get(key: string): unknown };
  agent?: Suspendable & { toolCallId?: string; threadId?: string };
  workflow?: Suspendable;
}

async function runOf(run: RunOrThread, context: ToolContext | undefined): Promise<AgentRun> {
  if (typeof run !== "function") return run;
  // Mastra gives a subagent a separate thread, but passes on the request context.
  const thread = context?.requestContext?.get("takeback_thread") ?? context?.agent?.threadId;
  if (typeof thread !== "string")
    throw new Error(
      "takeback: call the agent with memory: { thread, resource }, or govern the tool with a run",
    );
  return run(thread);
}

export { undoAgentRun as undo };
