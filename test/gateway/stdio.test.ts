/** `svc gateway` as a process: one session on stdin and stdout, with the SDK's own clients of both lines. */
import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema, CreateTaskResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, describe, expect, it, vi } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { call, FAKE_MANIFESTS, fakeUpstream, until } from "./support/gateway.ts";

// Each test starts processes, some of them several in a row.
vi.setConfig({ testTimeout: 120_000 });

const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));

function setup(config: Record<string, unknown> = {}): { folder: string; file: string } {
  const folder = tempDir("stdio");
  writeFileSync(join(folder, "manifests.yaml"), FAKE_MANIFESTS);
  const file = join(folder, "svc.config.yaml");
  writeFileSync(
    file,
    JSON.stringify({
      manifests: "manifests.yaml",
      data: "data",
      actor: "desk-bot",
      upstreams: [fakeUpstream()],
      ...config,
    }),
  );
  return { folder, file };
}

const args = (file: string, ...more: string[]) => [BIN, "gateway", "--config", file, ...more];
const trail = (
  folder: string,
  run: string,
): { event: string; actor: string; tool?: string; detail?: string }[] =>
  readFileSync(join(folder, "data", "ledger.jsonl"), "utf8")
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line))
    .filter(({ run_id }) => run_id === run);

const open: { close(): Promise<void> }[] = [];
afterAll(async () => {
  await Promise.allSettled(open.map((client) => client.close()));
});

async function newClient(file: string, mode: "legacy" | "auto", ...more: string[]): Promise<Client> {
  const client = new Client({ name: "v2", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(
    new StdioClientTransport({ command: process.execPath, args: args(file, ...more), stderr: "ignore" }),
  );
  open.push(client);
  return client;
}

describe("a stdio session", () => {
  it.each(["legacy", "auto"] as const)(
    `serves the SDK's client, %s ${verifies("contract.start.gateway", "core.gateway.stdio-without-listen", "core.gateway.stdio-no-key", "core.gateway.config-actor", "core.purpose.process-gateway", "contract.config.gateway")}`,
    async (mode) => {
      const { folder, file } = setup();
      const client = await newClient(file, mode);
      expect(client.getProtocolEra()).toBe(mode === "legacy" ? "legacy" : "modern");
      const result = await call(client, "echo", { a: 1 });
      expect(result.structuredContent.got).toEqual({ a: 1 });
      const again = await call(client, "create", { n: 1 });
      expect(again._meta["svc/run_id"]).toBe(result._meta["svc/run_id"]);
      await client.close();
      const records = trail(folder, result._meta["svc/run_id"]);
      expect(records.map(({ event, actor }) => [event, actor])).toEqual([
        ["intended", "desk-bot"],
        ["succeeded", "desk-bot"],
        ["intended", "desk-bot"],
        ["succeeded", "desk-bot"],
      ]);
    },
  );

  it(`answers a call that came with the first line, though nothing comes after it ${verifies("beyond.stdio.at-once")}`, async () => {
    const { file } = setup();
    const child = spawn(process.execPath, args(file), { stdio: ["pipe", "pipe", "ignore"] });
    let out = "";
    child.stdout.on("data", (chunk) => {
      out += chunk;
    });
    const clientInfo = { name: "pipe", version: "1" };
    const first = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
    const lines = [
      { id: 1, method: "initialize", params: first },
      { method: "notifications/initialized" },
      { id: 2, method: "tools/call", params: { name: "echo", arguments: { a: 1 } } },
    ];
    child.stdin.end(lines.map((line) => `${JSON.stringify({ jsonrpc: "2.0", ...line })}\n`).join(""));
    const [code] = await once(child, "exit");
    const answers = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers.map(({ id }) => id)).toEqual([1, 2]);
    expect(answers[1].result.structuredContent.got).toEqual({ a: 1 });
    expect(code).toBe(0);
  });

  it("serves the older line of the SDK", async () => {
    const { file } = setup();
    const client = new OlderClient({ name: "v1", version: "1" });
    await client.connect(
      new OlderTransport({ command: process.execPath, args: args(file), stderr: "ignore" }),
    );
    open.push(client);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["echo", "create", "svc.plan_rollback"]),
    );
    const result = await client.callTool({ name: "echo", arguments: { a: 2 } });
    expect(result).toMatchObject({ structuredContent: { got: { a: 2 } } });
    const blocked = await client.callTool({ name: "nothing_of_the_kind", arguments: {} });
    expect(blocked).toMatchObject({ isError: true, structuredContent: { decision: "block" } });
  });

  it(`makes a call that waited as a task once, though it was killed in between ${verifies("beyond.wait.killed")}`, async () => {
    const log = join(tempDir("killed"), "seen.jsonl");
    const { folder, file } = setup({
      policy: "policy.yaml",
      approvals: { wait: "60s" },
      upstreams: [fakeUpstream({ env: { FAKE_LOG: log } })],
    });
    const rule = "{id: ask, match: {tool: create}, action: require_approval, reason: look}";
    writeFileSync(join(folder, "policy.yaml"), `version: 1\nrules: [${rule}]\n`);
    const started = async () => {
      const client = new OlderClient({ name: "v1", version: "1" });
      const wire = new OlderTransport({ command: process.execPath, args: args(file), stderr: "ignore" });
      await client.connect(wire);
      open.push(client);
      const params = { name: "create", arguments: { n: 1 } };
      const begin = () =>
        client.request({ method: "tools/call", params }, CreateTaskResultSchema, { task: {} });
      return { wire, begin, tasks: client.experimental.tasks };
    };
    const first = await started();
    const { taskId } = (await first.begin()).task;
    let approval_id: string | undefined;
    await until(async () => {
      const { statusMessage } = await first.tasks.getTask(taskId);
      approval_id = /request (apr_[^)]+)/.exec(statusMessage!)?.[1];
      return approval_id !== undefined;
    }, "its request");
    process.kill(first.wire.pid!, "SIGKILL");
    const approve = ["approvals", "approve", approval_id!, "--as", "ann"];
    await promisify(execFile)(process.execPath, [BIN, ...approve, "--config", file]);
    const { begin, tasks } = await started();
    await expect(tasks.getTask(taskId)).rejects.toThrow(/unknown task/);
    // A client that sends it twice has one approval.
    const both = await Promise.all([begin(), begin()]);
    const made = await Promise.any(
      both.map(({ task }) => tasks.getTaskResult(task.taskId, CallToolResultSchema)),
    );
    expect(made._meta!["svc/decision"]).toBe("allow");
    const statuses = (await tasks.listTasks()).tasks.map(({ status }) => status);
    expect(statuses.sort()).toEqual(["completed", "working"]);
    expect(readFileSync(log, "utf8").match(/"method":"tools\/call"/g)).toHaveLength(1);
  });

  it(`continues a run with --run-id ${verifies("contract.start.gateway-run-id", "core.gateway.continue-option")}`, async () => {
    const { folder, file } = setup();
    for (const step of [0, 1]) {
      const client = await newClient(file, "legacy", "--run-id", "desk-1");
      expect((await call(client, "echo"))._meta).toMatchObject({ "svc/run_id": "desk-1", "svc/step": step });
      await client.close();
    }
    expect(trail(folder, "desk-1")).toHaveLength(4);
    writeFileSync(
      file,
      JSON.stringify({
        manifests: "manifests.yaml",
        data: "data",
        actor: "other-bot",
        upstreams: [fakeUpstream()],
      }),
    );
    const foreign = await finished(start(file, "--run-id", "desk-1"));
    expect(foreign).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("belongs to another principal"),
    });
    expect(await finished(start(file, "--run-id", "no good"))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^error: --run-id: up to 128 letters, .*\n$/),
    });
  });

  it("ends with its client, and reports the calls in progress", async () => {
    const log = join(tempDir("stdio-log"), "calls");
    const { folder, file } = setup({ upstreams: [fakeUpstream({ env: { FAKE_LOG: log } })] });
    const child = start(file, "--run-id", "left-behind");
    await handshake(child);
    write(child, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hang", arguments: {} } });
    await until(() => existsSync(log) && readFileSync(log, "utf8").includes('"hang"'), "the call");
    child.stdin.end();
    expect(await finished(child)).toMatchObject({ code: 0 });
    expect(trail(folder, "left-behind").map(({ event }) => event)).toEqual(["intended", "uncertain"]);
  });

  it("ends on SIGTERM with everything recorded", async () => {
    const log = join(tempDir("stdio-log"), "calls");
    const { folder, file } = setup({ upstreams: [fakeUpstream({ env: { FAKE_LOG: log } })] });
    const child = start(file, "--run-id", "told-to-go");
    await handshake(child);
    write(child, { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "hang", arguments: {} } });
    await until(() => existsSync(log) && readFileSync(log, "utf8").includes('"hang"'), "the call");
    child.kill("SIGTERM");
    expect(await finished(child)).toMatchObject({ code: 0 });
    expect(trail(folder, "told-to-go").map(({ event }) => event)).toEqual(["intended", "uncertain"]);
  });
});

describe("lines", () => {
  it("are read strictly, and answered under their id", async () => {
    const { file } = setup();
    const child = start(file);
    const messages = await handshake(child);
    child.stdin.write(
      '{"jsonrpc":"2.0","id":11,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}\n',
    );
    child.stdin.write(
      '{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"a":9007199254740993}}}\n',
    );
    child.stdin.write("this is not json\n\n");
    child.stdin.write('[{"jsonrpc":"2.0","id":13,"method":"ping"}]\n');
    child.stdin.write('{"jsonrpc":"2.0","id":14,"method":"ping"}\n');
    await until(() => messages.some(({ id }) => id === 14), "the last answer");
    const answer = (id: unknown) => messages.filter((message) => message.id === id);
    expect(answer(11)).toMatchObject([
      { error: { code: -32700, message: expect.stringContaining("duplicate key") } },
    ]);
    expect(answer(12)).toMatchObject([{ error: { code: -32700 } }]);
    expect(answer(null)).toMatchObject([
      { error: { code: -32700 } },
      { error: { code: -32600, message: expect.stringContaining("batches") } },
    ]);
    expect(answer(14)).toMatchObject([{ result: {} }]);
    child.stdin.end();
    await finished(child);
  });

  it("are all that stdout carries", async () => {
    const { file } = setup({ log: { level: "debug" } });
    const child = start(file);
    const lines: string[] = [];
    child.stdout.on("data", (chunk) => lines.push(String(chunk)));
    await handshake(child);
    child.stdin.end();
    await finished(child);
    for (const line of lines.join("").trim().split("\n"))
      expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  });
});

describe("a gateway on stdin", () => {
  it("does not warn of keys that it does not need", async () => {
    const { file } = setup();
    const child = start(file);
    const ended = finished(child);
    await handshake(child);
    child.stdin.end();
    const { code, stderr } = await ended;
    expect([code, stderr.match(/"level":"(?:warn|error)".*/g)]).toEqual([0, null]);
  });
});

describe("a gateway that cannot work", () => {
  it("says why, in one line, and exits 1", async () => {
    const FAKE_TOOLS = JSON.stringify([{ name: "svc.halt", inputSchema: { type: "object" } }]);
    const cases: [Record<string, unknown>, string][] = [
      [{ upstreams: [] }, "no tool servers are configured"],
      [
        { upstreams: [fakeUpstream(), fakeUpstream({ name: "two" })] },
        'upstreams fake and two both offer tool "echo"',
      ],
      [{ upstreams: [fakeUpstream({ env: { FAKE_TOOLS } })] }, 'begins with "svc."'],
      [{ listen: { port: 0 } }, "auth.keys"],
      [{ upstream: [] }, "upstream"],
    ];
    const refused = async ([config, why]: (typeof cases)[number]) => {
      const { file } = setup(config);
      const { code, stderr, stdout } = await finished(start(file));
      expect([why, code, stdout]).toEqual([why, 1, ""]);
      expect(stderr).toContain(why);
      expect(stderr).not.toMatch(/\n\s+at /);
    };
    await Promise.all(cases.map(refused));
    const { file } = setup({ listen: { port: 0 }, auth: { keys: "keys.json" } });
    expect((await finished(start(file, "--run-id", "x"))).stderr).toContain("Svc-Run-Id");
  });
});

function start(file: string, ...more: string[]): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, args(file, ...more), { stdio: "pipe" });
}

async function finished(child: ChildProcessWithoutNullStreams) {
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  const [code] = (await once(child, "exit")) as [number | null];
  return { code, stdout, stderr };
}

function write(child: ChildProcessWithoutNullStreams, message: object): void {
  child.stdin.write(`${JSON.stringify(message)}\n`);
}

async function handshake(child: ChildProcessWithoutNullStreams) {
  const messages: Record<string, unknown>[] = [];
  let rest = "";
  child.stdout.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) messages.push(JSON.parse(line));
  });
  write(child, {
    jsonrpc: "2.0",
    id: "hello",
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } },
  });
  await until(() => messages.some(({ id }) => id === "hello"), "the handshake");
  write(child, { jsonrpc: "2.0", method: "notifications/initialized" });
  return messages;
}
