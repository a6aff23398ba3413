/** `svc proxy` as an agent's programs meet it: what it decides, passes on, refuses and records. */
import { spawn, spawnSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import {
  AGENT_KEY,
  APPROVER_KEY,
  basicOf,
  type ProxyProcess,
  plainly,
  proxySocket,
  rawExchange,
  requestText,
  selfSigned,
  startProxy,
  throughTunnel,
  tunnel,
  upstream,
} from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const CURL = await program("curl");
const OPENSSL = await program("openssl");
const TLS = selfSigned(["localhost", "127.0.0.1"]);
const store = new Map<string, unknown>();

const api = await upstream(({ method, url, body }, response) => {
  const json = (status: number, value: unknown) => {
    const text = JSON.stringify(value);
    response.writeHead(status, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  };
  const id = url.split("?")[0]!.split("/")[2] ?? "";
  if (url === "/broken") return void response.socket!.destroy();
  if (url === "/away") return json(503, { error: "away" });
  if (method === "POST" && url.startsWith("/users")) {
    store.set("u1", JSON.parse(body));
    return json(201, { id: "u1" });
  }
  if (method === "DELETE") {
    store.delete(id);
    response.writeHead(204).end();
    return;
  }
  if (method === "PUT") {
    store.set(id, JSON.parse(body));
    return json(200, store.get(id));
  }
  if (store.has(id)) return json(200, store.get(id));
  if (url.startsWith("/files")) return json(200, { bytes: body.length });
  json(404, { error: "none" });
}, TLS);
const other = await upstream((_, response) => response.end("other"), TLS);
const plain = await upstream((_, response) => response.end("plain"));
const HOST = `localhost:${api.port}`;

const MANIFESTS = `
- tool: net.connect
  effect: irreversible
  permission: net
- tool: users.get
  effect: read
  permission: users
  http: {host: "${HOST}", method: GET, path: "/users/{id}"}
- tool: users.create
  effect: compensable
  permission: users
  http: {host: "${HOST}", method: POST, path: /users}
  compensation: {tool: users.delete, args: {id: $result.body.id}, kind: inverse}
  verification: {tool: users.get, args: {id: $result.body.id}, expect: {status: 404}}
- tool: users.delete
  effect: irreversible
  permission: users
  http: {host: "${HOST}", method: DELETE, path: "/users/{id}"}
- tool: users.set
  effect: reversible
  permission: users
  http: {host: "${HOST}", method: PUT, path: "/users/{id}"}
  before: {tool: users.get, args: {id: $args.id}, absent: {status: 404}}
  compensation:
    tool: users.set
    args: {id: $args.id, name: $before.body.name}
    kind: inverse
    when_absent: {tool: users.delete, args: {id: $args.id}}
  verification: {tool: users.get, args: {id: $args.id}, expect: $before}
- tool: files.put
  effect: irreversible
  permission: users
  http: {host: "${HOST}", method: POST, path: "/files/{name}", body: opaque}
- tool: broken.get
  effect: read
  permission: users
  http: {host: "${HOST}", method: GET, path: /broken}
- tool: away.get
  effect: read
  permission: users
  http: {host: "${HOST}", method: GET, path: /away}
- tool: live.open
  effect: read
  permission: users
  http: {host: "${HOST}", method: GET, path: /live, websocket: true}
`;
const POLICY = `
version: 1
rules:
  - {id: big, match: {tool: users.create}, when: [{path: $args.vip, op: eq, value: true}], action: require_approval, reason: vip users need a person}
  - {id: never, match: {tool: users.delete}, when: [{path: $args.id, op: eq, value: root}], action: deny, reason: root stays}
  - {id: hosts, match: {tool: net.connect}, action: require_approval, reason: it leaves the machine}
`;
const ENV = { NODE_EXTRA_CA_CERTS: TLS.file };
const start = (more: Partial<Parameters<typeof startProxy>[0]> = {}) =>
  startProxy({
    manifests: MANIFESTS,
    policy: POLICY,
    env: ENV,
    args: ["--allow-host", "localhost"],
    ...more,
  });
const ask = (proxy: ProxyProcess, method: string, path: string, value?: unknown, headers = {}) =>
  throughTunnel(proxy, {
    host: HOST,
    method,
    path,
    ...(value === undefined
      ? { headers }
      : {
          body: typeof value === "string" ? value : JSON.stringify(value),
          headers: { "content-type": "application/json", ...headers },
        }),
  });
const shared = await start();
const stepsOf = async (proxy: ProxyProcess) =>
  (await proxy.records()).filter(({ step }) => step !== undefined);

describe("requests", () => {
  it("are decided, sent as they came, and recorded", async () => {
    verifies("beyond.http.result");
    const made = await ask(shared, "POST", "/users", { name: "Ada" }, { "x-own": "1", "svc-reason": "no" });
    expect([made.status, made.body]).toEqual([201, '{"id":"u1"}']);
    const sent = api.seen.at(-1)!;
    expect(sent).toMatchObject({ method: "POST", url: "/users", body: '{"name":"Ada"}' });
    expect(sent.headers).toMatchObject({ host: HOST, "x-own": "1" });
    expect(Object.keys(sent.headers)).not.toContain("proxy-authorization");
    expect(Object.keys(sent.headers)).not.toContain("svc-reason");
    const got = await ask(shared, "GET", "/users/u1");
    expect(JSON.parse(got.body)).toEqual({ name: "Ada" });
    expect((await ask(shared, "GET", "/users/nobody")).status).toBe(404);
    expect((await ask(shared, "GET", "/away")).status).toBe(503);
    expect((await ask(shared, "GET", "/broken")).status).toBe(502);
    const ends = (await stepsOf(shared)).filter(({ event }) => event !== "intended" && event !== "allowed");
    const of = (tool: string) => ends.filter((one) => one["tool"] === tool).map(({ event }) => event);
    expect(of("users.create")).toContain("succeeded");
    expect(of("users.get")).toEqual(expect.arrayContaining(["succeeded", "failed"]));
    expect(of("away.get")).toContain("uncertain");
    expect(of("broken.get")).toContain("uncertain");
  });

  it("that fit no manifest of a named host are refused and not sent", async () => {
    verifies("beyond.http.unfit");
    const before = api.seen.length;
    for (const [method, path] of [
      ["PATCH", "/users/u1"],
      ["GET", "/admin"],
      ["GET", "/users/u1/keys"],
      ["OPTIONS", "/users"],
    ] as const) {
      const refused = await ask(shared, method, path);
      expect(refused.status).toBe(403);
      expect(refused.headers["svc-decision"]).toBe("block");
      expect(JSON.parse(refused.body).error).toContain("no http manifest fits");
    }
    // Without TLS the host is the same one.
    expect((await plainly(shared, { host: HOST, path: "/users/u1" })).status).toBe(403);
    expect(api.seen.length).toBe(before);
  });

  it("that two programs could read differently are refused", async () => {
    verifies("beyond.http.strict-path");
    verifies("beyond.http.strict-headers");
    const before = api.seen.length;
    for (const path of [
      "/users//u1",
      "/users/../admin",
      "/users/%2e%2e",
      "/users/a%2fb",
      "/users/u1?a=1&a=2",
      "/users/u1?_method=DELETE",
      "/users/u1?a=1;a=2",
      "/users/u1?a=1&a[]=2",
    ])
      expect((await ask(shared, "GET", path)).status).toBe(400);
    const bad: Record<string, string>[] = [
      { "x-http-method-override": "DELETE" },
      { x_http_method_override: "DELETE" },
      { "x-original-url": "/users/root" },
      { connection: "close, content-type" },
      { host: `localhost:${other.port}` },
      { host: "evil.test" },
    ];
    for (const headers of bad)
      expect((await ask(shared, "GET", "/users/u1", undefined, headers)).status).toBe(400);
    const socket = await tunnel(shared, HOST);
    const smuggled = await rawExchange(
      socket,
      `POST /users HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    );
    expect(smuggled.status).toBe(400);
    const twice = await rawExchange(
      await tunnel(shared, HOST),
      `GET /users/u1 HTTP/1.1\r\nHost: ${HOST}\r\nHost: evil.test\r\n\r\n`,
    );
    expect(twice.status).toBe(400);
    const absolute = await rawExchange(
      await tunnel(shared, HOST),
      `GET https://evil.test/users/u1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
    );
    expect(absolute.status).toBe(400);
    const within = await rawExchange(
      await tunnel(shared, HOST),
      `CONNECT ${HOST} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
    );
    expect([within.status, within.body]).toEqual([
      400,
      expect.stringContaining("a tunnel leads to one host"),
    ]);
    for (const name of ["users", "_method"])
      expect((await ask(shared, "POST", `/users?${name}=1`, { [name]: "x" })).status).toBe(400);
    expect((await ask(shared, "POST", "/users", { _method: "DELETE" })).status).toBe(400);
    // Names with dots at the end are the same host, and another name that nobody allowed is none of its.
    expect((await plainly(shared, { host: HOST.replace(":", "..:"), path: "/users/u1" })).status).not.toBe(
      200,
    );
    expect(api.seen.length).toBe(before);
  });

  it("with a name twice, other content or a long body are refused", async () => {
    verifies("beyond.http.args");
    verifies("beyond.http.content-types");
    verifies("beyond.http.long-body");
    expect((await ask(shared, "PUT", "/users/u1?name=x", { name: "y" })).status).toBe(400);
    expect((await ask(shared, "POST", "/users", "x", { "content-type": "text/plain" })).status).toBe(415);
    expect((await ask(shared, "POST", "/users", "x", { "content-encoding": "gzip" })).status).toBe(415);
    // Express reads this as two members, and the proxy as one.
    const hidden = '{"name": "+ACI-, +ACI-vip+ACI-: true, +ACI-x+ACI-: +ACI-"}';
    for (const type of [
      "application/json; charset=utf-7",
      "application/x-www-form-urlencoded;charset=ibm037",
    ])
      expect((await ask(shared, "POST", "/users", hidden, { "content-type": type })).status).toBe(415);
    expect((await ask(shared, "POST", "/users", "x".repeat(1_048_577))).status).toBe(413);
    const chunked = await rawExchange(
      await tunnel(shared, HOST),
      `POST /users HTTP/1.1\r\nHost: ${HOST}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${"10000\r\n"}${"x".repeat(65_536)}\r\n`.repeat(
        1,
      ) + `10000\r\n${"x".repeat(65_536)}\r\n`.repeat(16),
    );
    expect(chunked.status).toBe(413);
    const long = "y".repeat(3_000_000);
    const put = await ask(shared, "POST", "/files/a", long, { "content-type": "application/octet-stream" });
    expect(JSON.parse(put.body)).toEqual({ bytes: long.length });
    expect(createHash("sha256").update(api.seen.at(-1)!.body).digest("hex")).toBe(
      createHash("sha256").update(long).digest("hex"),
    );
  });
});

describe("decisions", () => {
  it("a blocked request is 403 with its reason and, where it waits, the request's id", async () => {
    verifies("beyond.http.blocked");
    const before = api.seen.length;
    const denied = await ask(shared, "DELETE", "/users/root");
    expect([denied.status, denied.headers["svc-decision"]]).toEqual([403, "block"]);
    expect(JSON.parse(denied.body).error).toContain("root stays");
    expect(denied.headers["svc-approval-id"]).toBeUndefined();
    const waits = await ask(shared, "POST", "/users", { name: "x", vip: true });
    expect(waits.status).toBe(403);
    expect(waits.headers["svc-approval-id"]).toMatch(/^apr_/);
    expect(api.seen.length).toBe(before);
    const list = await shared.svc("approvals", "list", "--json");
    expect(list.out).toContain(waits.headers["svc-approval-id"]!);
    await shared.svc("approvals", "approve", waits.headers["svc-approval-id"]!, "--as", "boss");
    expect((await ask(shared, "POST", "/users", { name: "x", vip: true })).status).toBe(201);
  });

  it("a request that waits is held and sent once a person approves it", async () => {
    verifies("beyond.http.held");
    const proxy = await start({ config: "approvals: {wait: 300s}\n" });
    const held = ask(proxy, "POST", "/users", { name: "held", vip: true });
    const pending = async () => {
      const { out } = await proxy.svc("approvals", "list", "--json");
      return (JSON.parse(out) as { approvals: { id: string }[] }).approvals[0]?.id;
    };
    const nextRequest = async () => {
      await until(async () => (await pending()) !== undefined, "an approval request");
      return (await pending())!;
    };
    await proxy.svc("approvals", "approve", await nextRequest(), "--as", "boss");
    expect((await held).status).toBe(201);

    const before = api.seen.length;
    const leaving = await tunnel(proxy, HOST);
    const body = JSON.stringify({ name: "gone", vip: true });
    leaving.write(
      requestText({
        host: HOST,
        method: "POST",
        path: "/users",
        body,
        headers: { "content-type": "application/json" },
      }),
    );
    const second = await nextRequest();
    leaving.destroy();
    await proxy.svc("approvals", "approve", second, "--as", "boss");
    const again = await ask(proxy, "POST", "/users", { name: "gone", vip: true });
    expect(again.status).toBe(201);
    expect(api.seen.slice(before).filter(({ method }) => method === "POST")).toHaveLength(1);
  });

  it("nothing is sent while the service cannot record", async () => {
    verifies("beyond.http.away");
    const proxy = await start();
    expect((await ask(proxy, "GET", "/users/u1")).status).not.toBe(503);
    rmSync(join(proxy.folder, "data"), { recursive: true, force: true });
    writeFileSync(join(proxy.folder, "data"), "");
    const before = api.seen.length;
    expect((await ask(proxy, "GET", "/users/u1")).status).toBe(503);
    expect(api.seen.length).toBe(before);
  });
});

describe("credentials of the proxy", () => {
  it("an agent key by Basic or Bearer, else 407", async () => {
    verifies("beyond.proxy.key");
    const answer = async (authorization: string | null) => {
      const socket = await proxySocket(shared);
      const line = authorization === null ? "" : `Proxy-Authorization: ${authorization}\r\n`;
      return rawExchange(socket, `CONNECT ${HOST} HTTP/1.1\r\nHost: ${HOST}\r\n${line}\r\n`);
    };
    for (const wrong of [null, "Basic eA==", "Bearer nope", basicOf("nope"), `Digest ${AGENT_KEY}`]) {
      const refused = await answer(wrong);
      expect([refused.status, refused.headers["proxy-authenticate"]]).toEqual([
        407,
        'Basic realm="svc proxy", charset="UTF-8"',
      ]);
    }
    expect((await answer(basicOf(AGENT_KEY))).status).toBe(200);
    expect((await answer(`Bearer ${AGENT_KEY}`)).status).toBe(200);
    expect((await answer(`Bearer ${APPROVER_KEY}`)).status).toBe(403);
    expect((await plainly(shared, { host: HOST, path: "/users/u1" }, null)).status).toBe(407);
  });

  it("listens on loopback alone", async () => {
    verifies("beyond.proxy.loopback");
    const folder = tempDir("listen");
    writeFileSync(join(folder, "keys.json"), "[]");
    const { code, err } = await svc(["proxy", "--listen", "0.0.0.0:0", "--keys", "keys.json"], {
      cwd: folder,
    });
    expect(code).toBe(1);
    expect(err).toContain("loopback");
  });
});

describe("other hosts", () => {
  it("are calls of net.connect, passed through unread", async () => {
    verifies("beyond.proxy.net-connect");
    const target = `127.0.0.1:${other.port}`;
    const proxy = await start({
      args: ["--allow-host", "localhost"],
      config: "allow_hosts: [127.0.0.1]\n",
      policy: POLICY,
    });
    const socket = await tunnel(proxy, target, { ca: TLS.cert, servername: "" });
    const answer = await rawExchange(
      socket,
      requestText({ host: "anything.test", headers: { connection: "close" } }),
    );
    expect([answer.status, other.seen.at(-1)!.headers.host]).toEqual([200, "anything.test"]);
    expect((await plainly(proxy, { host: `127.0.0.1:${plain.port}` })).body).toContain("plain");
  });

  it("need approval if the policy requires it, and are recorded", async () => {
    verifies("beyond.proxy.net-connect");
    verifies("beyond.proxy.allow-host");
    // A public address: the question comes before the connection.
    const socket = await proxySocket(shared);
    const asked = await rawExchange(
      socket,
      `CONNECT 1.1.1.1:443 HTTP/1.1\r\nHost: 1.1.1.1:443\r\nProxy-Authorization: ${basicOf(AGENT_KEY)}\r\n\r\n`,
    );
    expect(asked.status).toBe(403);
    expect(asked.headers["svc-approval-id"]).toMatch(/^apr_/);
    const denying = await start({
      config: "allow_hosts: [127.0.0.1]\n",
      policy:
        "version: 1\nrules:\n  - {id: no, match: {tool: net.connect}, action: deny, reason: no way out}\n",
    });
    const refused = await plainly(denying, { host: `127.0.0.1:${plain.port}` });
    expect([refused.status, JSON.parse(refused.body).error]).toEqual([
      403,
      expect.stringContaining("no way out"),
    ]);
    const allowing = await start({ config: "allow_hosts: [127.0.0.1]\n", policy: "version: 1\n" });
    expect((await plainly(allowing, { host: `127.0.0.1:${plain.port}` })).status).toBe(200);
    const steps = (await stepsOf(allowing)).filter(({ tool }) => tool === "net.connect");
    expect(steps.map(({ event }) => event)).toContain("succeeded");
  });

  it("are resolved after the decision alone, because a lookup carries a name out", async () => {
    verifies("beyond.proxy.no-lookup");
    const shim = join(tempDir("lookups"), "shim.mjs");
    writeFileSync(
      shim,
      `import dns from "node:dns/promises";
import { syncBuiltinESMExports } from "node:module";
dns.lookup = async (host) => {
  process.stderr.write("looked up " + host + "\\n");
  return [{ address: "10.1.2.3", family: 4 }];
};
syncBuiltinESMExports();
`,
    );
    const asking = `version: 1
rules:
  - {id: no, match: {tool: net.connect}, when: [{path: $args.host, op: eq, value: secret.evil.test}], action: deny}
  - {id: ask, match: {tool: net.connect}, when: [{path: $args.host, op: eq, value: secret.asked.test}], action: require_approval}
`;
    const proxy = await start({ policy: asking, env: { NODE_OPTIONS: `--import ${shim}` } });
    for (const name of ["secret.evil.test", "secret.asked.test"]) {
      const socket = await proxySocket(proxy);
      const auth = `Proxy-Authorization: ${basicOf(AGENT_KEY)}`;
      const text = `CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}:443\r\n${auth}\r\n\r\n`;
      expect((await rawExchange(socket, text)).status).toBe(403);
      expect((await plainly(proxy, { host: name })).status).toBe(403);
    }
    expect(proxy.output()).not.toContain("looked up");
    // An allowed name is resolved, and its private address is refused.
    const refused = await plainly(proxy, { host: "inside.allowed.test" });
    expect([refused.status, JSON.parse(refused.body).error]).toEqual([
      403,
      expect.stringContaining("private"),
    ]);
    await until(() => proxy.output().includes("looked up inside.allowed.test"), "the lookup");
    const steps = (await stepsOf(proxy)).filter(({ tool }) => tool === "net.connect");
    expect(steps.map(({ event }) => event)).toContain("failed");
  });

  it("that are private are refused unless named literally", async () => {
    verifies("beyond.proxy.private");
    const before = plain.seen.length;
    for (const host of [
      `127.0.0.1:${plain.port}`,
      `[::1]:${plain.port}`,
      `[::ffff:127.0.0.1]:${plain.port}`,
      `2130706433:${plain.port}`,
      `0.0.0.0:${plain.port}`,
      "169.254.169.254",
      "metadata.google.internal",
      "10.0.0.1",
      "ip6-localhost",
    ])
      expect((await plainly(shared, { host })).status, host).toBeGreaterThanOrEqual(400);
    expect(plain.seen.length).toBe(before);
    const strict = await start({ args: [] });
    const refused = await ask(strict, "GET", "/users/u1");
    expect([refused.status, JSON.parse(refused.body).error]).toEqual([
      502,
      expect.stringContaining("private"),
    ]);
  });
});

describe("tunnels", () => {
  it("use an authority of the run, held to the named hosts", async () => {
    verifies("beyond.proxy.authority");
    const certificate = new X509Certificate(shared.ca);
    expect(certificate.ca).toBe(true);
    const hours = (Date.parse(certificate.validTo) - Date.now()) / 3_600_000;
    expect(hours).toBeLessThanOrEqual(24);
    expect(hours).toBeGreaterThan(23);
    const text = spawnSync(OPENSSL, ["x509", "-noout", "-text"], {
      input: shared.ca,
      encoding: "utf8",
    }).stdout;
    expect(text).toMatch(
      /Name Constraints: critical\s+Permitted:\s+DNS:localhost\s+Excluded:\s+IP:0\.0\.0\.0/,
    );
    await expect(tunnel(shared, HOST, { ca: TLS.cert })).rejects.toThrow(/certificate|verify/);
    const next = await start();
    expect(next.ca).not.toBe(shared.ca);
  });

  it("greet the host that they were asked for", async () => {
    verifies("beyond.proxy.server-name");
    const before = other.seen.length;
    await expect(tunnel(shared, HOST, { servername: "evil.test" })).rejects.toThrow();
    const proxy = await start({ config: "allow_hosts: [127.0.0.1]\n" });
    await expect(
      tunnel(proxy, `127.0.0.1:${other.port}`, { servername: "evil.test", ca: TLS.cert }),
    ).rejects.toThrow();
    await until(() => proxy.output().includes("names another server"), "the refusal in the log");
    expect(other.seen.length).toBe(before);
  });

  it("hold TLS alone", async () => {
    verifies("beyond.proxy.not-understood");
    const proxy = await start({ config: "allow_hosts: [127.0.0.1]\n" });
    for (const target of [HOST, `127.0.0.1:${plain.port}`]) {
      const socket = await proxySocket(proxy);
      const opened = await rawExchange(
        socket,
        `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: ${basicOf(AGENT_KEY)}\r\n\r\n`,
      );
      expect(opened.status).toBe(200);
      socket.removeAllListeners("data");
      const refused = await rawExchange(socket, "SSH-2.0-OpenSSH_9.2\r\n");
      expect(refused.body).toContain("only TLS is understood");
    }
  });

  it("open WebSockets only where a manifest allows them", async () => {
    verifies("beyond.http.websocket");
    api.server.on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.pipe(socket);
      socket.on("error", () => socket.destroy());
    });
    const headers = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" };
    const refused = await ask(shared, "GET", "/users/u1", undefined, headers);
    expect([refused.status, refused.body]).toEqual([403, expect.stringContaining("http.websocket")]);
    const socket = await tunnel(shared, HOST);
    const opened = await rawExchange(socket, requestText({ host: HOST, path: "/live", headers }));
    expect(opened.status).toBe(101);
    socket.removeAllListeners("data");
    const echoed = new Promise((resolve) =>
      socket.once("data", (chunk: Buffer) => resolve(chunk.toString())),
    );
    socket.write("frames");
    expect(await echoed).toBe("frames");
    socket.destroy();
    const other = await ask(shared, "GET", "/live", undefined, { connection: "Upgrade", upgrade: "h2c" });
    expect(other.status).toBe(403);
  });
});

describe("svc rollback", () => {
  it("undoes the requests of a run, reads back, and restores the earlier state", async () => {
    verifies("beyond.http.undo");
    const proxy = await start({ config: "allow_hosts: [localhost]\n" });
    store.clear();
    store.set("u9", { name: "before" });
    expect((await ask(proxy, "POST", "/users", { name: "new" })).status).toBe(201);
    expect((await ask(proxy, "PUT", "/users/u9", { name: "after" })).status).toBe(200);
    expect((await ask(proxy, "PUT", "/users/u8", { name: "fresh" })).status).toBe(200);
    const run = (await proxy.records()).find(({ run_id }) => run_id !== undefined)!["run_id"] as string;
    const done = await proxy.svc("rollback", run, "--json");
    expect(JSON.parse(done.out)).toMatchObject({ complete: true, compensated: [2, 1, 0] });
    expect([...store]).toEqual([["u9", { name: "before" }]]);
    expect(api.seen.at(-1)!.method).toBe("GET");
  });

  it("refuses a private host that nobody named", async () => {
    verifies("beyond.http.undo");
    const proxy = await start();
    expect((await ask(proxy, "POST", "/users", { name: "new" })).status).toBe(201);
    const run = (await proxy.records()).find(({ run_id }) => run_id !== undefined)!["run_id"] as string;
    const done = await proxy.svc("rollback", run);
    expect(done.code).toBe(2);
    expect(done.out).toContain("private");
  });
});

describe("curl", () => {
  const curl = (...args: string[]) =>
    new Promise<{ code: number | null; out: string }>((resolve) => {
      const child = spawn(CURL, ["-sS", ...args], { stdio: ["ignore", "pipe", "pipe"] });
      let out = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (out += text));
      child.once("close", (code) => resolve({ code, out }));
    });

  it("goes through with the authority, and fails without it", async () => {
    verifies("beyond.proxy.authority");
    verifies("beyond.http.result");
    store.set("u1", { name: "Ada" });
    const through = ["-x", `http://agent:${AGENT_KEY}@127.0.0.1:${shared.port}`];
    const trusted = await curl(
      ...through,
      "--cacert",
      join(shared.folder, "ca.pem"),
      `https://${HOST}/users/u1`,
    );
    expect(trusted).toEqual({ code: 0, out: '{"name":"Ada"}' });
    expect((await curl(...through, `https://${HOST}/users/u1`)).code).toBe(60);
  });
});
