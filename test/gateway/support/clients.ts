/**
 * MCP clients that people use, each as published, behind one small face. Agent frameworks run their own loop with a
 * scripted model, which refuses tools by name as model providers do.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createMCPClient } from "@ai-sdk/mcp";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { fakeModel } from "@langchain/core/testing";
import { MultiServerMCPClient } from "@langchain/mcp-adapters";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  Agent,
  MCPServerStreamableHttp,
  type Model,
  type ModelResponse,
  Runner,
  Usage,
} from "@openai/agents";
import { generateText, stepCountIs, type ToolSet } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { createAgent } from "langchain";
import { ROOT } from "../../support/files.ts";
import { call, connectTo, toolNames } from "./gateway.ts";

export interface Connected {
  /** The tools, under the names that the client's program has for them. */
  names: string[];
  /** Everything that the program, or its model, reads about a call, thrown errors too. */
  call(tool: string, args: Record<string, unknown>): Promise<string>;
  close(): Promise<unknown>;
}

export interface ClientKind {
  title: string;
  /** The package that the version is of. */
  entry: string;
  connect(url: string, headers: Record<string, string>): Promise<Connected>;
}

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** A model provider's answer to a request with a tool name that it doesn't take. */
export function acceptTools(names: readonly string[]): void {
  const bad = names.find((name) => !NAME.test(name));
  if (bad !== undefined) throw new Error(`400 tools: '${bad}' does not match '^[a-zA-Z0-9_-]{1,64}$'`);
}

const told = (work: Promise<unknown>): Promise<string> =>
  work.then(
    (value) => JSON.stringify(value),
    (error: Error) => error.message,
  );
const nothing = async () => {};

const newer = (mode: "legacy" | "modern"): ClientKind["connect"] => {
  return async (url, headers) => {
    const client = await connectTo(url, "", { mode, headers });
    return {
      names: await toolNames(client),
      call: (tool, args) => told(call(client, tool, args)),
      close: nothing,
    };
  };
};

async function older(url: string, headers: Record<string, string>): Promise<Connected> {
  const client = new OlderClient({ name: "v1", version: "1" });
  await client.connect(new OlderTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  const { tools } = await client.listTools();
  return {
    names: tools.map(({ name }) => name),
    call: (name, args) => told(client.callTool({ name, arguments: args })),
    close: () => client.close(),
  };
}

/** Its command line, a process a call; it looks for its own version one folder above where it runs. */
async function inspector(url: string, headers: Record<string, string>): Promise<Connected> {
  const cwd = join(ROOT, "node_modules/@modelcontextprotocol/inspector-cli/build");
  const given = Object.entries(headers).flatMap(([name, value]) => ["--header", `${name}: ${value}`]);
  const program = ["index.js", `${url}/mcp`, "--transport", "http", ...given, "--method"];
  const run = async (...args: string[]) =>
    JSON.parse((await promisify(execFile)(process.execPath, [...program, ...args], { cwd })).stdout);
  const { tools } = await run("tools/list");
  return {
    names: tools.map(({ name }: { name: string }) => name),
    call(tool, args) {
      const words = Object.entries(args).flatMap(([name, value]) => [
        "--tool-arg",
        `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
      ]);
      return told(run("tools/call", "--tool-name", tool, ...words));
    },
    close: nothing,
  };
}

async function aiSdk(url: string, headers: Record<string, string>): Promise<Connected> {
  const client = await createMCPClient({ transport: { type: "http", url: `${url}/mcp`, headers } });
  const tools = (await client.tools()) as ToolSet;
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const ask = async (toolName: string, args: object) => {
    let seen = "";
    const model = new MockLanguageModelV3({
      doGenerate: async ({ prompt, tools: given = [] }) => {
        acceptTools(given.map(({ name }) => name));
        const last = prompt.at(-1)!;
        if (last.role === "tool") seen = JSON.stringify(last.content);
        const call = {
          type: "tool-call",
          toolCallId: "call",
          toolName,
          input: JSON.stringify(args),
        } as const;
        const unified = seen === "" ? "tool-calls" : "stop";
        return {
          content: seen === "" ? [call] : [{ type: "text", text: "done" }],
          finishReason: { unified, raw: unified },
          usage,
          warnings: [],
        };
      },
    });
    await generateText({ model, tools, prompt: "go", stopWhen: stepCountIs(3) });
    return seen;
  };
  return {
    names: Object.keys(tools),
    call: (tool, args) => told(ask(tool, args)),
    close: () => client.close(),
  };
}

async function openaiAgents(url: string, headers: Record<string, string>): Promise<Connected> {
  const server = new MCPServerStreamableHttp({
    url: `${url}/mcp`,
    name: "svc",
    requestInit: { headers },
    cacheToolsList: true,
  });
  await server.connect();
  const ask = async (name: string, args: object) => {
    let seen = "";
    const model: Model = {
      async getResponse({ input, tools }): Promise<ModelResponse> {
        acceptTools(tools.flatMap((tool) => ("name" in tool ? [tool.name] : [])));
        const last = typeof input === "string" ? undefined : input.at(-1);
        if (last?.type === "function_call_result") seen = JSON.stringify(last.output);
        const call = {
          type: "function_call",
          callId: "call",
          name,
          arguments: JSON.stringify(args),
          status: "completed",
        } as const;
        const word = {
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "done" }],
        } as const;
        const output = seen === "" ? call : { ...word, content: [...word.content] };
        return { usage: new Usage(), output: [output], responseId: "response" };
      },
      getStreamedResponse() {
        throw new Error("not used");
      },
    };
    const agent = new Agent({ name: "bot", model, mcpServers: [server] });
    await new Runner({ tracingDisabled: true }).run(agent, "go");
    return seen;
  };
  const names = (await server.listTools()).map(({ name }) => name);
  return { names, call: (tool, args) => told(ask(tool, args)), close: () => server.close() };
}

async function langchain(url: string, headers: Record<string, string>): Promise<Connected> {
  const client = new MultiServerMCPClient({ svc: { transport: "http", url: `${url}/mcp`, headers } });
  const tools = await client.getTools();
  const ask = async (name: string, args: Record<string, unknown>) => {
    acceptTools(tools.map((tool) => tool.name));
    const model = fakeModel()
      .respondWithTools([{ name, args, id: "call" }])
      .respond(new AIMessage("done"));
    const { messages } = await createAgent({ model, tools }).invoke({ messages: [new HumanMessage("go")] });
    return messages.filter(({ type }) => type === "tool").map(({ content }) => content);
  };
  return {
    names: tools.map(({ name }) => name),
    call: (tool, args) => told(ask(tool, args)),
    close: () => client.close(),
  };
}

export const CLIENT_KINDS: readonly ClientKind[] = [
  {
    title: "MCP SDK 2, revision 2025-11-25",
    entry: "@modelcontextprotocol/client",
    connect: newer("legacy"),
  },
  {
    title: "MCP SDK 2, revision 2026-07-28",
    entry: "@modelcontextprotocol/client",
    connect: newer("modern"),
  },
  { title: "MCP SDK 1", entry: "@modelcontextprotocol/sdk", connect: older },
  { title: "MCP Inspector", entry: "@modelcontextprotocol/inspector-cli", connect: inspector },
  { title: "AI SDK", entry: "@ai-sdk/mcp", connect: aiSdk },
  { title: "OpenAI Agents", entry: "@openai/agents", connect: openaiAgents },
  { title: "LangChain adapters", entry: "@langchain/mcp-adapters", connect: langchain },
];
