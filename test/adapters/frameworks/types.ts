/** The types that the package ships, against those of the frameworks: checked by the compiler, never run. */
import type { Options } from "@anthropic-ai/claude-agent-sdk";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import * as claude from "../../../dist/adapters/claude-agent-sdk.js";
import * as mastra from "../../../dist/adapters/mastra.js";
import type { Run } from "../../../dist/index.js";

declare const run: Run;

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
