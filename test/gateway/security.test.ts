/** Who can connect, from where, and that nobody gets another caller's data. */
import { writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, type GatewayTest, testGateway, until } from "./support/gateway.ts";

let g: GatewayTest;
beforeAll(async () => {
  g = await testGateway({ upstreams: [fakeUpstream({ timeout: "10s" })] });
});

interface Sent {
  key?: string | null;
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: unknown;
}

/** By hand, because fetch does not let one lie about Host. */
function send(
  { key = "agent", method = "POST", path = "/mcp", headers = {}, body }: Sent,
  url = g.url,
): Promise<{ status: number; headers: Record<string, unknown>; text: string; json: () => unknown }> {
  const { hostname, port } = new URL(url);
  const payload = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      {
        hostname,
        port,
        path,
        method,
        headers: {
          accept: "application/json, text/event-stream",
          ...(payload === undefined ? {} : { "content-type": "application/json" }),
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...headers,
        },
      },
      (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            text,
            json: () => JSON.parse(text),
          }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(payload);
  });
}

const initialize = (id: string | number = 0, protocolVersion = "2025-11-25") => ({
  jsonrpc: "2.0",
  id,
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } },
});
async function session(key = "agent", version = "2025-11-25"): Promise<string> {
  const opened = await send({ key, body: initialize(0, version) });
  expect(opened.status).toBe(200);
  const id = opened.headers["mcp-session-id"] as string;
  await send({
    key,
    headers: { "mcp-session-id": id },
    body: { jsonrpc: "2.0", method: "notifications/initialized" },
  });
  return id;
}
const toolCall = (id: string | number, name: string, args: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name, arguments: args },
});

describe("credentials", () => {
  it(`are needed, and of the right role ${verifies("contract.gateway.http-401-403", "core.gateway.mcp-agent-key", "contract.readings.auditor-on-mcp", "core.gateway.config-auth")}`, async () => {
    for (const path of ["/mcp", "/operator/mcp"]) {
      const none = await send({ key: null, path, body: initialize() });
      expect([path, none.status, none.headers["www-authenticate"]]).toEqual([path, 401, "Bearer"]);
      expect(none.json()).toEqual({ error: expect.stringContaining("missing credential") });
      expect((await send({ key: "wrong", path, body: initialize() })).status).toBe(401);
    }
    for (const key of ["auditor", "approver", "operator", "admin"]) {
      const refused = await send({ key, body: initialize() });
      expect([key, refused.status, refused.json()]).toEqual([key, 403, { error: "agent role required" }]);
    }
    const agent = await send({ path: "/operator/mcp", body: initialize() });
    expect([agent.status, agent.json()]).toEqual([403, { error: "auditor role or higher required" }]);
    const twice = await send({
      key: null,
      headers: { authorization: ["Bearer agent", "Bearer agent2"] },
      body: initialize(),
    });
    expect(twice.status).toBe(400);
  });

  it("stop counting in an open session as soon as the key is disabled", async () => {
    const h = await testGateway({ keys: [{ name: "leaver", role: "agent" }] });
    const client = await h.connect("leaver");
    await call(client, "echo");
    await until(() => h.running.gateway.connectors()[0]!.ok, "up");
    const keys = [
      {
        name: "leaver",
        role: "agent",
        max_permissions: ["*"],
        key_sha256: sha256Hex("leaver"),
        disabled: true,
      },
    ];
    writeFileSync(join(h.folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
    await until(
      async () =>
        call(client, "echo").then(
          () => false,
          () => true,
        ),
      "the key is refused",
    );
  });
});

describe("a browser that was tricked", () => {
  it.each(["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"])(
    "is refused under the Host %j",
    async (host) => {
      for (const path of ["/mcp", "/operator/mcp"]) {
        const answer = await send({ path, key: "admin", headers: { host }, body: initialize() });
        expect(answer.status).toBe(403);
        expect(answer.json()).toEqual({ error: expect.any(String) });
      }
    },
  );

  it.each(["https://evil.example", "null", "http://localhost.evil.example", "file://", "garbage"])(
    `is refused from the Origin %j ${verifies("contract.gateway.origin")}`,
    async (origin) => {
      const answer = await send({ headers: { origin }, body: initialize() });
      expect([answer.status, answer.json()]).toEqual([403, { error: "this Origin is not allowed" }]);
      const newer = await send({
        headers: { origin, "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover" },
        body: {},
      });
      expect(newer.status).toBe(403);
    },
  );

  it("is welcome from this machine", async () => {
    const { port } = new URL(g.url);
    for (const origin of [`http://localhost:${port}`, "http://127.0.0.1:3000"]) {
      expect((await send({ headers: { origin }, body: initialize() })).status).toBe(200);
    }
    expect((await send({ headers: { host: `localhost:${port}` }, body: initialize() })).status).toBe(200);
  });
});

describe("sessions", () => {
  it(`belong to the principal that opened them ${verifies("contract.gateway.http-404")}`, async () => {
    const id = await session("agent");
    const own = await send({ headers: { "mcp-session-id": id }, body: toolCall(1, "echo", { a: 1 }) });
    expect(own.status).toBe(200);
    for (const [method, body] of [
      ["POST", toolCall(2, "echo")],
      ["GET", undefined],
      ["DELETE", undefined],
    ] as const) {
      const stolen = await send({ key: "agent2", method, headers: { "mcp-session-id": id }, body });
      const none = await send({
        key: "agent2",
        method,
        headers: { "mcp-session-id": "00000000-0000-4000-8000-000000000000" },
        body,
      });
      expect([method, stolen.status, stolen.text]).toEqual([method, 404, none.text]);
    }
    const across = await send({
      key: "admin",
      path: "/operator/mcp",
      headers: { "mcp-session-id": id },
      body: toolCall(3, "svc.list_runs"),
    });
    expect(across.status).toBe(404);
    expect((await send({ headers: { "mcp-session-id": id }, body: toolCall(4, "echo") })).status).toBe(200);
  });

  it("end on request", async () => {
    const id = await session();
    expect((await send({ method: "DELETE", headers: { "mcp-session-id": id } })).status).toBe(200);
    expect((await send({ headers: { "mcp-session-id": id }, body: toolCall(1, "echo") })).status).toBe(404);
  });

  it("are needed by older revisions, and begun by initialize alone", async () => {
    expect((await send({ body: toolCall(1, "echo") })).status).toBe(400);
    expect((await send({ method: "GET" })).status).toBe(405);
    const id = await session();
    expect((await send({ headers: { "mcp-session-id": id }, body: initialize() })).status).toBe(400);
    expect((await send({ body: [initialize(), toolCall(1, "echo")] })).status).toBe(400);
  });

  it(`keep to the revisions there are ${verifies("contract.gateway.http-400")}`, async () => {
    const id = await session();
    // Earlier than all, later than all, and no date at all; inside a session and at its beginning.
    for (const version of ["1999-01-01", "2030-01-01", "latest"]) {
      for (const odd of [
        { headers: { "mcp-session-id": id, "mcp-protocol-version": version }, body: toolCall(1, "echo") },
        { headers: { "mcp-protocol-version": version }, body: initialize() },
      ]) {
        const refused = await send(odd);
        expect([version, refused.status, refused.json()]).toEqual([
          version,
          400,
          { error: expect.stringMatching(/^unsupported protocol version; supported are 2026-07-28, /) },
        ]);
      }
    }
    const newer = { "mcp-protocol-version": "2030-01-01", "mcp-method": "tools/list" };
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2030-01-01",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    expect(
      (
        await send({
          headers: newer,
          body: { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: meta } },
        })
      ).status,
    ).toBe(400);
  });

  it("have one stream each for what belongs to no call", async () => {
    const id = await session();
    const headers = { "mcp-session-id": id, authorization: "Bearer agent", accept: "text/event-stream" };
    const abort = new AbortController();
    const first = await fetch(`${g.url}/mcp`, { headers, signal: abort.signal });
    expect(first.headers.get("content-type")).toBe("text/event-stream");
    expect((await send({ method: "GET", headers: { "mcp-session-id": id } })).status).toBe(409);
    abort.abort();
    await until(async () => {
      const again = new AbortController();
      const answer = await fetch(`${g.url}/mcp`, { headers, signal: again.signal });
      again.abort();
      return answer.status === 200;
    }, "the stream is free again");
  });
});

describe("answers", () => {
  it("never cross between fifty clients that all use id 0", async () => {
    const ids = await Promise.all(
      Array.from({ length: 50 }, (_, i) => session(i % 2 === 0 ? "agent" : "agent2")),
    );
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        ids.map((id, client) =>
          send({
            key: client % 2 === 0 ? "agent" : "agent2",
            headers: { "mcp-session-id": id },
            body: toolCall(0, "echo", { client, round }),
          }),
        ),
      );
      for (const [client, answer] of answers.entries()) {
        expect(answer.json()).toMatchObject({
          id: 0,
          result: { structuredContent: { got: { client, round } } },
        });
      }
    }
    const runs = new Set<string>();
    for (const [client, id] of ids.entries()) {
      const answer = await send({
        key: client % 2 === 0 ? "agent" : "agent2",
        headers: { "mcp-session-id": id },
        body: toolCall(0, "echo"),
      });
      runs.add((answer.json() as { result: { _meta: Record<string, string> } }).result._meta["svc/run_id"]!);
    }
    expect(runs.size).toBe(50);
  });

  it("never cross between session-less clients either", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo" };
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, client) =>
        send({
          headers,
          body: {
            jsonrpc: "2.0",
            id: 0,
            method: "tools/call",
            params: { name: "echo", arguments: { client }, _meta: meta },
          },
        }),
      ),
    );
    for (const [client, answer] of answers.entries()) {
      expect(answer.json()).toMatchObject({ id: 0, result: { structuredContent: { got: { client } } } });
    }
  });

  it("are given once for an id that is under way", async () => {
    const id = await session();
    const file = join(tempDir(), "go-on");
    const before = (await g.events()).length;
    const slow = send({ headers: { "mcp-session-id": id }, body: toolCall(7, "slow", { file }) });
    await until(async () => (await g.events()).length > before, "the call to be under way");
    expect((await send({ headers: { "mcp-session-id": id }, body: toolCall(7, "echo") })).status).toBe(409);
    writeFileSync(file, "");
    expect((await slow).json()).toMatchObject({ id: 7, result: { content: [{ text: "late" }] } });
  });
});

describe("batches", () => {
  it("are governed call by call in the one revision that has them", async () => {
    const id = await session("agent", "2025-03-26");
    const body = [
      toolCall(1, "echo", { a: 1 }),
      toolCall(2, "drop_everything"),
      { jsonrpc: "2.0", method: "notifications/x" },
    ];
    const answer = await send({ headers: { "mcp-session-id": id }, body });
    const answers = (answer.json() as { id: number }[]).sort((a, b) => a.id - b.id);
    expect(answers).toMatchObject([
      { id: 1, result: { structuredContent: { got: { a: 1 } } } },
      { id: 2, result: { isError: true, structuredContent: { decision: "block" } } },
    ]);
    expect(
      (await send({ headers: { "mcp-session-id": id }, body: [toolCall(3, "echo"), toolCall(3, "echo")] }))
        .status,
    ).toBe(409);
    expect((await send({ headers: { "mcp-session-id": id }, body: [] })).status).toBe(400);
  });

  it("are refused in every other", async () => {
    const id = await session();
    expect((await send({ headers: { "mcp-session-id": id }, body: [toolCall(1, "echo")] })).status).toBe(400);
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const newer = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "echo", arguments: {}, _meta: meta },
    };
    expect((await send({ headers: { "mcp-protocol-version": "2026-07-28" }, body: [newer] })).status).toBe(
      400,
    );
  });
});

describe("bodies", () => {
  it("are read once and strictly", async () => {
    const id = await session();
    const raw = (args: string) =>
      send({
        headers: { "mcp-session-id": id },
        body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":${args}}}`,
      });
    for (const args of [
      '{"a":1,"a":2}',
      '{"__proto__":{}}',
      "9007199254740993",
      '{"a":1e400}',
      '"\\ud800"',
      "[".repeat(70) + "]".repeat(70),
    ]) {
      expect([args.slice(0, 20), (await raw(args)).status]).toEqual([args.slice(0, 20), 400]);
    }
    for (const body of [
      "null",
      "5",
      '"x"',
      "{}",
      '{"jsonrpc":"1.0"}',
      '{"jsonrpc":"2.0","id":{},"method":"x"}',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
      // These the SDK would drop without an answer.
      '{"jsonrpc":"2.0","id":1,"method":"ping","extra":1}',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}',
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":{}}}}',
      '{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}',
    ]) {
      expect([body, (await send({ headers: { "mcp-session-id": id }, body })).status]).toEqual([body, 400]);
    }
    expect(
      (await send({ headers: { "mcp-session-id": id, "content-type": "text/plain" }, body: "{}" })).status,
    ).toBe(415);
    expect(
      (await send({ headers: { "mcp-session-id": id }, body: JSON.stringify({ x: "y".repeat(1_048_576) }) }))
        .status,
    ).toBe(413);
    expect(
      (
        await send({
          headers: { "mcp-session-id": id, accept: "application/json" },
          body: toolCall(1, "echo"),
        })
      ).status,
    ).toBe(400);
    const answer = await send({ headers: { "mcp-session-id": id }, body: toolCall(2, "echo") });
    expect(answer.headers["x-request-id"]).toMatch(/^req_/);
  });
});
