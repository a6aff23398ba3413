/** What the governed proxy adds to a small request, against a proxy that only passes bytes on. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createPlainServer, type IncomingMessage } from "node:http";
import { createServer, request } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { sha256Hex } from "../src/kernel/hash.ts";

import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row, ratio } from "./report.ts";
import { ROOT, stopped } from "./server.ts";

const KEY = "bench-key";
const REQUESTS_A_ROUND = 100;
const BODY = JSON.stringify({ name: "Ada" });

/** A self-signed certificate for this machine. */
function selfSigned(folder: string): { key: string; cert: string; file: string } {
  const [key, file] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const kind = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench".split(
    " ",
  );
  const place = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", file];
  execFileSync("openssl", [...kind, ...place], { stdio: "ignore" });
  return { key: readFileSync(key, "utf8"), cert: readFileSync(file, "utf8"), file };
}

/** A connection through the proxy, with TLS to the server behind it. */
async function tunnel(proxy: number, target: string, ca: string): Promise<Socket> {
  const socket = connect(proxy, "127.0.0.1");
  const key = Buffer.from(`agent:${KEY}`).toString("base64");
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: Basic ${key}\r\n\r\n`);
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (!answer.toString().startsWith("HTTP/1.1 200")) throw new Error(`refused: ${answer}`);
  const secure = connectTls({ socket, ca, servername: "localhost" });
  await once(secure, "secureConnect");
  return secure;
}

/** The median of requests on one connection. */
async function timed(proxy: number, target: string, ca: string): Promise<number> {
  const socket = await tunnel(proxy, target, ca);
  const times: number[] = [];
  for (let n = 0; n < REQUESTS_A_ROUND; n++) {
    const start = performance.now();
    const sent = request({
      createConnection: () => socket,
      method: "POST",
      path: "/users",
      headers: { host: target, connection: "keep-alive", "content-type": "application/json" },
    });
    sent.end(BODY);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    await once(answer.resume(), "end");
    if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
    times.push(performance.now() - start);
  }
  socket.destroy();
  return median(times);
}

async function plainProxy(): Promise<{ port: number; close(): void }> {
  const server = createPlainServer();
  server.on("connect", ({ url }, client) => {
    const [host, port] = url!.split(":");
    const to = connect(Number(port), host, () => client.write("HTTP/1.1 200 OK\r\n\r\n"));
    to.pipe(client).pipe(to);
    for (const one of [to, client]) one.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, close: () => server.close() };
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-proxy-"));
  const certificate = selfSigned(folder);
  const upstream = createServer(certificate, (asked, answer) => {
    asked.resume().on("end", () => answer.setHeader("content-type", "application/json").end('{"id":"u1"}'));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const target = `localhost:${(upstream.address() as AddressInfo).port}`;
  const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value));
  write("keys.json", [{ name: "bench", role: "agent", max_permissions: ["*"], key_sha256: sha256Hex(KEY) }]);
  write("manifests.json", [
    {
      tool: "users.create",
      effect: "irreversible",
      permission: "users",
      http: { host: target, method: "POST", path: "/users" },
    },
  ]);
  write("svc.config.yaml", {
    manifests: "manifests.json",
    keys: "keys.json",
    data: "data",
    allow_hosts: ["localhost"],
  });
  const ca = join(folder, "ca.pem");
  const child = spawn(
    process.execPath,
    [join(ROOT, "bin/svc.js"), "proxy", "--config", join(folder, "svc.config.yaml"), "--ca-out", ca],
    { cwd: folder, env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate.file } },
  );
  const url = await new Promise<string>((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (text) => {
      said += text;
      const found = /listening on (http:\S+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`the proxy ended with code ${code}: ${said}`)));
  });
  const governed = Number(new URL(url).port);
  const plain = await plainProxy();
  try {
    const authority = readFileSync(ca, "utf8");
    const times = await alternate(rounds, {
      governed: () => timed(governed, target, authority),
      plain: () => timed(plain.port, target, certificate.cert),
    });
    const row = (what: string, value: number, unit = " ms"): Row => ({
      suite: "proxy",
      what,
      value,
      unit,
      goal: null,
    });
    return [
      row("a request through a plain proxy, median", median(times.plain)),
      row("a governed request, recorded before it is sent and before it is answered", median(times.governed)),
      row("governed against plain", ratio(times.governed, times.plain), "x"),
    ];
  } finally {
    plain.close();
    upstream.closeAllConnections();
    upstream.close();
    await stopped(child);
    rmSync(folder, { recursive: true, force: true });
  }
}
