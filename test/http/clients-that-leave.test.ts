/** A request ends with its client, and a connection that carries many of them keeps nothing of any. */
import { Agent, request } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { type TestServer, testServer } from "../support/server.ts";

/** As heavy as a policy may be on a text that suits it: minutes of work for a few hundred calls. */
const HEAVY = `version: 1\nrules:\n${Array.from(
  { length: 60 },
  (_, i) =>
    `  - {id: r${i}, action: deny, when: [{path: $args.text, op: matches, value: "a[ab]{${800 + i}}[cd]"}]}`,
).join("\n")}\n`;
const TANGLED = Array.from({ length: 6_000 }, (_, i) => ((i * 7_919) % 13 < 6 ? "a" : "b")).join("");
const ASK =
  "version: 1\nrules: [{id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}]\n";

let s: TestServer;
let port = 0;
const sockets: Socket[] = [];

beforeAll(async () => {
  s = await testServer({ policy: ASK, config: "capture: {enabled: true}\n" });
  s.http.server.on("connection", (socket: Socket) => void sockets.push(socket));
  await s.http.listen({ host: "127.0.0.1", port: 0 });
  port = (s.http.server.address() as AddressInfo).port;
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["mail.send", "crm.read"] });
});

function send(key: string, method: string, path: string, body?: unknown, agent?: Agent) {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const sent = request({
    port,
    method,
    path,
    ...(agent === undefined ? { agent: false as const } : { agent }),
    headers: {
      authorization: `Bearer ${key}`,
      ...(text === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(text) }),
    },
  });
  sent.end(text);
  const done = new Promise<number>((resolve, reject) => {
    sent.once("error", reject);
    sent.once("response", (response) => response.resume().once("end", () => resolve(response.statusCode!)));
  });
  return { sent, done };
}

async function waitingRequest(): Promise<string> {
  const asked = await s.call("agent", "POST", "/v1/runs/r/intents", {
    tool: "mail.send",
    args: {},
    reason: "r",
  });
  return /request (\S+) is pending/.exec(asked.body.reasons.join())![1]!;
}

describe("a connection that is kept alive", () => {
  it("has as many listeners after its requests as before, of any kind", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const id = await waitingRequest();
    await send("agent", "GET", `/v1/approvals/${id}?wait=0`, undefined, agent).done;
    const socket = sockets.at(-1)!;
    const listeners = () => socket.eventNames().reduce((sum, name) => sum + socket.listenerCount(name), 0);
    await expect.poll(() => socket.listenerCount("close")).toBeLessThan(5);
    const before = listeners();
    for (let i = 0; i < 12; i++)
      await send("agent", "GET", `/v1/approvals/${id}?wait=0`, undefined, agent).done;
    const given: Record<string, string> = { id: "r", n: "0", index: "99", tool: "crm.get", version: "1" };
    for (const { method, path, body } of HTTP_TABLE) {
      const where = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => given[name]!);
      await send("operator", method, where, body ? {} : undefined, agent).done;
    }
    await expect.poll(listeners).toBe(before);
    expect(sockets.filter((one) => !one.destroyed)).toContain(socket);
    agent.destroy();
  });
});

describe("a client that leaves", () => {
  it("ends its long poll", async () => {
    const id = await waitingRequest();
    const { store } = s.app.core;
    const watched: AbortSignal[] = [];
    const changed = store.changed.bind(store);
    store.changed = (signal) => {
      watched.push(signal);
      return changed(signal);
    };
    const { sent, done } = send("agent", "GET", `/v1/approvals/${id}?wait=60`);
    await expect.poll(() => watched.length).toBeGreaterThan(0);
    sent.destroy();
    await expect(done).rejects.toThrow();
    await expect.poll(() => watched.every((signal) => signal.aborted)).toBe(true);
    store.changed = changed;
  });

  it("ends its simulation, whether it is under way or waits for its turn", { timeout: 120_000 }, async () => {
    for (let n = 0; n < 200; n++)
      await s.call("agent", "POST", "/v1/runs/r/intents", {
        tool: "crm.get",
        args: { n, text: TANGLED },
        reason: "r",
      });
    await s.app.capture!.drain(30_000);
    let arrived = 0;
    s.http.server.on("request", () => void arrived++);
    const stopped = () => s.logged.filter((line) => line.includes("the simulation was stopped")).length;
    // Two run, sixteen wait, and there isn't room for one more.
    const abandoned = Array.from({ length: 18 }, () =>
      send("operator", "POST", "/v1/simulate", { policy: HEAVY }),
    );
    await expect.poll(() => arrived, { timeout: 30_000 }).toBe(18);
    for (const { sent, done } of abandoned) {
      done.catch(() => {});
      sent.destroy();
    }
    await expect.poll(stopped, { timeout: 60_000 }).toBe(18);
    expect((await s.call("operator", "POST", "/v1/simulate", {})).status).toBe(200);
  });
});
