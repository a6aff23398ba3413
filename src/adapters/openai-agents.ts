/**
 * The OpenAI Agents SDK: a tool definition becomes a governed tool. Its approval hook only looks ahead; executing asks,
 * carries out and reports. A refusal is the tool's answer, because the SDK hides from the model what a tool throws.
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
import type { Run } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/report.ts";
import { type FrameworkCall, type GovernOptions, Governor } from "./governor.ts";
import { undoWith } from "./thread.ts";

export type { ApprovalRequest, GovernOptions, Refusal } from "./governor.ts";
export { threadRun } from "./thread.ts";

/** A run, or how it is found from the context that the SDK's run carries. */
export type RunOrContext<Context> = Run | ((context: RunContext<Context>) => Run | Promise<Run>);

/** The same as the SDK's own `tool(definition)`, governed ([guide](../../docs/guides/frameworks/openai-agents.md)). */
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
  const { name = "", execute, needsApproval: own } = definition as unknown as AnyDefinition;
  const governorIn = async (context: RunContext<Context>) =>
    new Governor(typeof run === "function" ? await run(context) : run, options, "openai-agents");
  const governed: AnyDefinition = {
    ...(definition as unknown as AnyDefinition),
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
  return tool(governed as never) as unknown as GovernedTool<TParameters, Context, Result, TOutputSchema>;
}

type GovernedTool<
  TParameters extends ToolInputParameters,
  Context,
  Result,
  TOutputSchema extends ToolOutputSchema | undefined,
> = ReturnType<typeof tool<TParameters, Context, Result, TOutputSchema>>;

/** What is used of a definition, whatever it takes and gives. */
interface AnyDefinition {
  name?: string;
  needsApproval?: boolean | ((context: AnyContext, args: unknown, id?: string) => Promise<boolean>);
  execute(args: unknown, context?: AnyContext, details?: { toolCall?: { callId: string } }): unknown;
}
type AnyContext = Pick<RunContext<unknown>, "isToolApproved">;

/** Undoes the whole run; each undo is a call of one of these definitions. */
export function undo(
  run: Run,
  definitions: readonly Executable[],
  { name = (tool) => tool, ...request }: Partial<RollbackRequest> & Pick<GovernOptions, "name"> = {},
): Promise<RollbackReport> {
  return undoWith(run, (wanted) => {
    const found = definitions.find((one) => name(one.name ?? "") === wanted);
    return found && ((args) => found.execute(args as never));
  })(request);
}

/** A definition, as far as an undo needs it. */
export interface Executable {
  name?: string;
  execute(args: never): unknown;
}
