/** The library uses one connection for its calls, and HTTP where there is none. */
import { execFile } from "node:child_process";
import { createServer, request, type Server } from "node:http";
import {
  type AddressInfo,
  connect as connectTcp,
  createServer as createTcpServer,
  type Socket,
} from "node:net";
import { pathToFileURL } from "node:url";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { connect, type RemoteSvc } from "../../src/index.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
let url = "";
let requests: string[] = [];
let upgrades = 0;
beforeAll(async () => {
  s = await testServer({
    policy:
      "version: 1\nrules:\n  - {id: m, match: {tool: mail.send}, action: require_approval, reason: a person decides}\n",
    keys: [{ name: "ends", role: "agent" }],
  });
  s.http.server.on("request", ({ method, url: path }) => requests.push(`${method} ${path}`));
  s.http.server.on("upgrade", () => upgrades++);
  url = await s.http.listen({ host: "127.0.0.1", port: 0 });
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  requests = [];
  upgrades = 0;
});

async function connected(at = url, key = "agent", more = {}): Promise<RemoteSvc> {
  const svc = await connect({ url: at, key, ...more });
  closing.push(() => svc.close());
  return svc;
}

const create = { tool: "crm.create", args: { name: "Ada" }, reason: "new customer" };
const scope = { permissions: ["crm.write", "mail.send"] };

async function listening(server: Server | ReturnType<typeof createTcpServer>): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A proxy of bytes. `onAnswer` decides whether a chunk of the server's answer is passed on, or the connection cut. */
async function tcpProxy(onAnswer: (chunk: Buffer) => boolean): Promise<string> {
  const { port } = new URL(url);
  const sockets: Socket[] = [];
  closing.push(() => sockets.map((one) => one.destroy()));
  return listening(
    createTcpServer((client) => {
      const server = connectTcp(Number(port), "127.0.0.1");
      sockets.push(client, server);
      client.pipe(server);
      client.on("error", () => {});
      server.on("error", () => {});
      client.on("close", () => server.destroy());
      server.on("close", () => client.destroy());
      server.on("data", (chunk) => (onAnswer(chunk) ? client.write(chunk) : client.destroy()));
    }),
  );
}

/** An HTTP proxy that knows no WebSockets. Cuts the connection instead of the answers that `loses` names. */
function plainProxy(loses: (path: string) => boolean = () => false): Promise<string> {
  return listening(
    createServer((incoming, outgoing) => {
      const { connection: _c, upgrade: _u, ...headers } = incoming.headers;
      const asked = request(url + incoming.url, { method: incoming.method ?? "GET", headers }, (answer) => {
        if (loses(incoming.url ?? "")) outgoing.destroy();
        else {
          outgoing.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(outgoing);
        }
      });
      incoming.pipe(asked);
    }),
  );
}

const stepsOf = async (run_id: string) =>
  (await s.call("auditor", "GET", `/v1/runs/${run_id}`)).body.steps as { status: string }[];

describe("one connection", () => {
  it("carries all calls of a run without an HTTP request", async () => {
    verifies("beyond.socket.library");
    const svc = await connected();
    const run = await svc.run(scope);
    const results = await Promise.all([1, 2, 3].map((id) => run.call(create, () => ({ id }))));
    expect(results).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
    await expect(run.plan()).rejects.toThrow("auditor role required");
    expect(upgrades).toBe(1);
    expect(requests).toEqual([]);
    expect(await stepsOf(run.run_id)).toMatchObject(Array(3).fill({ status: "succeeded" }));
  });

  it("tells a repeated answer, and gives errors the code and facts that they have over HTTP", async () => {
    verifies("beyond.socket.library");
    const failures: unknown[] = [];
    for (const at of [url, await plainProxy()]) {
      const run = await (await connected(at)).run(scope);
      const keyed = { ...create, idempotency_key: "k" };
      expect(await run.intent(keyed)).not.toHaveProperty("replayed");
      expect(await run.intent(keyed)).toMatchObject({ replayed: true });
      failures.push(
        await run
          .intent({ ...keyed, args: { name: "Eve" } })
          .catch(({ code, cause_code, message }) => ({ code, cause_code, message })),
      );
    }
    expect(failures[0]).toMatchObject({ code: "conflict" });
    expect(failures[1]).toEqual(failures[0]);
  });

  it("does not keep the agent's process alive", async () => {
    verifies("beyond.socket.library");
    const library = pathToFileURL("src/index.ts").href;
    const script = `const { connect } = await import(${JSON.stringify(library)});
      const svc = await connect({ url: ${JSON.stringify(url)}, key: "agent" });
      const run = await svc.run({ permissions: ["crm.write"] });
      console.log((await run.intent(${JSON.stringify(create)})).decision);`;
    const args = ["--import", "tsx", "--input-type=module", "-e", script];
    const said = await new Promise((resolve, reject) =>
      execFile(process.execPath, args, (error, out) => (error ? reject(error) : resolve(out))),
    );
    expect(said).toBe("allow\n");
    expect(upgrades).toBe(1);
  });
});

describe("a connection that fails", () => {
  it("is replaced by HTTP where a proxy does not upgrade it", async () => {
    verifies("beyond.socket.fallback");
    const run = await (await connected(await plainProxy())).run(scope);
    expect(await run.call(create, () => ({ id: 1 }))).toEqual({ id: 1 });
    expect(upgrades).toBe(0);
    expect(requests.filter((one) => one.includes("/v1/stream"))).toHaveLength(1);
  });

  it("records a call once whose answer was lost on the way", async () => {
    verifies("beyond.socket.fallback");
    let cuts = 0;
    // A stream's answer is not HTTP. The second one is the decision.
    let answers = 0;
    const at = await tcpProxy((chunk) => {
      if (chunk.subarray(0, 5).toString() === "HTTP/" || ++answers !== 2) return true;
      cuts++;
      return false;
    });
    const run = await (await connected(at)).run(scope);
    expect(await run.call(create, () => ({ id: 1 }))).toEqual({ id: 1 });
    expect(cuts).toBe(1);
    expect(upgrades).toBe(2);
    expect(await stepsOf(run.run_id)).toMatchObject([{ status: "succeeded" }]);
  });

  it("records a call once whose HTTP answer was lost on the way", async () => {
    verifies("beyond.socket.fallback");
    const lost = new Set<string>();
    const at = await plainProxy((path) => {
      if (!/intents|outcome/.test(path) || lost.has(path)) return false;
      lost.add(path);
      return true;
    });
    const run = await (await connected(at)).run(scope);
    expect(await run.call(create, () => ({ id: 1 }))).toEqual({ id: 1 });
    expect(lost.size).toBe(2);
    expect(await stepsOf(run.run_id)).toMatchObject([{ status: "succeeded" }]);
  });

  it("ends with the key, and says why", async () => {
    verifies("beyond.socket.fallback");
    const svc = await connected(url, "ends");
    const run = await svc.run(scope);
    const { body } = await s.call("admin", "GET", "/v1/keys");
    const index = body.keys.findIndex(({ name }: { name: string }) => name === "ends");
    await s.call("admin", "PATCH", `/v1/keys/${index}`, { disabled: true });
    for (let i = 0; i < 2; i++)
      await expect(run.intent(create)).rejects.toMatchObject({ code: "unauthenticated" });
  });
});

describe("a server that lies", () => {
  /** Answers each message with what `say` returns. */
  async function forger(say: (message: { id: number; operation: string }) => string): Promise<string> {
    const server = createServer((_, answer) => answer.writeHead(404).end("not here"));
    const sockets = new WebSocketServer({ server });
    sockets.on("headers", (headers) => headers.push("svc-answer-headers: 1"));
    sockets.on("connection", (socket) =>
      socket.on("message", (data) => socket.send(say(JSON.parse(String(data))))),
    );
    closing.push(() => [...sockets.clients].map((one) => one.terminate()));
    return listening(server);
  }

  it("is refused unless its answer has the operation's shape", async () => {
    verifies("beyond.socket.liar");
    const at = await forger(({ id }) => JSON.stringify({ id, status: 200, body: { decision: "allow" } }));
    await expect((await connected(at)).run(scope)).rejects.toThrow(/does not answer like svc/);
  });

  it("cannot answer another message, also with text that is not JSON", async () => {
    verifies("beyond.socket.liar");
    const other = await forger(({ id }) => JSON.stringify({ id: id + 1, status: 201, body: {} }));
    await expect((await connected(other, "agent", { timeout_ms: 300 })).run(scope)).rejects.toThrow(
      /no answer .* within 300 ms/,
    );
    const noise = await forger(() => "<html>");
    const svc = await connected(noise);
    await expect(svc.run(scope)).rejects.toThrow(/closed the connection before it answered/);
    // The next request goes over HTTP.
    await expect(svc.run(scope)).rejects.toMatchObject({ code: "not_found" });
  });

  it("does not get the key by a redirect of the upgrade", async () => {
    verifies("beyond.socket.liar");
    let told = 0;
    const thief = await listening(createServer((_, answer) => answer.end(String(++told))));
    const at = await listening(
      createServer((_, answer) => answer.writeHead(307, { location: `${thief}/v1/stream` }).end()),
    );
    await expect((await connected(at)).run(scope)).rejects.toThrow(/Redirects are not followed/);
    expect(told).toBe(0);
  });
});
