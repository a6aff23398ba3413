/**
 * What the guide's program uses of `@anthropic-ai/claude-agent-sdk` 0.3, as it documents it: hooks are asked around
 * each call that the executable would make in its model's turns.
 */
import type { GovernedSession } from "../../../src/adapters/claude-agent-sdk.ts";

/** Plays the model: which call comes next, or what it says in the end. */
export interface ScriptedModel {
  next(told: unknown): { tool: string; args: unknown } | { text: string };
}

type Work = (args: Record<string, unknown>) => Promise<{ content: unknown }>;
interface Server {
  name: string;
  tools: { name: string; work: Work }[];
}

export const tool = (name: string, _description: string, _schema: unknown, work: Work) => ({ name, work });
export const createSdkMcpServer = (server: Server): Server => server;

export async function* query({
  prompt,
  options: { hooks, mcpServers },
}: {
  prompt: string;
  options: GovernedSession & { mcpServers: Record<string, Server> };
}) {
  const { model } = globalThis as unknown as { model: ScriptedModel };
  let told: unknown = prompt;
  for (let turn = 1; ; turn++) {
    const said = model.next(told);
    if ("text" in said) {
      await hooks.SessionEnd[0]!.hooks[0]({ hook_event_name: "SessionEnd", reason: "other" });
      yield { type: "result", subtype: "success", result: said.text };
      return;
    }
    const [, server, name] = /^mcp__(\w+?)__(.*)$/.exec(said.tool)!;
    const about = { tool_name: said.tool, tool_input: said.args, tool_use_id: `toolu_${turn}` };
    const [before] = hooks.PreToolUse[0]!.hooks;
    const { hookSpecificOutput: denied } = await before({ hook_event_name: "PreToolUse", ...about });
    told = denied?.permissionDecisionReason;
    if (denied !== undefined) continue;
    const { work } = mcpServers[server!]!.tools.find((one) => one.name === name)!;
    const { content } = await work(said.args as Record<string, unknown>);
    const [after] = hooks.PostToolUse[0]!.hooks;
    await after({ hook_event_name: "PostToolUse", ...about, tool_response: content });
    told = content;
  }
}
