/**
 * Intents and outcomes have a fast path on `node:http`; the router handles everything else. Two equal services, one
 * with the router only, get the same requests over sockets, plain and odd ones. Their answers are equal to the
 * byte, except for the request's id and the date.
 */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createHttpServer } from "../../src/http/server.ts";
import { seeded } from "../support/env.ts";
import { type TestServer, testServer } from "../support/server.ts";

const REQUESTS = Number(process.env["SVC_ODD_REQUESTS"] ?? 800);
const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: ask}
`;

interface Side {
  server: TestServer;
  port: number;
  run_id: string;
  routed: number;
  socket?: Socket | undefined;
}

async function side(router_only: boolean): Promise<Side> {
  const server = await testServer({ policy: POLICY, router_only });
  const one: Side = { server, port: 0, run_id: "", routed: 0 };
  server.http.addHook("onRequest", async () => void one.routed++);
  await server.http.listen({ host: "127.0.0.1", port: 0 });
  one.port = (server.http.server.address() as { port: number }).port;
  const permissions = ["crm.read", "crm.write", "mail.send"];
  one.run_id = (await server.call("agent", "POST", "/v1/runs", { permissions })).body.run_id;
  one.routed = 0;
  return one;
}

let straight: Side;
let routed: Side;
beforeAll(async () => {
  straight = await side(false);
  routed = await side(true);
});
afterAll(() => {
  for (const { socket } of [straight, routed]) socket?.destroy();
});

/** Everything up to the end of one answer, or of the connection. */
function exchange(to: Side, request: Buffer, cut: boolean): Promise<string> {
  const socket = to.socket ?? connect(to.port, "127.0.0.1");
  to.socket = socket;
  return new Promise((resolve, reject) => {
    let text = "";
    const done = () => {
      socket.removeAllListeners();
      socket.on("error", () => {});
      if (socket.readableEnded || /^connection: close/im.test(text)) {
        socket.destroy();
        to.socket = undefined;
      }
      resolve(text.replace(/^(x-request-id|date): .*$/gim, "$1: *"));
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (isWhole(text)) done();
    });
    socket.once("end", done);
    socket.once("error", reject);
    socket.write(request);
    if (cut) socket.end();
  });
}

/** An interim answer comes before the one that counts. */
function isWhole(text: string): boolean {
  const answer = text.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, "");
  const end = answer.indexOf("\r\n\r\n");
  const length = /^content-length: (\d+)/im.exec(answer)?.[1];
  return end >= 0 && length !== undefined && answer.length - end - 4 >= Number(length);
}

const LONG = "x".repeat(1_100_000);
const BODIES: (string | Buffer)[] = [
  '{"tool":"crm.create","args":{"name":"Ada"},"reason":"new"}',
  '{"tool":"mail.send","args":{"to":"a@example.org"},"reason":"tell her"}',
  '{"tool":"nowhere","args":{},"reason":"try"}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","depends_on":[0]}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","depends_on":[0,0]}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","depends_on":[9000]}',
  '{"tool":"crm.get","args":{"id":1}}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","run_id":"x"}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","idempotency_key":"x"}',
  '{"tool":"crm.get","args":{"id":1},"reason":"look","more":1}',
  '{"tool":"crm.get","tool":"crm.get","args":{},"reason":"twice"}',
  '{"tool":"crm.get","args":{"__proto__":1},"reason":"look"}',
  '{"tool":"crm.get","args":{"id":9007199254740993},"reason":"look"}',
  '{"tool":"crm.get","args":{"id":"\\ud800"},"reason":"look"}',
  `{"tool":"crm.get","args":${"[".repeat(200)}${"]".repeat(200)},"reason":"deep"}`,
  `{"tool":"crm.get","args":"${LONG}","reason":"long"}`,
  '{"status":"succeeded","result":{"id":"c-1"}}',
  '{"status":"failed","error":"no such place"}',
  '{"status":"uncertain"}',
  '{"status":"done"}',
  '{"status":"succeeded","step":1}',
  "",
  " ",
  "null",
  "[]",
  "{",
  '"text"',
  '\ufeff{"tool":"crm.get","args":{},"reason":"marked"}',
  Buffer.from([0x7b, 0xff, 0x7d]),
];

const GOOD = '{"tool":"crm.get","args":{"id":1},"reason":"look"}';
/** Each dimension: the usual value first, and more often than the rest. */
const PATHS = [
  "/v1/runs/RUN/intents",
  "/v1/runs/RUN/steps/STEP/outcome",
  "/v1/runs/RUN/intents/",
  "/v1/runs/RUN/intents?dry=1",
  "/v1/runs/RUN/intents?",
  "/v1/runs/RUN/intents#x",
  "/v1//runs/RUN/intents",
  "/V1/runs/RUN/intents",
  "/v1/runs/%52UN/intents",
  "/v1/runs/unknown-run/intents",
  "/v1/runs/-bad/intents",
  "/v1/runs/%zz/intents",
  `/v1/runs/${"a".repeat(200)}/intents`,
  "/v1/runs/RUN/steps/007/outcome",
  "/v1/runs/RUN/steps/-1/outcome",
  "/v1/runs/RUN/steps/1e3/outcome",
  "/v1/runs/RUN/steps/999999999999999/outcome",
  "/v1/runs/RUN/steps/9999999999999999/outcome",
  "/v1/runs/RUN/intents/preview",
];
const METHODS = ["POST", "PUT", "GET", "DELETE", "post"];
const TYPES = [
  "Content-Type: application/json",
  "Content-Type: application/json; charset=utf-8",
  "content-type: Application/JSON",
  "Content-Type: text/plain",
  "Content-Type: application/x-www-form-urlencoded",
  "Content-Type: application/json\r\nContent-Type: text/plain",
  "",
];
const KEYS = [
  "Authorization: Bearer agent",
  "authorization: bearer agent",
  "Authorization: Bearer agent2",
  "Authorization: Bearer auditor",
  "Authorization: Bearer nobody",
  "Authorization: Basic YTpi",
  "Authorization: Bearer agent\r\nAuthorization: Bearer agent",
  "",
];
const MORE = [
  "",
  "Idempotency-Key: first",
  "Idempotency-Key: second",
  "Idempotency-Key:",
  `Idempotency-Key: ${"k".repeat(300)}`,
  "Idempotency-Key: one\r\nIdempotency-Key: two",
  "Content-Encoding: gzip",
  "Content-Encoding: identity",
  "Svc-Run-Id: a\r\nSvc-Run-Id: b",
  "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "Connection: close",
  "Expect: 100-continue",
  "Transfer-Encoding: gzip",
  "X-Many: 1\r\nx-many: 2",
];

type Framing = "length" | "zeros" | "chunked" | "both" | "none" | "short";
const FRAMINGS: Framing[] = ["length", "zeros", "chunked", "both", "none", "short"];

function framed(framing: Framing, body: Buffer): { headers: string; bytes: Buffer } {
  const length = `Content-Length: ${body.length}\r\n`;
  if (framing === "length") return { headers: length, bytes: body };
  if (framing === "zeros") return { headers: `Content-Length: 00${body.length}\r\n`, bytes: body };
  if (framing === "none") return { headers: "", bytes: Buffer.alloc(0) };
  if (framing === "short") return { headers: `Content-Length: ${body.length + 5}\r\n`, bytes: body };
  const chunk = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from("\r\n")]);
  const bytes = Buffer.concat([body.length === 0 ? Buffer.alloc(0) : chunk, Buffer.from("0\r\n\r\n")]);
  const headers = `Transfer-Encoding: chunked\r\n${framing === "both" ? length : ""}`;
  return { headers, bytes };
}

function requests(random: () => number) {
  /** The usual one three times of four. */
  const pick = <T>(from: readonly T[]): T =>
    random() < 0.75 ? from[0]! : from[Math.floor(random() * from.length)]!;
  const any = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)]!;
  return () => {
    const path = random() < 0.7 ? PATHS[Math.floor(random() * 2)]! : any(PATHS);
    const body = Buffer.from(random() < 0.4 ? GOOD : any(BODIES));
    const framing = pick(FRAMINGS);
    const { headers, bytes } = framed(framing, body);
    const step = Math.floor(random() * 40);
    const version = random() < 0.97 ? "1.1" : "1.0";
    const lines = [pick(TYPES), pick(KEYS), pick(MORE)].filter((line) => line !== "").join("\r\n");
    const method = pick(METHODS);
    const url = (run_id: string) => path.replace("RUN", run_id).replace("STEP", String(step));
    const head = (run_id: string) =>
      `${method} ${url(run_id)} HTTP/${version}\r\nHost: svc\r\n${lines === "" ? "" : `${lines}\r\n`}${headers}\r\n`;
    return {
      cut: framing === "short",
      of: (run_id: string) => Buffer.concat([Buffer.from(head(run_id)), bytes]),
    };
  };
}

describe("The way straight to an operation and the way through the router", () => {
  it(`answer ${REQUESTS} plain and odd requests alike, byte for byte`, async () => {
    const next = requests(seeded(20));
    for (let n = 0; n < REQUESTS; n++) {
      const request = next();
      const [ours, theirs] = await Promise.all(
        [straight, routed].map((to) => exchange(to, request.of(to.run_id), request.cut)),
      );
      const shown = request.of(straight.run_id).toString("latin1").slice(0, 600);
      expect(ours!.replaceAll(straight.run_id, "RUN"), shown).toBe(theirs!.replaceAll(routed.run_id, "RUN"));
    }
    // Both ways were really taken.
    expect(straight.routed).toBeGreaterThan(REQUESTS / 10);
    expect(straight.routed).toBeLessThan(REQUESTS / 1.5);
    expect(routed.routed).toBeGreaterThan(straight.routed);
  });

  it("leave the same ledger", async () => {
    const heads = await Promise.all(
      [straight, routed].map(async ({ server, run_id }) => {
        const { text } = await server.call("auditor", "GET", `/v1/runs/${run_id}/export`);
        return text;
      }),
    );
    expect(heads[0]!.length).toBeGreaterThan(10_000);
    expect(heads[0]).toBe(heads[1]);
  });

  it("survive a listener of an answer that fails", async () => {
    const http = createHttpServer({
      app: straight.server.app,
      metrics: straight.server.app.metrics,
      authenticate: (header) => straight.server.app.auth.authenticate(header),
      answered() {
        throw new Error("the ear is broken");
      },
    });
    await http.listen({ host: "127.0.0.1", port: 0 });
    const { port } = http.server.address() as { port: number };
    const ask = () =>
      fetch(`http://127.0.0.1:${port}/v1/runs/${straight.run_id}/intents`, {
        method: "POST",
        headers: { authorization: "Bearer agent", "content-type": "application/json" },
        body: GOOD,
      });
    // Every decision was answered before. The next call finds a server.
    await Promise.allSettled([ask(), ask()]);
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    expect(straight.server.logged.join("")).toContain("unexpected failure");
    await http.close();
  });
});
