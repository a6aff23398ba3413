/** Calls as tasks, with the client that has them as revision 2025-11-25 does. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateTaskResultSchema,
  ElicitRequestSchema,
  type Task,
  TaskStatusNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import {
  call,
  FAKE_MANIFESTS,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  toolNames,
  until,
} from "./support/gateway.ts";

const POLICY =
  "version: 1\nrules: [{id: ask, match: {tool: create}, action: require_approval, reason: a person must look}]\n";
const CONFIG = {
  console: "login",
  console_url: "https://gov.example.com",
  approvals: { wait: "20s" },
};
const log = join(tempDir("tasks"), "seen.jsonl");
const made = (n: number) =>
  readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ method, params }) => method === "tools/call" && params.arguments.n === n).length;

const DEMANDING = {
  name: "only_as_task",
  inputSchema: { type: "object" },
  execution: { taskSupport: "required" },
};
const gateway = (config: Record<string, unknown>) =>
  testGateway({
    upstreams: [fakeUpstream({ env: { FAKE_LOG: log, FAKE_TOOLS: JSON.stringify([DEMANDING]) } })],
    manifests: `${FAKE_MANIFESTS}- {tool: only_as_task, effect: idempotent, permission: fake.write}\n`,
    policy: POLICY,
    config,
  });

let g: GatewayTest;
beforeAll(async () => {
  g = await gateway(CONFIG);
});

const clients: Client[] = [];
afterAll(() => Promise.allSettled(clients.map((client) => client.close())));

async function connect(key = "agent", from = g, capabilities = {}): Promise<Client> {
  const client = new Client({ name: "tasks", version: "1" }, { capabilities });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${from.url}/mcp`), { requestInit }));
  return client;
}

async function begin(client: Client, n: number, options = {}): Promise<Task> {
  const request = { method: "tools/call" as const, params: { name: "create", arguments: { n } } };
  const { task } = await client.request(request, CreateTaskResultSchema, {
    task: { ttl: 60_000 },
    ...options,
  });
  return task;
}

const resultOf = (client: Client, { taskId }: Task) =>
  client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);

/** The request that the task waits for, once the task names it. */
async function requestOf(client: Client, { taskId }: Task): Promise<string> {
  let found: string | undefined;
  await until(async () => {
    const { statusMessage } = await client.experimental.tasks.getTask(taskId);
    found = /request (apr_[^)]+)/.exec(statusMessage!)?.[1];
    return found !== undefined;
  }, "its request");
  return found!;
}

const decide = async (verb: "approve" | "deny", approval_id: string, from = g) =>
  call(await from.connect("approver", { path: "/operator/mcp" }), `svc.${verb}_action`, { approval_id });

describe("a call as a task of 2025-11-25", () => {
  it(`is made once it is approved, and its result is fetched ${verifies("beyond.wait.task-older")}`, async () => {
    const client = await connect();
    expect(client.getServerCapabilities()!.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === "create")!.execution).toEqual({ taskSupport: "optional" });
    const statuses: string[] = [];
    client.setNotificationHandler(TaskStatusNotificationSchema, ({ params }) => {
      statuses.push(params.status);
    });
    const told: unknown[] = [];
    const task = await begin(client, 1, { onprogress: (progress: unknown) => void told.push(progress) });
    expect(task).toMatchObject({ status: "working", ttl: 620_000, pollInterval: 1_000 });
    const approval_id = await requestOf(client, task);
    await until(() => told.length > 0, "progress");
    const waiting = resultOf(client, task);
    expect(made(1)).toBe(0);
    await decide("approve", approval_id);
    expect((await waiting)._meta).toMatchObject({
      "svc/decision": "allow",
      "io.modelcontextprotocol/related-task": { taskId: task.taskId },
    });
    expect(await resultOf(client, task)).toEqual(await waiting);
    expect((await client.experimental.tasks.getTask(task.taskId)).status).toBe("completed");
    expect(made(1)).toBe(1);
    await until(() => statuses.includes("completed"), "the notification");
    await expect(client.experimental.tasks.cancelTask(task.taskId)).rejects.toMatchObject({ code: -32602 });
  });

  it(`that nothing holds up is a task too, and one without \`task\` is answered as before ${verifies("beyond.wait.task-older")}`, async () => {
    const client = await connect();
    await client.listTools();
    const types: string[] = [];
    for await (const message of client.experimental.tasks.callToolStream({ name: "echo", arguments: {} })) {
      types.push(message.type);
      if (message.type === "result")
        expect(message.result).toMatchObject({ _meta: { "svc/decision": "allow" } });
    }
    expect([types[0], types.at(-1)]).toEqual(["taskCreated", "result"]);
    const plain = await client.callTool({ name: "create", arguments: { n: 2 } });
    expect(plain).toMatchObject({ isError: true, _meta: { "svc/decision": "block" } });
  });

  it(`is refused as its result where a person denies it ${verifies("beyond.wait.task-older")}`, async () => {
    const client = await connect();
    const task = await begin(client, 3);
    const approval_id = await requestOf(client, task);
    await decide("deny", approval_id);
    const refusal = `request ${approval_id} was denied; do not repeat the call`;
    expect(await resultOf(client, task)).toMatchObject({ isError: true, content: [{ text: refusal }] });
    expect(await client.experimental.tasks.getTask(task.taskId)).toMatchObject({
      status: "failed",
      statusMessage: refusal,
    });
    expect(made(3)).toBe(0);
  });

  it(`withdraws its request when its client may give up ${verifies("beyond.wait.task-cancel")}`, async () => {
    const client = await connect();
    const task = await begin(client, 4);
    const approval_id = await requestOf(client, task);
    const waiting = resultOf(client, task);
    expect((await client.experimental.tasks.cancelTask(task.taskId)).status).toBe("cancelled");
    await expect(waiting).rejects.toThrow(/the task was cancelled and the call not made/);
    expect(await g.service.core.store.get("approvals", approval_id)).toMatchObject({
      status: "expired",
      note: "withdrawn",
    });
    expect(made(4)).toBe(0);
  });

  it(`is nobody else's, and is listed to its own ${verifies("beyond.wait.task-own")}`, async () => {
    const [client, other] = [await connect(), await connect("agent2")];
    const task = await begin(client, 5);
    const { tasks } = other.experimental;
    for (const asked of [
      tasks.getTask(task.taskId),
      tasks.cancelTask(task.taskId),
      tasks.getTaskResult(task.taskId, CallToolResultSchema),
      tasks.listTasks("nowhere"),
    ])
      await expect(asked).rejects.toMatchObject({ code: -32602 });
    expect((await tasks.listTasks()).tasks).toEqual([]);
    // Another session of the same key finds it.
    const mine = await (await connect()).experimental.tasks.listTasks();
    expect(mine.tasks.map(({ taskId }) => taskId)).toContain(task.taskId);
    await client.experimental.tasks.cancelTask(task.taskId);
  });

  it(`shows the card where its client can, whose answer decides nothing ${verifies("beyond.wait.task-older")}`, async () => {
    const client = await connect("agent", g, { elicitation: { url: {} } });
    const shown: unknown[] = [];
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
      shown.push(params);
      return { action: "accept" };
    });
    const task = await begin(client, 6);
    const approval_id = await requestOf(client, task);
    const status = async () => (await client.experimental.tasks.getTask(task.taskId)).status;
    expect(await status()).toBe("input_required");
    const waiting = resultOf(client, task);
    await until(async () => (await status()) === "working", "its answer");
    expect(shown).toEqual([
      expect.objectContaining({
        mode: "url",
        url: `https://gov.example.com/console/approvals/${approval_id}`,
        _meta: { "io.modelcontextprotocol/related-task": { taskId: task.taskId } },
      }),
    ]);
    expect(made(6)).toBe(0);
    await decide("approve", approval_id);
    expect((await waiting)._meta!["svc/decision"]).toBe("allow");
    expect(made(6)).toBe(1);
  });

  it(`is not to be had without \`approvals.wait\`, in older revisions, or for our own tools ${verifies("beyond.wait.task-declared")}`, async () => {
    const ours = { method: "tools/call" as const, params: { name: "svc.await_approval", arguments: {} } };
    await expect((await connect()).request(ours, CreateTaskResultSchema, { task: {} })).rejects.toMatchObject(
      { code: -32601 },
    );
    const body = (revision: string) =>
      JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: revision, capabilities: {}, clientInfo: { name: "c", version: "1" } },
      });
    const declared = async (revision: string, url = g.url) => {
      const answer = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          authorization: "Bearer agent",
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
        },
        body: body(revision),
      });
      const { result } = (await answer.json()) as { result: { capabilities: Record<string, unknown> } };
      return "tasks" in result.capabilities;
    };
    const without = await gateway({});
    expect([
      await declared("2025-11-25"),
      await declared("2025-06-18"),
      await declared("2025-11-25", without.url),
    ]).toEqual([true, false, false]);
    const client = await connect("agent", without);
    await expect(begin(client, 7)).rejects.toMatchObject({ code: -32602 });
    const { tools } = await client.listTools();
    expect(tools.every(({ execution }) => execution === undefined)).toBe(true);
    expect(tools.map(({ name }) => name)).not.toContain(DEMANDING.name);
    await without.running.stop();
    expect(made(7)).toBe(0);
  });
});

describe("a tool that demands a task", () => {
  const { name } = DEMANDING;

  it(`is listed to clients with tasks, in both revisions, and to no other ${verifies("beyond.listing.task")}`, async () => {
    const older = (await (await connect()).listTools()).tools.find((tool) => tool.name === name);
    expect(older).toEqual(DEMANDING);
    const newer = async (capabilities: object) =>
      toolNames(await g.connect("agent", { mode: "modern", client: { capabilities } }));
    expect(await newer({ extensions: { "io.modelcontextprotocol/tasks": {} } })).toContain(name);
    expect(await newer({})).not.toContain(name);
  });

  it(`runs as one at its upstream, whose result is the call's ${verifies("beyond.listing.task-made")}`, async () => {
    const client = await connect();
    await client.listTools();
    const begin = async (args: object) =>
      (
        await client.request(
          { method: "tools/call", params: { name, arguments: { ...args } } },
          CreateTaskResultSchema,
          { task: {} },
        )
      ).task;
    const task = await begin({});
    expect(await resultOf(client, task)).toMatchObject({
      content: [{ text: `fake: ${name}` }],
      _meta: {
        "svc/decision": "allow",
        "io.modelcontextprotocol/related-task": { taskId: task.taskId },
      },
    });
    // Nobody knows what a task did that its server knows no more.
    expect(await resultOf(client, await begin({ lost: true }))).toMatchObject({
      isError: true,
      structuredContent: { status: "uncertain" },
    });
    const plain = { method: "tools/call" as const, params: { name, arguments: {} } };
    await expect(client.request(plain, CallToolResultSchema)).rejects.toMatchObject({ code: -32601 });
  });
});
