/** `GET /v1/stream`: many operations over one WebSocket, spoken to by the library `ws`. */
import { request as httpRequest } from "node:http";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import WebSocket from "ws";
import { type TestServer, testServer } from "../support/server.ts";
import { aMoment, until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
let url: string;
beforeAll(async () => {
  s = await testServer({
    config:
      "listen: {allowed_origins: [https://app.example]}\nquotas: [{match: {actor: limited}, requests_per_second: 1, burst: 3}]\n",
    keys: [
      { name: "limited", role: "agent" },
      { name: "short-lived", role: "agent" },
    ],
  });
  url = await s.http.listen({ host: "127.0.0.1", port: 0 });
});

const opened: WebSocket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.terminate();
});

interface Stream {
  socket: WebSocket;
  answers: { id: unknown; status: number; body: Record<string, unknown> }[];
  send(message: object | string): void;
  ask(message: { id: unknown } & Record<string, unknown>): Promise<Stream["answers"][number]>;
  closed: Promise<number>;
}

async function open(key = "agent", at = url): Promise<Stream> {
  const socket = new WebSocket(`${at.replace("http", "ws")}/v1/stream`, {
    headers: { authorization: `Bearer ${key}` },
  });
  opened.push(socket);
  const answers: Stream["answers"] = [];
  socket.on("message", (data) => answers.push(JSON.parse(String(data))));
  const closed = new Promise<number>((resolve) => socket.once("close", (code) => resolve(code)));
  await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  const send = (message: object | string) =>
    socket.send(typeof message === "string" ? message : JSON.stringify(message));
  const ask: Stream["ask"] = async (message) => {
    const before = answers.length;
    const answer = () => answers.slice(before).find(({ id }) => id === message.id);
    send(message);
    await until(answer, `the answer to ${String(message.id)}`);
    return answer()!;
  };
  return { socket, answers, send, ask, closed };
}

/** The status and body of an upgrade that was refused. */
function refusal(headers: Record<string, string>, path = "/v1/stream"): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${url.replace("http", "ws")}${path}`, { headers });
    socket.once("open", () => {
      socket.terminate();
      reject(new Error("it opened"));
    });
    socket.once("error", () => {});
    socket.once("unexpected-response", (_, response) => {
      let text = "";
      response
        .on("data", (chunk) => (text += chunk))
        .on("end", () => {
          const { error } = JSON.parse(text) as { error: string };
          resolve([response.statusCode!, error]);
        });
    });
  });
}

const agent = { authorization: "Bearer agent" };

describe("opening a stream", () => {
  it("takes the credential from the Authorization header alone", async () => {
    verifies("beyond.socket.credential");
    expect((await refusal({}))[0]).toBe(401);
    expect((await refusal({ authorization: "Bearer wrong" }))[0]).toBe(401);
    expect(
      (await refusal({ cookie: "authorization=Bearer agent", "sec-websocket-protocol": "agent" }))[0],
    ).toBe(401);
    expect((await refusal({}, "/v1/stream?authorization=Bearer%20agent"))[0]).toBe(401);
    expect(await refusal(agent, "/v1/stream?x=1")).toEqual([
      400,
      "/v1/stream takes no query; send the credential as a header",
    ]);
  });

  it("refuses origins that are not allowed", async () => {
    verifies("beyond.socket.origin");
    expect(await refusal({ ...agent, origin: "https://evil.example" })).toEqual([
      403,
      "this Origin is not allowed",
    ]);
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`, {
      headers: { ...agent, origin: "https://app.example" },
    });
    opened.push(socket);
    await new Promise((resolve, reject) => socket.once("open", resolve).once("error", reject));
  });

  it("leaves requests for other protocols and other paths as they were", async () => {
    verifies("beyond.socket.other-upgrades");
    const get = (path: string, upgrade: string) =>
      new Promise<number>((resolve, reject) => {
        const asked = httpRequest(
          `${url}${path}`,
          { headers: { connection: "Upgrade", upgrade } },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode!);
          },
        );
        asked.on("error", reject).end();
      });
    expect(await get("/healthz", "h2c")).toBe(200);
    expect(await get("/v1/runs", "websocket")).toBe(401);
    expect((await s.call("agent", "GET", "/v1/stream")).status).toBe(400);
  });
});

describe("a message", () => {
  it("is answered as the HTTP route answers, by its operationId", async () => {
    verifies("beyond.socket.message");
    const stream = await open();
    const params = { id: "by-stream" };
    const run = { run_id: "by-stream", permissions: ["crm.write"] };
    expect(await stream.ask({ id: 1, operation: "open_run", body: run })).toMatchObject({
      id: 1,
      status: 201,
    });
    const args = { tool: "crm.create", args: { name: "ann" }, reason: "r" };
    const asked = await stream.ask({ id: "two", operation: "intent", params, body: args });
    expect(asked).toEqual({ id: "two", status: 200, body: { decision: "allow", step: 0 } });
    const reported = await stream.ask({
      id: 3,
      operation: "outcome",
      params: { ...params, n: 0 },
      body: { status: "succeeded", result: { id: "c1" } },
    });
    expect(reported.body).toEqual({ step: 0, status: "succeeded" });
    const read = await stream.ask({ id: 4, operation: "get_run", params });
    const { body } = await s.call("agent", "GET", "/v1/runs/by-stream");
    expect(read.body).toEqual(body);
  });

  it("gets the route's errors, roles and validation messages", async () => {
    verifies("beyond.socket.errors");
    const stream = await open();
    const same = async (message: Record<string, unknown>, path: string) => {
      const { status, body } = await s.call("agent", "GET", path);
      expect(await stream.ask({ id: path, ...message })).toEqual({ id: path, status, body });
      return status;
    };
    expect(await same({ operation: "get_run", params: { id: "none" } }, "/v1/runs/none")).toBe(404);
    expect(await same({ operation: "list_runs", params: { limit: "x" } }, "/v1/runs?limit=x")).toBe(400);
    for (const name of ["constructor", "toString", "valueOf"])
      expect(await same({ operation: "list_runs", params: { [name]: "x" } }, `/v1/runs?${name}=x`)).toBe(400);
    expect(await same({ operation: "list_keys" }, "/v1/keys")).toBe(403);
    expect(await stream.ask({ id: 9, operation: "nothing" })).toMatchObject({ status: 404 });
  });

  it("with an idempotency key is carried out once", async () => {
    verifies("beyond.socket.idempotency");
    const stream = await open();
    await stream.ask({ id: 0, operation: "open_run", body: { run_id: "once", permissions: ["crm.write"] } });
    const intent = {
      operation: "intent",
      params: { id: "once" },
      body: { tool: "crm.create", args: {}, reason: "r" },
      idempotency_key: "k",
    };
    const first = await stream.ask({ id: 1, ...intent });
    expect((await stream.ask({ id: 2, ...intent })).body).toEqual(first.body);
    expect((await stream.ask({ id: 3, ...intent, idempotency_key: "other" })).body).toEqual({
      decision: "allow",
      step: 1,
    });
  });

  it("that asks for a file or a stream is 400", async () => {
    verifies("beyond.socket.files");
    const stream = await open("auditor");
    const answer = await stream.ask({ id: 1, operation: "export_run", params: { id: "x" } });
    expect(answer).toEqual({
      id: 1,
      status: 400,
      body: { error: "operation: export_run answers a file or a stream; request it over HTTP" },
    });
  });

  it("that names a route without a role is 400, and names HTTP as the way", async () => {
    verifies("beyond.socket.open-routes");
    const stream = await open("auditor");
    for (const [id, operation] of [
      "healthz",
      "readyz",
      "metrics",
      "openapi",
      "stream",
      "chat_actions",
    ].entries())
      expect(await stream.ask({ id, operation })).toEqual({
        id,
        status: 400,
        body: { error: `operation: ${operation} is not available on a stream; request it over HTTP` },
      });
  });

  it("that is not readable closes the stream with 1007, and one without a form is 400", async () => {
    verifies("beyond.socket.unreadable");
    const stream = await open();
    for (const wrong of [
      "[]",
      "{}",
      '{"id":true,"operation":"list_runs"}',
      '{"id":1,"operation":"list_runs","x":1}',
    ])
      stream.send(wrong);
    await until(() => stream.answers.length === 4, "four answers");
    expect(stream.answers.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
    stream.send('{"id":"twice","operation":"list_runs","operation":"list_keys"}');
    await until(() => stream.answers.length === 5, "the fifth answer");
    expect(stream.answers[4]).toMatchObject({ id: "twice", status: 400 });
    stream.send('{"id": 1,');
    expect(await stream.closed).toBe(1007);
  });

  it("over 1 MB is 413, and the stream continues", async () => {
    verifies("beyond.socket.size");
    const stream = await open();
    const body = { run_id: "big", permissions: ["x".repeat(1_100_000)] };
    const answer = await stream.ask({ id: "big", operation: "open_run", body });
    expect(answer).toEqual({ id: "big", status: 413, body: { error: "the message is over 1 MB" } });
    expect((await stream.ask({ id: 2, operation: "list_runs" })).status).toBe(200);
  });

  it("is not compressed", async () => {
    verifies("beyond.socket.compression");
    const stream = await open();
    expect(stream.socket.extensions).toBe("");
  });
});

describe("many messages", () => {
  /** A request that is answered when its approval is decided, so that it stays open. */
  async function waiting(name: string): Promise<{ stream: Stream; approval_id: string }> {
    const held = await testServer({
      policy:
        "version: 1\nrules: [{id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}]\n",
    });
    const stream = await open("agent", await held.http.listen({ host: "127.0.0.1", port: 0 }));
    await stream.ask({
      id: "run",
      operation: "open_run",
      body: { run_id: name, permissions: ["mail.send"] },
    });
    const intent = { tool: "mail.send", args: {}, reason: "r" };
    const { body } = await stream.ask({
      id: "intent",
      operation: "intent",
      params: { id: name },
      body: intent,
    });
    const approval_id = /apr_[\w-]+/.exec(String(body["reasons"]))![0];
    return { stream, approval_id };
  }

  it("are answered in any order; an id that is open is refused", async () => {
    verifies("beyond.socket.order", "beyond.socket.same-id");
    const { stream, approval_id } = await waiting("waits");
    const wait = { operation: "get_approval", params: { id: approval_id, wait: "30" } };
    stream.send({ id: "slow", ...wait });
    await stream.ask({ id: "fast", operation: "list_runs" });
    expect(stream.answers.some(({ id }) => id === "slow")).toBe(false);
    const again = await stream.ask({ id: "slow", operation: "list_runs" });
    expect(again).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining("already being answered") },
    });
  });

  it("over 256 at once are 429", async () => {
    verifies("beyond.socket.in-flight");
    const { stream, approval_id } = await waiting("many");
    const wait = { operation: "get_approval", params: { id: approval_id, wait: "30" } };
    for (let id = 0; id < 260; id++) stream.send({ id, ...wait });
    await until(() => stream.answers.filter(({ status }) => status === 429).length === 4, "four refusals");
  });

  it("count for quotas one by one, and have their own log line and request id", async () => {
    verifies("beyond.socket.quotas");
    const stream = await open("limited");
    const statuses = [];
    for (let id = 0; id < 4; id++) statuses.push((await stream.ask({ id, operation: "list_runs" })).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
  });
});

describe("the credential", () => {
  it("is checked for every message: a disabled key gets 401, then close code 4401", async () => {
    verifies("beyond.socket.revoked");
    const stream = await open("short-lived");
    expect((await stream.ask({ id: 1, operation: "list_runs" })).status).toBe(200);
    const { body } = await s.call("admin", "GET", "/v1/keys");
    const key = (body.keys as { name: string; index: number; fingerprint: string }[]).find(
      ({ name }) => name === "short-lived",
    )!;
    const changed = await s.call(
      "admin",
      "PATCH",
      `/v1/keys/${key.index}`,
      { disabled: true },
      { "if-match": key.fingerprint },
    );
    expect(changed.status).toBe(200);
    expect((await stream.ask({ id: 2, operation: "list_runs" })).status).toBe(401);
    expect(await stream.closed).toBe(4401);
  });
});

describe("at shutdown", () => {
  it("open messages are answered, then the stream closes with 1001", async () => {
    verifies("beyond.socket.shutdown");
    const own = await testServer();
    const stream = await open("agent", await own.http.listen({ host: "127.0.0.1", port: 0 }));
    stream.send({ id: 1, operation: "open_run", body: { permissions: [] } });
    await aMoment(20);
    await own.http.close();
    expect(await stream.closed).toBe(1001);
    expect(stream.answers.map(({ id, status }) => [id, status])).toEqual([[1, 201]]);
  });
});
