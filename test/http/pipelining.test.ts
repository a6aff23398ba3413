/**
 * A client that sends requests over sockets without waiting for answers. Requests after an answer that closes the
 * connection are not performed, and every performed request is answered.
 */
import { connect } from "node:net";
import { beforeAll, describe, expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { testGateway } from "../gateway/support/gateway.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

interface Listener {
  port: number;
  hasRun(run_id: string): Promise<boolean>;
}

async function serverListener(router_only: boolean): Promise<Listener> {
  const { http, app } = await testServer({ router_only });
  const { port } = await startListening(http, "127.0.0.1", 0);
  return { port, hasRun: async (id) => (await app.core.store.get("runs", id)) !== undefined };
}

async function gatewayListener(): Promise<Listener> {
  const { service, url } = await testGateway();
  const port = Number(new URL(url).port);
  return { port, hasRun: async (id) => (await service.core.store.get("runs", id)) !== undefined };
}

/** All that comes back until the server ends the connection. */
function exchange(port: number, sent: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.once("end", () => resolve(text));
    socket.once("error", (error: NodeJS.ErrnoException) => (text === "" ? reject(error) : resolve(text)));
    for (const part of sent) socket.write(part);
  });
}

const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status);

const HEAD = "host: x\r\nauthorization: Bearer agent\r\ncontent-type: application/json\r\n";
const sized = (path: string, body: string, more = "") =>
  `POST ${path} HTTP/1.1\r\n${HEAD}${more}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const chunked = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\n${HEAD}transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
const opens = (run_id: string, more = "") =>
  sized("/v1/runs", JSON.stringify({ run_id, permissions: ["crm.read"] }), more);
const LAST = "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
const LONG = `"${"x".repeat(SERVICE_LIMITS.body_bytes)}"`;
/** Fewer bytes than it says, so that the next request becomes a part of this body. */
const LIES = `POST /v1/runs HTTP/1.1\r\n${HEAD}content-length: 600\r\n\r\n{`;

/** First requests that are refused, each with the last status that its client sees. */
const REFUSED: [name: string, request: string, status: string][] = [
  ["a body over 1 MB", sized("/v1/runs", LONG), "413"],
  ["a chunked body over 1 MB", chunked("/v1/runs", LONG), "413"],
  ["an intent over 1 MB", sized("/v1/runs/r/intents", LONG), "413"],
  ["an intent that is not JSON", sized("/v1/runs/r/intents", "{"), "400"],
  ["a chunked intent that is not JSON", chunked("/v1/runs/r/intents", "{"), "400"],
  ["an outcome that is not JSON", sized("/v1/runs/r/steps/0/outcome", "nope"), "400"],
  ["a body that is not JSON", sized("/v1/runs", "{"), "400"],
  ["a body that asks before it is sent", sized("/v1/runs", "{", "expect: 100-continue\r\n"), "400"],
  ["a body of another type", sized("/v1/runs", "x", "").replace("application/json", "text/plain"), "415"],
  ["a chunk of no size", `POST /v1/runs HTTP/1.1\r\n${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`, "400"],
  ["two lengths", `POST /v1/runs HTTP/1.1\r\n${HEAD}content-length: 2\r\ncontent-length: 3\r\n\r\n{}`, "400"],
  ["a length and chunks", sized("/v1/runs", "{}", "transfer-encoding: chunked\r\n"), "400"],
  ["no HTTP", "hello\r\n\r\n", "400"],
];

describe.each([
  ["the server", () => serverListener(false)],
  ["a server whose router takes every request", () => serverListener(true)],
  ["the gateway", gatewayListener],
])("on %s", (_name, start) => {
  let to: Listener;
  beforeAll(async () => {
    to = await start();
  });

  it.each(REFUSED)("after %s nothing of the connection is performed", async (name, request, status) => {
    verifies("core.http.nothing-after-close");
    const ids = [`a-${name}`, `b-${name}`].map((id) => id.replaceAll(/[^a-z0-9-]/gi, "-"));
    const answers = await exchange(to.port, [request + opens(ids[0]!), opens(ids[1]!) + LAST]);
    expect(statusesOf(answers).filter((one) => one !== "100")).toEqual([status]);
    expect(answers).toMatch(/^connection: close\r$/im);
    for (const id of ids) expect(await to.hasRun(id)).toBe(false);
  });

  it("takes bytes that a stated length covers for a body, of any form", async () => {
    verifies("core.http.nothing-after-close");
    const answers = await exchange(to.port, [LIES + opens("inside") + opens("after"), "x".repeat(600), LAST]);
    expect(statusesOf(answers)).toEqual(["400"]);
    for (const id of ["inside", "after"]) expect(await to.hasRun(id)).toBe(false);
  });

  it("answers requests that are sent at once in their order, each as if it had come alone", async () => {
    verifies("core.http.answered-in-order");
    const intent = sized("/v1/runs/p1/intents", '{"tool":"crm.get","args":{},"reason":"look"}');
    const refused = opens("p3").replace("Bearer agent", "Bearer nobody");
    const sent = [opens("p1"), intent, refused, opens("p1"), opens("p2", "expect: 100-continue\r\n"), LAST];
    const answers = await exchange(to.port, [sent.join("")]);
    expect(statusesOf(answers).filter((one) => one !== "100")).toEqual([
      "201",
      "200",
      "401",
      "409",
      "201",
      "200",
    ]);
    expect(await to.hasRun("p3")).toBe(false);
  });

  it.each([
    ["no HTTP", "hello\r\n\r\n"],
    ["what one asks of a proxy", "CONNECT example.org:443 HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["a broken chunk", `POST /v1/runs HTTP/1.1\r\n${HEAD}transfer-encoding: chunked\r\n\r\nzz\r\n`],
  ])("answers what it performed before it refuses %s", async (name, broken) => {
    verifies("core.http.answered-in-order");
    const id = name.replaceAll(" ", "-");
    const answers = await exchange(to.port, [opens(id) + broken]);
    expect(statusesOf(answers)).toEqual(["201", "400"]);
    expect(await to.hasRun(id)).toBe(true);
  });

  it("performs no more requests ahead of their answers than its bound, and answers those", async () => {
    verifies("core.http.answered-in-order");
    const count = SERVICE_LIMITS.pipelined_requests + 20;
    const many = Array.from({ length: count }, (_, i) => opens(`many-${i}`));
    const answers = await exchange(to.port, [many.join("")]);
    const made = await Promise.all(many.map((_, i) => to.hasRun(`many-${i}`)));
    expect(statusesOf(answers).length).toBe(made.filter(Boolean).length);
    expect(made.filter(Boolean).length).toBeGreaterThanOrEqual(SERVICE_LIMITS.pipelined_requests);
    expect(made[count - 1]).toBe(false);
  });
});
