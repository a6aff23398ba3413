/** Calls that wait for a person by the means of their client's own revision. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, it } from "vitest";
import { mintState } from "../../src/gateway/session/request-state.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import {
  type AnyResult,
  ask,
  call,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  until,
} from "./support/gateway.ts";
import { endedTask, requestWithTasks } from "./support/task-requests.ts";

const ASK =
  "version: 1\nrules: [{id: ask, match: {tool: create}, action: require_approval, reason: a person must look}]\n";
const CONSOLE = { console: "login", console_url: "https://gov.example.com" };
const log = join(tempDir("waiting"), "seen.jsonl");
const created = (n: number) =>
  readFileSync(log, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ method, params }) => method === "tools/call" && params.arguments.n === n).length;

const gateway = (config: Record<string, unknown>, store?: MemoryStore) =>
  testGateway({
    upstreams: [fakeUpstream({ env: { FAKE_LOG: log } })],
    policy: ASK,
    config,
    ...(store === undefined ? {} : { store }),
  });

let g: GatewayTest;
beforeAll(async () => {
  g = await gateway({ ...CONSOLE, approvals: { wait: "20s" } });
});

const URLS = { capabilities: { elicitation: { url: {} } } };
const modern = (key = "agent", from = g) =>
  from.connect(key, { mode: "modern", client: { ...URLS, inputRequired: { autoFulfill: false } } });
const decide = async (verb: "approve" | "deny", approval_id: string, from = g) =>
  call(await from.connect("approver", { path: "/operator/mcp" }), `svc.${verb}_action`, { approval_id });
const openRequest = async (n: number, from = g): Promise<string> => {
  let found: string | undefined;
  await until(async () => {
    const rows = await from.service.core.store.list("approvals", { tag: "pending", limit: 500 });
    found = rows.at(-1)?.key;
    return found !== undefined;
  }, `a request for ${n}`);
  return found!;
};
const RAW = { allowInputRequired: true };
const begin = (client: Client, n: number): Promise<AnyResult> =>
  call(client, "create", { n }, undefined, RAW);
const again = (client: Client, n: number, { requestState }: AnyResult, action = "accept", options = {}) =>
  ask(
    client,
    "tools/call",
    { name: "create", arguments: { n }, requestState, inputResponses: { approval: { action } } },
    { ...RAW, ...options },
  );

describe("a client of 2026-07-28", () => {
  it(`is asked to show the card, and its call is made once it is approved ${verifies("beyond.wait.input-required", "beyond.wait.only-people", "beyond.wait.progress", "beyond.wait.state-once")}`, async () => {
    const client = await modern();
    const first = await begin(client, 1);
    const approval_id = await openRequest(1);
    expect(first).toMatchObject({
      resultType: "input_required",
      inputRequests: {
        approval: {
          method: "elicitation/create",
          params: { mode: "url", url: `https://gov.example.com/console/approvals/${approval_id}` },
        },
      },
      requestState: expect.any(String),
    });
    const told: unknown[] = [];
    // It accepts at once, like a client that never asks its person. The call still waits.
    const second = again(client, 1, first, "accept", {
      onprogress: (progress: unknown) => void told.push(progress),
    });
    await until(() => told.length > 0, "progress");
    expect(created(1)).toBe(0);
    await decide("approve", approval_id);
    expect((await second)._meta["svc/decision"]).toBe("allow");
    expect(created(1)).toBe(1);
    await expect(again(client, 1, first)).rejects.toThrow(/requestState: it was used before/);
    expect(created(1)).toBe(1);
  });

  it(`learns of a denial, and of requests that stay open when its person declines ${verifies("beyond.wait.denied")}`, async () => {
    const client = await modern();
    const first = await begin(client, 2);
    const approval_id = await openRequest(2);
    const declined = await again(client, 2, first, "decline");
    expect(declined).toMatchObject({ isError: true, _meta: { "svc/approval_id": approval_id } });
    const later = await begin(client, 2);
    const denied = again(client, 2, later);
    await decide("deny", approval_id);
    expect(await denied).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining(`request ${approval_id} was denied`) }],
      _meta: { "svc/decision": "block", "svc/approval_id": approval_id },
    });
    expect(created(2)).toBe(0);
    const open = await g.service.core.store.count("approvals", { tag: "pending" });
    expect(open).toBe(0);
  });

  it(`cannot use a state that is not its own, for this call, as it was given ${verifies("beyond.wait.state-bound")}`, async () => {
    const client = await modern();
    const first = await begin(client, 3);
    const { requestState } = first;
    const [head, body, mac] = requestState.split(".");
    const changed = `${head}.${Buffer.from(`${Buffer.from(body, "base64url")} `).toString("base64url")}.${mac}`;
    for (const state of [changed, `${head}.${body}.${"0".repeat(64)}`, `${head}.x`, `${requestState}.x`])
      await expect(again(client, 3, { requestState: state })).rejects.toThrow(/requestState/);
    await expect(again(client, 4, first)).rejects.toThrow(/requestState: it does not belong to this call/);
    await expect(again(await modern("agent2"), 3, first)).rejects.toThrow(/it does not belong to this call/);
    const { core } = g.service;
    const call = { principal: { id: "key:agent" } as never, tool: "create", args: { n: 3 } };
    const past = { ...g.service, core: { ...core, env: { ...core.env, now: () => 0, uuid: () => "x" } } };
    const late = mintState(past as never, call, { run_id: "r", approval_id: "a" });
    await expect(again(client, 3, { requestState: late })).rejects.toThrow(/requestState: it has expired/);
    expect(created(3)).toBe(0);
  });
});

const withTasks = (method: string, params: AnyResult, key = "agent", capabilities = {}): Promise<AnyResult> =>
  requestWithTasks({ url: g.url, key, capabilities }, method, params);

describe("a client that declares tasks", () => {
  const beginTask = (n: number, more = {}) =>
    withTasks("tools/call", { name: "create", arguments: { n } }, "agent", more);
  const get = (taskId: string, key?: string) => withTasks("tasks/get", { taskId }, key);
  const ended = (taskId: string) => endedTask({ url: g.url }, taskId);

  it(`gets one for a call that waits, which is made once it is approved ${verifies("beyond.wait.task")}`, async () => {
    const { capabilities } = await withTasks("server/discover", {});
    expect(capabilities.extensions).toEqual({ "io.modelcontextprotocol/tasks": {} });
    const begun = await beginTask(20);
    expect(begun).toMatchObject({ resultType: "task", status: "working", taskId: expect.any(String) });
    const approval_id = await openRequest(20);
    expect(begun.statusMessage).toContain(approval_id);
    expect(await get(begun.taskId)).toMatchObject({ resultType: "complete", status: "working" });
    await expect(get(begun.taskId, "agent2")).rejects.toThrow(/-32602 tasks\/get: unknown task/);
    expect(created(20)).toBe(0);
    await decide("approve", approval_id);
    const task = await ended(begun.taskId);
    expect(task).toMatchObject({ status: "completed", result: { _meta: { "svc/decision": "allow" } } });
    expect(created(20)).toBe(1);
  });

  it(`learns of a denial, shows the card where it can, and may give up ${verifies("beyond.wait.task")}`, async () => {
    const shown = await beginTask(21, URLS.capabilities);
    const denied = await openRequest(21);
    expect(shown.status).toBe("input_required");
    expect((await get(shown.taskId)).inputRequests.approval.params.url).toContain(denied);
    // It says that its person has seen the card: that decides nothing.
    await withTasks("tasks/update", {
      taskId: shown.taskId,
      inputResponses: { approval: { action: "accept" } },
    });
    expect((await get(shown.taskId)).status).toBe("working");
    await decide("deny", denied);
    expect(await ended(shown.taskId)).toMatchObject({
      status: "completed",
      result: { isError: true, content: [{ text: expect.stringContaining("was denied") }] },
    });
    const { taskId } = await beginTask(22);
    const open = await openRequest(22);
    await withTasks("tasks/cancel", { taskId });
    expect((await ended(taskId)).status).toBe("cancelled");
    const taken = await g.service.core.store.get("approvals", open);
    expect(taken).toMatchObject({ status: "expired", note: "withdrawn" });
    const declined = await beginTask(23, URLS.capabilities);
    const stays = await openRequest(23);
    await withTasks("tasks/update", {
      taskId: declined.taskId,
      inputResponses: { approval: { action: "decline" } },
    });
    expect((await ended(declined.taskId)).status).toBe("cancelled");
    expect((await g.service.core.store.get("approvals", stays))!.status).toBe("pending");
    expect([created(21), created(22), created(23)]).toEqual([0, 0, 0]);
  });
});

describe("a client of 2025-11-25", () => {
  it(`is asked while its call is held ${verifies("beyond.wait.elicitation")}`, async () => {
    const asked: AnyResult[] = [];
    const client = await g.connect("agent", {
      client: URLS,
      prepare: (one) =>
        one.setRequestHandler("elicitation/create", async ({ params }) => {
          asked.push(params);
          return { action: "accept" };
        }),
    });
    const waiting = begin(client, 5);
    await until(() => asked.length > 0, "the question");
    const approval_id = asked[0].elicitationId;
    expect(asked[0]).toMatchObject({
      mode: "url",
      url: `https://gov.example.com/console/approvals/${approval_id}`,
    });
    expect(created(5)).toBe(0);
    await decide("approve", approval_id);
    expect((await waiting)._meta["svc/decision"]).toBe("allow");
    expect(created(5)).toBe(1);
  });
});

describe("any other", () => {
  it(`gets the answer of before ${verifies("beyond.wait.otherwise", "beyond.wait.url")}`, async () => {
    const plain = await begin(await g.connect("agent"), 6);
    expect(plain).toMatchObject({ isError: true, _meta: { "svc/decision": "block" } });
    for (const config of [
      CONSOLE,
      { approvals: { wait: "5s" } },
      { approvals: { wait: "5s" }, console: "open", console_url: "http://127.0.0.1:1" },
    ]) {
      const other = await gateway(config);
      expect(await begin(await modern("agent", other), 7)).toMatchObject({ isError: true });
      await other.running.stop();
    }
  });
});

describe("a gateway that ends while a call waits", () => {
  it(`leaves a call that another carries out once ${verifies("beyond.wait.killed")}`, async () => {
    const store = new MemoryStore();
    const close = store.close.bind(store);
    store.close = async () => {};
    const config = { ...CONSOLE, approvals: { wait: "20s" } };
    const first = await gateway(config, store);
    const begun = await begin(await modern("agent", first), 8);
    const approval_id = await openRequest(8, first);
    await first.running.stop();
    const second = await gateway(config, store);
    await decide("approve", approval_id, second);
    const client = await modern("agent", second);
    const both = await Promise.allSettled([again(client, 8, begun), again(client, 8, begun)]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(created(8)).toBe(1);
    await second.running.stop();
    await close();
  });
});
