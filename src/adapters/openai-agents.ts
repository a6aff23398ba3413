/**
 * Adapter for the OpenAI Agents SDK: turns a tool definition into a governed tool. The SDK's approval hook only
 * previews the decision; execution requests it, runs the tool and reports the outcome. A refusal is returned as the
 * tool's answer, because the SDK hides a tool's exceptions from the model.
 *
 * @module takeback/openai-agents
 */
import {
  type RunContext,
  type ToolInputParameters,
  type ToolOptions,
  type ToolOutputSchema,
  tool,
} from "@openai/agents";
import type { AgentRun } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/plan/report.ts";
import { CallGovernor, type FrameworkCall, type GovernOptions } from "./governor.ts";
import { undoWith } from "./thread-run.ts";

export type { ApprovalRequest, CallRefusal as Refusal, GovernOptions } from "./governor.ts";
export { threadRun } from "./thread-run.ts";

/** A run, or a function that finds it from the SDK's run context. */
export type RunOrContext<Context> =
  | AgentRun
  | ((context: RunContext<Context>) => AgentRun | Promise<AgentRun>);

/** Governed version of the SDK's `tool(definition)` ([guide](../../docs/guides/frameworks/openai-agents.md)). */
export function governedTool<
  TParameters extends ToolInputParameters = undefined,
  Context = unknown,
  Result = string,
  TOutputSchema extends ToolOutputSchema | undefined = undefined,
>(
  run: RunOrContext<Context>,
  definition: ToolOptions<TParameters, Context, TOutputSchema>,
  options: GovernOptions = {},
): GovernedTool<TParameters, Context, Result, TOutputSchema> {
  const { name = "", execute, needsApproval: own } = definition as AnyDefinition;
  const governorIn = async (context: RunContext<Context>) =>
    new CallGovernor(typeof run === "function" ? await run(context) : run, options, "openai-agents");
  const governed: AnyDefinition = {
    ...(definition as AnyDefinition),
    async needsApproval(context, args, id) {
      if (typeof own === "function" ? await own(context, args, id) : own === true) return true;
      const governor = await governorIn(context as RunContext<Context>);
      return (await governor.preview({ id, tool: name, args })).decision === "needs_approval";
    },
    async execute(args, context, details) {
      const callId = details?.toolCall?.callId;
      const call: FrameworkCall = { id: callId, tool: name, args };
      const governor = await governorIn(context as RunContext<Context>);
      return governor.make(
        call,
        () => execute(args, context, details),
        () => {
          const yes = callId !== undefined && context?.isToolApproved({ toolName: name, callId }) === true;
          return yes ? { answer: true } : undefined;
        },
      );
    },
  };
  return tool(governed as never) as GovernedTool<TParameters, Context, Result, TOutputSchema>;
}

type GovernedTool<
  TParameters extends ToolInputParameters,
  Context,
  Result,
  TOutputSchema extends ToolOutputSchema | undefined,
> = ReturnType<typeof tool<TParameters, Context, Result, TOutputSchema>>;

/** The members of a definition that this adapter uses, without their types. */
interface AnyDefinition {
  name?: string;
  needsApproval?: boolean | ((context: AnyContext, args: unknown, id?: string) => Promise<boolean>);
  execute(args: unknown, context?: AnyContext, details?: { toolCall?: { callId: string } }): unknown;
}
type AnyContext = Pick<RunContext<unknown>, "isToolApproved">;

/** Undoes the whole run. Each undo calls one of these definitions. */
function undoAgentRun(
  run: AgentRun,
  definitions: readonly ExecutableTool[],
  { name = (tool) => tool, ...request }: Partial<RollbackRequest> & Pick<GovernOptions, "name"> = {},
): Promise<RollbackReport> {
  return undoWith(run, (wanted) => {
    const found = definitions.find((one) => name(one.name ?? "") === wanted);
    return found && ((args) => found.execute(args as never));
  })(request);
}

/** The members of a definition that an undo needs. */
interface ExecutableTool {
  name?: string;
  execute(args: never): unknown;
}

export { type ExecutableTool as Executable, undoAgentRun as undo };
