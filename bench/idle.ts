/** Much that waits on one server: idle MCP sessions, and long polls for decisions to come. What they take of its memory. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sha256Hex } from "../src/kernel/hash.ts";
import type { BenchOptions } from "./main.ts";
import type { Row } from "./report.ts";
import { freePort, HERE, ROOT, residentMb, stopped, untilReady } from "./server.ts";

const MANY = 10_000;
/** A principal may have a thousand sessions. */
const KEYS = 10;
const AT_ONCE = 100;
const MANIFESTS = ["get", "ask"].map((name) => `- {tool: crm.${name}, effect: read, permission: crm.read}\n`);
const POLICY = "version: 1\nrules: [{id: ask, match: {tool: crm.ask}, action: require_approval}]\n";

function prepare(folder: string, port: number): string {
  writeFileSync(join(folder, "manifests.yaml"), MANIFESTS.join(""));
  writeFileSync(join(folder, "policy.yaml"), POLICY);
  const key = (_: unknown, i: number) => ({
    name: `agent-${i}`,
    role: "agent",
    max_permissions: ["*"],
    key_sha256: sha256Hex(`key-${i}`),
  });
  writeFileSync(join(folder, "keys.json"), JSON.stringify(Array.from({ length: KEYS }, key)), {
    mode: 0o600,
  });
  const config = join(folder, "svc.yaml");
  const files = { manifests: "manifests.yaml", policy: "policy.yaml", auth: { keys: "keys.json" } };
  const place = { data: "data", store: "files", listen: { host: "127.0.0.1", port } };
  const upstreams = [
    { name: "bench", command: process.execPath, args: [join(HERE, "gateway-upstream.mjs")] },
  ];
  writeFileSync(config, JSON.stringify({ ...files, ...place, upstreams }));
  return config;
}

interface Answer {
  status: number;
  headers: IncomingMessage["headers"];
  body: Record<string, unknown>;
}

/** A client with its own connections. */
function client(port: number) {
  const agent = new Agent({ keepAlive: true });
  const send = (key: number, method: string, path: string, body?: object, headers = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? "" : JSON.stringify(body);
      const sent = request(
        {
          agent,
          port,
          path,
          method,
          host: "127.0.0.1",
          headers: {
            authorization: `Bearer key-${key % KEYS}`,
            ...(body === undefined
              ? {}
              : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
            ...headers,
          },
        },
        (response) => {
          let got = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            got += chunk;
          });
          response.on("error", reject);
          response.on("end", () => {
            const json = got.startsWith("{") ? JSON.parse(got) : {};
            resolve({ status: response.statusCode!, headers: response.headers, body: json });
          });
        },
      );
      sent.on("error", reject);
      sent.end(text);
    });
  return { send, stop: () => agent.destroy() };
}
type Client = ReturnType<typeof client>;

async function times(n: number, one: (i: number) => Promise<unknown>): Promise<void> {
  for (let done = 0; done < n; done += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => one(done + i)));
}

async function openSession({ send }: Client, i: number): Promise<void> {
  const accept = { accept: "application/json, text/event-stream" };
  const clientInfo = { name: "bench", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const { status, headers } = await send(
    i,
    "POST",
    "/mcp",
    { jsonrpc: "2.0", id: 0, method: "initialize", params },
    accept,
  );
  const session = headers["mcp-session-id"];
  if (session === undefined) throw new Error(`no session: ${status}`);
  const named = { ...accept, "mcp-session-id": session, "mcp-protocol-version": "2025-06-18" };
  await send(i, "POST", "/mcp", { jsonrpc: "2.0", method: "notifications/initialized" }, named);
}

async function newRun({ send }: Client, key: number): Promise<string> {
  const { body } = await send(key, "POST", "/v1/runs", { permissions: ["crm.read"], reason: "bench" });
  return body["run_id"] as string;
}

const intent = ({ send }: Client, run: string, tool: string, n: number) =>
  send(0, "POST", `/v1/runs/${run}/intents`, { tool, args: { n }, reason: "bench" });

async function started(folder: string) {
  const port = await freePort();
  const stderr = process.env["SVC_BENCH_LOG"] ? "inherit" : "ignore";
  const program = [join(ROOT, "bin", "svc.js"), "gateway", "--config", prepare(folder, port)];
  const env = { ...process.env, SVC_LOG_LEVEL: "error" };
  const server = spawn(process.execPath, program, { stdio: ["ignore", "ignore", stderr], env });
  await untilReady(port, server);
  return { server, port };
}

/** Requests that nobody decides. */
async function requests(here: Client): Promise<string[]> {
  const open = async (_: unknown, i: number) => {
    const { body } = await intent(here, await newRun(here, 0), "crm.ask", i);
    return /apr_[0-9a-f-]{36}/.exec(String(body["reasons"]))![0];
  };
  return Promise.all(Array.from({ length: 20 }, open));
}

/** As fast as connections are taken: what the system queues for a server is bounded. */
async function poll(waiting: Client, ids: readonly string[]): Promise<Promise<boolean>[]> {
  const polls: Promise<boolean>[] = [];
  for (let i = 0; i < MANY; i++) {
    const asked = waiting.send(0, "GET", `/v1/approvals/${ids[i % ids.length]}?wait=60`);
    polls.push(asked.then(({ body }) => body["status"] === "pending").catch(() => false));
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return polls;
}

export async function run(_: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-idle-"));
  const { server, port } = await started(folder);
  const [here, waiting] = [client(port), client(port)];
  const rows: Row[] = [];
  const add = (what: string, value: number, unit: string) =>
    rows.push({ suite: "idle", what, value, unit, goal: null });
  try {
    const ids = await requests(here);
    let resident = residentMb(server);
    add("a server", resident, " MB");
    const grown = (what: string) => {
      const now = residentMb(server);
      add(`${MANY} ${what}`, now - resident, " MB");
      add(`one of ${what}`, ((now - resident) * 1_024) / MANY, " KB");
      resident = now;
    };
    await times(MANY, (i) => openSession(here, i));
    grown("idle MCP sessions");
    const polls = await poll(waiting, ids);
    grown("waiting long polls");
    const answered = (await Promise.all(polls)).filter((ok) => ok).length;
    add("long polls answered in the end", answered, "");
  } finally {
    here.stop();
    waiting.stop();
    await stopped(server);
    rmSync(folder, { recursive: true, force: true });
  }
  return rows;
}
