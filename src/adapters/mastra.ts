/**
 * Mastra: a tool definition becomes a governed one, for `createTool`. A call that waits suspends as Mastra's tools
 * do. Nothing of `@mastra/core` is imported: a definition is an object.
 *
 * @module takeback/mastra
 */
import type { Run } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { type GovernOptions, Governor, PAUSED } from "./governor.ts";
import { type RunOrThread, undoWith } from "./thread.ts";

export type { ApprovalRequest, GovernOptions, Refusal } from "./governor.ts";
export { isRefusal } from "./governor.ts";
export { type RunOrThread, threadRun } from "./thread.ts";

/** What `createTool` takes, as far as it is used here. */
export interface ToolDefinition {
  id: string;
  execute?: (input: never, context: never) => unknown;
}

/** The same definition, governed; it keeps its types ([guide](../../docs/guides/frameworks/mastra.md)). */
export function governedTool<D extends ToolDefinition>(
  run: RunOrThread,
  definition: D,
  options: GovernOptions = {},
): D {
  const { id } = definition;
  const execute = definition.execute as ((args: unknown, context?: ToolContext) => unknown) | undefined;
  if (execute === undefined) return definition;
  const governed = async (args: unknown, context?: ToolContext): Promise<unknown> => {
    // Where the tool runs decides who suspends it: an agent, a workflow, or an MCP server.
    const place = context?.agent ?? context?.workflow ?? context ?? {};
    const governor = new Governor(await runOf(run, context), options, "mastra");
    return governor.make(
      { id: context?.agent?.toolCallId, tool: id, args },
      () => execute(args, context),
      async (request) => {
        if (place.resumeData !== undefined) return { answer: place.resumeData };
        if (place.suspend === undefined) return undefined;
        await place.suspend({ ...request });
        return PAUSED;
      },
    );
  };
  return { ...definition, execute: governed };
}

/** Undoes the whole run; each undo is a call of one of these definitions. */
export function undo(
  run: Run,
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

async function runOf(run: RunOrThread, context: ToolContext | undefined): Promise<Run> {
  if (typeof run !== "function") return run;
  // Mastra gives an agent that another delegates to a thread of its own; the request's context goes along.
  const thread = context?.requestContext?.get("takeback_thread") ?? context?.agent?.threadId;
  if (typeof thread !== "string")
    throw new Error(
      "takeback: call the agent with memory: { thread, resource }, or govern the tool with a run",
    );
  return run(thread);
}
