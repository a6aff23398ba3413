/**
 * Clients by other authors that sign in to an MCP endpoint by its URL, each as its own documentation says. They start in
 * an empty home, and find the person through the variables of `personAtBrowser`.
 */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { freePort } from "../../support/ports.ts";
import { fastMcpPython } from "./fastmcp.ts";
import { installClient, type RealClient } from "./install.ts";
import { startModelServer } from "./model-server.ts";
import { HEADLESS, runClient } from "./run-client.ts";

/** Where a client runs, and what it needs to find its person. */
export interface SigningPlace {
  home: string;
  /** The endpoint. */
  url: string;
  env: Readonly<Record<string, string>>;
}

/** What the client showed: the output of its sign-in, and the answer of `echo` with `{text: "hello"}`. */
export interface SignedInUse {
  output: string;
  answer: string;
}

export interface SigningClient {
  title: string;
  /** Whether it is downloaded for `npm run prove -- clients` only. */
  large: boolean;
  signIn(place: SigningPlace): Promise<SignedInUse>;
}

const LIMIT_MS = 60_000;

/** Runs a program to its end. */
export function runToEnd(
  [program, ...args]: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string>> },
): Promise<{ code: number | null; text: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program!, args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => {
        text += part.toString();
      });
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    child.once("error", reject);
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code, text });
    });
  });
}

const inHome = ({ home, env }: SigningPlace, more: Readonly<Record<string, string>> = {}) => ({
  cwd: home,
  env: { HOME: home, TERM: "dumb", SHELL: "/bin/bash", ...env, ...more },
});

/** Puts a stdio client in front of a program that signs in when it starts. */
async function throughStdio(command: readonly string[], place: SigningPlace): Promise<SignedInUse> {
  const [program, ...args] = command;
  const transport = new StdioClientTransport({ command: program!, args, ...inHome(place), stderr: "pipe" });
  let output = "";
  transport.stderr?.on("data", (part: Buffer) => {
    output += part.toString();
  });
  const client = new Client({ name: "front", version: "1" });
  try {
    await client.connect(transport, { timeout: LIMIT_MS });
    const result = await client.callTool({ name: "echo", arguments: { text: "hello" } });
    return { output, answer: JSON.stringify(result.content) };
  } catch (error) {
    return { output, answer: String(error) };
  } finally {
    await client.close();
  }
}

async function mcporter(place: SigningPlace): Promise<SignedInUse> {
  const command = await installClient("mcporter");
  const config = join(place.home, "mcporter.json");
  const servers = { gateway: { url: place.url, auth: "oauth", allowHttp: true } };
  writeFileSync(config, JSON.stringify({ mcpServers: servers }));
  const signed = await runToEnd([...command, "--config", config, "auth", "gateway"], inHome(place));
  const called = await runToEnd(
    [...command, "--config", config, "call", "gateway.echo", "text=hello"],
    inHome(place),
  );
  return { output: signed.text, answer: called.text };
}

/** Its command line, on a Node that it supports. */
async function inspector(place: SigningPlace): Promise<SignedInUse> {
  const [node] = await installClient("node-24");
  const [, script] = await installClient("inspector");
  const call = ["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"];
  const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
  const words = [node!, script!, "--cli", "--server-url", place.url, "--transport", "http", ...call];
  // It opens a browser without a terminal if this is set.
  const at = inHome(place, { MCP_AUTO_OPEN_ENABLED: "true" });
  const { text } = await runToEnd([...words, "--callback-url", callback], at);
  return { output: text, answer: text };
}

/** A coding agent that has a command for the sign-in. Its scripted model then calls the tool. */
async function codingAgent(
  client: RealClient,
  place: SigningPlace,
  { commands, tool }: { commands: readonly (readonly string[])[]; tool: string },
): Promise<SignedInUse> {
  const program = await installClient(client);
  HEADLESS[client].prepare(place.home);
  const workspace = join(place.home, "shop");
  mkdirSync(workspace, { recursive: true });
  const turns = [...loading(client, tool), { calls: [echoCall(client, tool)] }];
  const scripted = await startModelServer({ "begin the main task": turns });
  try {
    const at = { home: place.home, workspace, model: scripted.url };
    const env = { ...HEADLESS[client].env(at), ...place.env };
    let output = "";
    for (const words of commands) {
      const { text } = await runToEnd(atTerminal([...program, ...words]), {
        ...inHome(place, env),
        cwd: workspace,
      });
      output += text;
    }
    const ended = await runClient(client, program, at, "begin the main task", { env: place.env });
    const results = scripted.requests.flatMap((request) => request.results);
    return { output: output + ended.out + ended.err, answer: results.join("\n") };
  } finally {
    await scripted.close();
  }
}

/** Some programs sign in at a terminal only. */
const atTerminal = (words: readonly string[]): string[] => [
  "script",
  "-qec",
  words.map((word) => `'${word}'`).join(" "),
  "/dev/null",
];

/** Claude Code loads the tools of servers when its model asks for them. */
const loading = (client: RealClient, tool: string) =>
  client === "claude-code"
    ? [{ calls: [{ tool: "ToolSearch", input: { query: `select:${tool}`, max_results: 5 } }] }]
    : [];

const echoCall = (client: RealClient, tool: string) =>
  client === "codex"
    ? { tool: "exec", input: `text(JSON.stringify(await tools.${tool}({text: "hello"})));` }
    : { tool, input: { text: "hello" } };

/** A program that uses FastMCP. */
async function python(script: string, place: SigningPlace): Promise<SignedInUse> {
  const file = join(place.home, "client.py");
  writeFileSync(file, script);
  const { text } = await runToEnd([await fastMcpPython(), file, place.url], inHome(place));
  return { output: text, answer: text };
}

const FASTMCP = `
import asyncio, sys
from fastmcp import Client

async def main():
    async with Client(sys.argv[1], auth="oauth") as client:
        print(await client.call_tool("echo", {"text": "hello"}))

asyncio.run(main())
`;

export const SIGNING_CLIENTS: readonly SigningClient[] = [
  {
    title: "mcp-remote",
    large: false,
    signIn: async (place) =>
      throughStdio([...(await installClient("mcp-remote")), place.url, "--transport", "http-only"], place),
  },
  { title: "mcporter", large: false, signIn: mcporter },
  { title: "MCP Inspector", large: true, signIn: inspector },
  {
    title: "Codex",
    large: true,
    signIn: (place) =>
      codingAgent("codex", place, {
        // Adding a server that needs a sign-in begins it.
        commands: [["mcp", "add", "gateway", "--url", place.url]],
        tool: "mcp__gateway__echo",
      }),
  },
  {
    title: "Claude Code",
    large: true,
    signIn: (place) =>
      codingAgent("claude-code", place, {
        commands: [
          ["mcp", "add", "--transport", "http", "gateway", place.url],
          ["mcp", "login", "gateway"],
        ],
        tool: "mcp__gateway__echo",
      }),
  },
  {
    title: "FastMCP",
    large: true,
    signIn: (place) => python(FASTMCP, place),
  },
];
