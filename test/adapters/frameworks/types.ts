/** The types that the package ships, against those of the frameworks: checked by the compiler, never run. */
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { createTool } from "@mastra/core/tools";
import * as openai from "@openai/agents";
import { generateText, type LanguageModel, tool } from "ai";
import { z } from "zod";
import * as ai from "../../../dist/adapters/ai-sdk.js";
import * as claude from "../../../dist/adapters/claude-agent-sdk.js";
import * as mastra from "../../../dist/adapters/mastra.js";
import * as agents from "../../../dist/adapters/openai-agents.js";
import type { Run } from "../../../dist/index.js";

declare const run: Run;
declare const model: LanguageModel;

const definition = {
  id: "typed",
  description: "",
  inputSchema: z.object({ n: z.number() }),
  outputSchema: z.object({ m: z.number() }),
  execute: async ({ n }: { n: number }) => ({ m: n + 1 }),
};
const plain = createTool(definition);
export const governed: typeof plain = createTool(mastra.governedTool(run, definition));
// @ts-expect-error what the tool takes is still known
export const wrong: Parameters<NonNullable<typeof governed.execute>>[0] = { n: "1" };

export const session: Options = { ...claude.govern(run), allowedTools: [] };

const given = { typed: tool({ inputSchema: z.object({ n: z.number() }), execute: async ({ n }) => n + 1 }) };
const { tools, toolApproval } = ai.govern(run, given);
export const same: typeof given = tools;
export const generated = generateText({ model, tools, toolApproval, prompt: "go" });

const parameters = z.object({ n: z.number() });
const described = { name: "typed", description: "", parameters, execute: ({ n }: { n: number }) => n + 1 };
const own = openai.tool(described);
export const function_tool: typeof own = agents.governedTool(run, described);
