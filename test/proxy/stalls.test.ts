/** Upstreams and clients that stall, dribble or break off: every stage of an exchange ends, and says how. */
import { createServer, type Socket } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { program } from "../support/programs.ts";
import {
  AGENT_KEY,
  basicOf,
  plainly,
  proxySocket,
  rawExchange,
  requestText,
  startProxy,
  throughTunnel,
} from "../support/proxy.ts";
import { verifies } from "../support/verifies.ts";

await program("openssl");

const HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`;
const dribble = (socket: Socket, begin: string, part: string) => {
  socket.write(begin);
  const timer = setInterval(() => socket.write(part), 50);
  socket.once("close", () => clearInterval(timer));
};

/** How the upstream cheats, by the path that is asked for. */
const CHEATS: Record<string, (socket: Socket) => void> = {
  silent: () => {},
  "half-head": (socket) => socket.write(HEAD),
  "slow-head": (socket) => dribble(socket, HEAD, "X-More: 1\r\n"),
  "only-informs": (socket) => dribble(socket, "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
  "head-alone": (socket) => socket.write(`${HEAD}Content-Length: 5\r\n\r\n`),
  "half-chunk": (socket) => socket.write(`${CHUNKED}a\r\nabc`),
  "slow-body": (socket) => dribble(socket, `${HEAD}Content-Length: 1000000\r\n\r\n`, "x"),
  "slow-chunks": (socket) => dribble(socket, CHUNKED, "1\r\nx\r\n"),
  trailer: (socket) => dribble(socket, `${CHUNKED}1\r\nx\r\n0\r\n`, "X-More: 1\r\n"),
  "no-end": (socket) => socket.write(`${CHUNKED}1\r\nx\r\n`),
  events: (socket) =>
    dribble(
      socket,
      `${HEAD.replace("plain", "event-stream")}Transfer-Encoding: chunked\r\n\r\n`,
      "1\r\nx\r\n",
    ),
};
const ENDS: Record<string, (socket: Socket) => void> = {
  "short-body": (socket) => socket.end(`${HEAD}Content-Length: 50\r\n\r\nabc`),
  "broken-chunk": (socket) => socket.end(`${CHUNKED}a\r\nabc`),
  "no-last-chunk": (socket) => socket.end(`${CHUNKED}1\r\nx\r\n`),
  reset: (socket) => socket.resetAndDestroy(),
  garbage: (socket) => socket.end("not HTTP\r\n\r\n"),
  "bad-gzip": (socket) => socket.end(`${HEAD}Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`),
  "two-codings": (socket) =>
    socket.end(`${HEAD}Content-Encoding: identity\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc`),
  "transfer-coding": (socket) =>
    socket.end(`${HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`),
};
const LONG = 20_000_000;

const servers: ReturnType<typeof createServer>[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});
async function listen(handle: (socket: Socket) => void): Promise<string> {
  const server = createServer(handle);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

const api = await listen((socket) => {
  socket.on("error", () => {});
  socket.once("data", (bytes: Buffer) => {
    const path = /^\S+ \/(?:one\/)?(\S+)/.exec(bytes.toString("latin1"))![1]!;
    if (path === "takes-nothing") socket.pause();
    else if (path === "long") socket.end(`${HEAD}Content-Length: ${LONG}\r\n\r\n${"x".repeat(LONG)}`);
    else (CHEATS[path] ?? ENDS[path])?.(socket);
  });
});
/** Accepts connections, and never greets. */
const mute = await listen((socket) => socket.on("error", () => {}));
const http = (host: string, method: string, path: string) =>
  `http: {scheme: http, host: "${host}", method: ${method}, path: "${path}"`;
const MANIFESTS = `
- {tool: net.connect, effect: irreversible, permission: net}
- {tool: one.get, effect: read, permission: api, ${http(api, "GET", "/one/{way}")}}}
- {tool: one.put, effect: irreversible, permission: api, ${http(api, "PUT", "/one/{way}")}, body: opaque}}
- {tool: one.stalled, effect: reversible, permission: api, ${http(api, "POST", "/one/{way}")}}, before: {tool: one.get, args: {way: silent}}, compensation: {tool: one.put, args: {way: $args.way}}}
- {tool: mute.get, effect: read, permission: api, http: {host: "${mute}", method: GET, path: /}}
`;
const start = (bounds: string) =>
  startProxy({ manifests: MANIFESTS, config: `proxy: ${bounds}\nallow_hosts: [127.0.0.1]\n` });
const proxy = await start("{idle: 1s, total: 3s}");

/** Events of the tool's last call. */
async function outcome(tool: string, of = proxy): Promise<unknown[]> {
  const all = (await of.records()).filter((one) => one["tool"] === tool);
  return all.filter(({ step }) => step === all.at(-1)!["step"]).map(({ event }) => event);
}

/** Status and body, or how the connection broke. */
const asked = (wanted: Parameters<typeof plainly>[1]) =>
  plainly(proxy, wanted).then(
    ({ status, body }) => ({ status, body }),
    (error: unknown) => ({ status: 0, body: String(error) }),
  );

describe("an upstream that stalls", () => {
  it.each(Object.keys(CHEATS))("is late: %s", async (way) => {
    verifies("beyond.http.late");
    const { status, body } = await asked({ host: api, path: `/one/${way}` });
    // A stream goes out as it comes, so only its connection can break.
    if (way === "events") expect([status, body]).toEqual([200, expect.not.stringContaining("0\r\n\r\n")]);
    else expect([status, body]).toEqual([504, expect.stringMatching(/no answer|sent nothing|took longer/)]);
    expect(await outcome("one.get")).toEqual(["intended", "uncertain"]);
  });

  it.each(Object.keys(ENDS))("has broken off: %s", async (way) => {
    verifies("beyond.http.late");
    expect(await asked({ host: api, path: `/one/${way}` })).toMatchObject({ status: 502 });
    expect(await outcome("one.get")).toEqual(["intended", "uncertain"]);
  });

  it("is late where it never greets, and where it takes no body", async () => {
    verifies("beyond.http.late");
    expect(await throughTunnel(proxy, { host: mute })).toMatchObject({ status: 504 });
    expect(await outcome("mute.get")).toEqual(["intended", "uncertain"]);
    const put = { host: api, method: "PUT", path: "/one/takes-nothing", body: "x".repeat(LONG) };
    expect(await asked(put), proxy.output()).toMatchObject({ status: 504 });
    expect(await outcome("one.put")).toEqual(["intended", "uncertain"]);
  });

  it("is not asked for a change whose read stalls", async () => {
    verifies("beyond.http.late");
    const { status, body } = await asked({ host: api, method: "POST", path: "/one/long" });
    expect([status, body]).toEqual([502, expect.stringContaining("no answer")]);
    expect(await outcome("one.stalled")).toContain("failed");
  });

  it("ends a plain request to another host too", async () => {
    verifies("beyond.http.late");
    const [host] = mute.split(":");
    const other = await listen((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.write(`${HEAD}Content-Length: 5\r\n\r\nab`));
    });
    expect(host).toBe("127.0.0.1");
    expect((await asked({ host: other })).body).toBe("ab");
  });
});

describe("a client that stalls", () => {
  it("is refused while it sends its body, and nothing is decided", async () => {
    verifies("beyond.http.late");
    const before = (await proxy.records()).length;
    const headers = { "content-length": "100", "proxy-authorization": basicOf(AGENT_KEY) };
    for (const [path, begin] of [
      ["/one/a", "begin"],
      ["/one/b", ""],
    ] as const) {
      const socket = await proxySocket(proxy);
      const text = requestText({ method: "PUT", path: `http://${api}${path}`, host: api, headers });
      expect(await rawExchange(socket, text + begin)).toMatchObject({
        status: 408,
        body: expect.stringContaining("the client sent nothing"),
      });
    }
    expect((await proxy.records()).length).toBe(before);
  });

  it("does not keep the outcome of its call from the ledger", async () => {
    verifies("beyond.http.late");
    // The upstream here is only as fast as the machine.
    const patient = await start("{idle: 10s}");
    const socket = await proxySocket(patient);
    const headers = { "proxy-authorization": basicOf(AGENT_KEY) };
    socket.pause();
    socket.write(requestText({ path: `http://${api}/one/long`, host: api, headers }));
    await expect
      .poll(() => outcome("one.get", patient), { timeout: 60_000 })
      .toEqual(["intended", "succeeded"]);
    socket.destroy();
  });
});
