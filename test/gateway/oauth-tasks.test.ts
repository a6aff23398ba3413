/** Consent for calls that run as tasks, in both revisions, and what a client gets that cannot wait for it. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema, CreateTaskResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { verifies } from "../support/verifies.ts";
import { consent, consentGateway, signedIn } from "./support/consent.ts";
import type { AnyResult, GatewayTest } from "./support/gateway.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";
import { endedTask, requestWithTasks } from "./support/task-requests.ts";

const KEYS = ["older", "newer", "slow", "declines", "quits"].map((name) => ({ name, role: "agent" }));
const LINK = expect.stringContaining("/console/upstreams/connect/");
const WHOAMI = { name: "whoami", arguments: {} };
const CAN_SHOW = { elicitation: { url: {} } };

let issuer: AuthorizationServer;
let up: OAuthUpstream;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  up = await oauthUpstream(issuer.url);
  g = await consentGateway(up.url, { keys: KEYS, config: { approvals: { wait: "20s" } } });
});

const clients: Client[] = [];
afterAll(() => Promise.allSettled(clients.map((client) => client.close())));

/** A client of revision 2025-11-25, which has its own tasks. */
async function older(key: string): Promise<Client> {
  const client = new Client({ name: "tasks", version: "1" }, { capabilities: {} });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${g.url}/mcp`), { requestInit }));
  return client;
}

const caller = (key: string) => ({ url: g.url, key, capabilities: CAN_SHOW });
const begin = (key: string) => requestWithTasks(caller(key), "tools/call", WHOAMI);
const get = (key: string, taskId: string) => requestWithTasks(caller(key), "tasks/get", { taskId });

describe("a task of 2025-11-25", () => {
  it("is refused with the link to open, and runs after the consent", async () => {
    verifies("beyond.upstream-oauth.url-required");
    const client = await older("older");
    const ask = () =>
      client.request({ method: "tools/call", params: WHOAMI }, CreateTaskResultSchema, {
        task: { ttl: 60_000 },
      });
    const refused = (await ask().then(
      () => expect.fail("the call was not refused"),
      (error: unknown) => error,
    )) as AnyResult;
    expect(refused).toMatchObject({
      code: -32042,
      data: { elicitations: [{ mode: "url", url: LINK, elicitationId: expect.any(String) }] },
    });
    expect((await client.experimental.tasks.listTasks()).tasks).toEqual([]);
    expect([up.tokens, await g.events()]).toEqual([[], []]);
    await consent(await signedIn(g, "admin"), issuer, refused.data.elicitations[0].url, "ann");
    await client.listTools();
    const { task } = await ask();
    const result = await client.experimental.tasks.getTaskResult(task.taskId, CallToolResultSchema);
    expect(result.content).toEqual([{ type: "text", text: "ann" }]);
  });
});

describe("a task of 2026-07-28", () => {
  it("asks to open the link, waits for the consent, and makes the call", async () => {
    verifies("beyond.upstream-oauth.task");
    const begun = await begin("newer");
    expect(begun).toMatchObject({ resultType: "task", status: "input_required" });
    const { inputRequests } = await get("newer", begun.taskId);
    expect(inputRequests).toMatchObject({
      connect: { method: "elicitation/create", params: { mode: "url", url: LINK } },
    });
    // Opening the page decides nothing.
    await requestWithTasks(caller("newer"), "tasks/update", {
      taskId: begun.taskId,
      inputResponses: { connect: { action: "accept" } },
    });
    expect(await get("newer", begun.taskId)).toMatchObject({ status: "working" });
    await consent(await signedIn(g, "admin"), issuer, inputRequests.connect.params.url, "bea");
    expect(await endedTask(caller("newer"), begun.taskId)).toMatchObject({
      status: "completed",
      result: { content: [{ text: "bea" }] },
    });
  });

  it("ends without a call if the person declines, the client gives up, or the time passes", async () => {
    const declined = await begin("declines");
    await requestWithTasks(caller("declines"), "tasks/update", {
      taskId: declined.taskId,
      inputResponses: { connect: { action: "decline" } },
    });
    expect(await endedTask(caller("declines"), declined.taskId)).toMatchObject({ status: "cancelled" });
    const quit = await begin("quits");
    await requestWithTasks(caller("quits"), "tasks/cancel", { taskId: quit.taskId });
    expect(await endedTask(caller("quits"), quit.taskId)).toMatchObject({ status: "cancelled" });
    const short = await consentGateway(up.url, { keys: KEYS, config: { approvals: { wait: "1s" } } });
    const at = { ...caller("slow"), url: short.url };
    const slow = await requestWithTasks(at, "tools/call", WHOAMI);
    expect(await endedTask(at, slow.taskId)).toMatchObject({
      status: "completed",
      result: { isError: true, _meta: { "svc/connect_url": LINK } },
    });
    expect((await short.trail()).map(({ event }) => event)).toEqual([]);
  });
});
