/** The MCP gateway: messages changed from valid ones, in sessions and without, over HTTP; and the framing of stdio. */
import { PassThrough } from "node:stream";
import fc from "fast-check";
import { StrictStdio } from "../../src/gateway/session/strict-stdio.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { runBatches } from "./batches.ts";
import { jsonTextFrom } from "./mutate.ts";
import { asBytes } from "./requests.ts";
import type { AreaRow } from "./row.ts";
import { Target } from "./target.ts";

const VERSION = "2025-06-18";
const NEWER = "2026-07-28";
const meta = { "io.modelcontextprotocol/protocolVersion": NEWER };

const INITIALIZE: JsonObject = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: VERSION, capabilities: {}, clientInfo: { name: "c", version: "1" } },
};
const MESSAGES: readonly JsonObject[] = [
  INITIALIZE,
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", id: 1, method: "ping" },
  { jsonrpc: "2.0", id: 2, method: "tools/list", params: { cursor: "x" } },
  { jsonrpc: "2.0", id: 3, method: "tools/call", params: { name: "echo", arguments: { a: 1 } } },
  { jsonrpc: "2.0", id: 4, method: "tools/call", params: { name: "svc.status", arguments: {} } },
  {
    jsonrpc: "2.0",
    id: 5,
    method: "tools/call",
    params: { name: "nothing", arguments: { a: "b" }, _meta: { progressToken: 1 } },
  },
  { jsonrpc: "2.0", id: 6, method: "resources/read", params: { uri: "file:///x" } },
  { jsonrpc: "2.0", id: 7, method: "prompts/get", params: { name: "p", arguments: {} } },
  {
    jsonrpc: "2.0",
    id: 8,
    method: "completion/complete",
    params: { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "b" } },
  },
  { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 3, reason: "x" } },
  { jsonrpc: "2.0", id: 9, method: "logging/setLevel", params: { level: "info" } },
  { jsonrpc: "2.0", id: 10, result: {} },
  { jsonrpc: "2.0", id: 11, error: { code: -1, message: "no" } },
  { jsonrpc: "2.0", id: 12, method: "server/discover", params: { _meta: meta } },
  {
    jsonrpc: "2.0",
    id: 13,
    method: "tools/call",
    params: { name: "echo", arguments: { a: 1 }, _meta: meta },
  },
];

export async function fuzzMcp(count: number, seed: number): Promise<AreaRow> {
  const target = await Target.start("gateway");
  try {
    const sessions = await Promise.all(Array.from({ length: 8 }, () => openSession(target)));
    const framed = Math.floor(count / 4);
    const row = await runBatches({
      area: "mcp",
      target,
      inputs: overHttp(sessions),
      count: count - framed,
      seed,
      // A blocked call is answered as an error of the tool, and it is a decision: it is recorded.
      accepted: ({ status, body }) => status < 400 && !/"error":\{"code"/.test(body),
    });
    const { accepted, problems } = await overStdio(framed, seed);
    return {
      ...row,
      inputs: row.inputs + framed,
      accepted: row.accepted + accepted,
      problems: [...row.problems, ...problems],
    };
  } finally {
    await target.stop();
  }
}

export const ACCEPT = { accept: "application/json, text/event-stream" };

export async function openSession(target: Target): Promise<string> {
  const body = JSON.stringify(INITIALIZE);
  const reply = await target.send(
    asBytes({ key: "agent", method: "POST", path: "/mcp", headers: ACCEPT, body }),
  );
  const id = /mcp-session-id: (\S+)/i.exec(reply.headers)?.[1];
  if (id === undefined) throw new Error(`no session: ${reply.status} ${reply.body}`);
  const ready = JSON.stringify(MESSAGES[1]);
  await target.send(
    asBytes({
      key: "agent",
      method: "POST",
      path: "/mcp",
      headers: { ...ACCEPT, "mcp-session-id": id },
      body: ready,
    }),
  );
  return id;
}

function overHttp(sessions: readonly string[]): fc.Arbitrary<Buffer> {
  return fc
    .record({
      body: jsonTextFrom(MESSAGES.slice(1)),
      session: fc.constantFrom(...sessions, ...sessions, "", "nobody", "../x"),
      version: fc.constantFrom(undefined, undefined, VERSION, NEWER, "1999-01-01", ""),
      key: fc.constantFrom("agent", "agent", "agent", "agent", "agent2", "auditor", "nobody"),
      accept: fc.constantFrom(ACCEPT.accept, ACCEPT.accept, ACCEPT.accept, "text/html"),
      path: fc.constantFrom("/mcp", "/mcp", "/mcp", "/operator/mcp"),
      run: fc.constantFrom(undefined, undefined, undefined, "named", "../x", "x".repeat(200)),
    })
    .map(({ body, session, version, key, accept, path, run }) =>
      asBytes({
        key,
        method: "POST",
        path,
        body,
        headers: {
          accept,
          // An id that another request of the batch uses at the same time would be a conflict.
          ...(session === "" ? {} : { "mcp-session-id": session }),
          ...(version === undefined ? {} : { "mcp-protocol-version": version }),
          ...(run === undefined ? {} : { "svc-run-id": run }),
        },
      }),
    );
}

/** Every line is a message or is answered with an error, and the next line is read as if nothing had been. */
async function overStdio(count: number, seed: number): Promise<{ accepted: number; problems: string[] }> {
  const lines = fc
    .sample(jsonTextFrom(MESSAGES), { seed, numRuns: count })
    .map((text) => text.replace(/[\r\n]/g, " "));
  const input = new PassThrough();
  const output = new PassThrough();
  const transport = new StrictStdio(input, output);
  const problems: string[] = [];
  let accepted = 0;
  let answered = 0;
  transport.onmessage = () => {
    accepted++;
  };
  output.setEncoding("utf8").on("data", (text: string) => {
    for (const line of text.trim().split("\n")) {
      answered++;
      if (!/"error":\{"code":-32[67]00,/.test(line))
        problems.push(`stdio: an odd answer: ${line.slice(0, 200)}`);
    }
  });
  await transport.start();
  // In pieces that end anywhere, as a pipe would give them.
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
  for (let at = 0; at < bytes.length; at += 1_021) {
    input.write(bytes.subarray(at, at + 1_021));
    if (at % 102_100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  const blank = lines.filter((line) => line.trim() === "").length;
  if (accepted + answered + blank !== count)
    problems.push(`stdio, seed ${seed}: of ${count} lines ${accepted} were taken and ${answered} refused`);
  return { accepted, problems };
}
