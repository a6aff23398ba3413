/** Statements on the adapters for agent frameworks. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondAdapters = section("beyond", "7.1 Adapters", {
  "beyond.adapter.ai-sdk": [22, "`takeback/ai-sdk`: `govern(run, tools, {onApproval})` wraps a set of tools of the AI SDK in one call, and their own code does not change"],
  "beyond.adapter.ai-sdk-7": [22, "`govern` answers `toolApproval` too: not applicable, a person's approval, or denied with the reasons"],
  "beyond.adapter.langchain": [22, "`takeback/langchain`: `govern(run, {onApproval})` is one middleware for all tools of an agent, and interrupts with `{approval_id, tool, args, reasons}`"],
  "beyond.adapter.openai-agents": [22, "`takeback/openai-agents`: `governedTool(run, definition, {onApproval})` makes a governed tool of a definition of the OpenAI Agents SDK"],
  "beyond.adapter.nested": [22, "an agent that is another's tool is governed as any other"],
  "beyond.adapter.mastra": [22, "`takeback/mastra`: `governedTool(run, definition, {onApproval})` makes a governed definition of a Mastra tool, and suspends as its tools do"],
  "beyond.adapter.claude-agent-sdk": [22, "`takeback/claude-agent-sdk`: `govern(run, {onApproval, canUseTool})` gives the hooks that govern every tool of a session, and never overrides the SDK's own permissions"],
  "beyond.adapter.allowed": [22, "an allowed call is carried out, and its outcome is reported with the tool's own value, so that it can be undone"],
  "beyond.adapter.blocked": [22, "a blocked call is an answer with reasons and hints that the model can act on, and the agent goes on"],
  "beyond.adapter.waiting": [22, "a call that waits uses the framework's own pause, and is carried out when it resumes after a decision, in another process, too"],
  "beyond.adapter.previews": [22, "an approval hook only previews: a call that waits leaves no step behind"],
  "beyond.adapter.once": [22, "a call of the framework is carried out once, even if the same state is resumed twice"],
  "beyond.adapter.denied": [22, "a denied call is not carried out, the model is told who denied it, and resuming opens no second request"],
  "beyond.adapter.credential": [22, "`onApproval` decides with the person's credential, and is asked only when a person answered in the framework"],
  "beyond.adapter.errors": [22, "what a tool throws is reported as a failed step, and the framework treats it as it always does"],
  "beyond.adapter.undecided": [22, "a call that cannot be decided on is not made, also where the framework would go on over a hook that fails"],
  "beyond.adapter.timeout": [22, "a call that does not answer within `timeout_ms` is an uncertain step"],
  "beyond.adapter.types": [22, "a governed tool keeps the types of the tool"],
  "beyond.adapter.streaming": [22, "a streamed answer and a tool that yields work as without the adapter"],
  "beyond.adapter.threads": [22, "`threadRun(svc, thread_id, options)` gives the run of a thread, opened before or not"],
  "beyond.adapter.guide": [22, "each framework's guide has the shortest whole program, which runs as it stands"],
  "beyond.adapter.newest": [22, "each adapter works with the newest release of its framework under a newer Node"],
  "beyond.adapter.undo": [22, "the undo of a whole thread is one call"],
});
