/** A real `svc proxy` process with its keys and files, and servers behind it that keep what reached them. */
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { afterAll } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { svc } from "./cli.ts";
import { tempDir } from "./tmp.ts";

const BIN = join(import.meta.dirname, "../../bin/svc.js");
const ended: (() => unknown)[] = [];

afterAll(async () => {
  for (const end of ended.splice(0).reverse()) await end();
});

/** A self-signed certificate for these names. */
export function selfSigned(names: readonly string[]): { key: string; cert: string; file: string } {
  const folder = tempDir("cert");
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const san = names.map((name) => (/^[\d.]+$/.test(name) ? `IP:${name}` : `DNS:${name}`)).join(",");
  const args = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
  ];
  execFileSync(
    "openssl",
    [...args, "-subj", "/CN=test", "-addext", `subjectAltName=${san}`, "-keyout", key, "-out", cert],
    { stdio: "ignore" },
  );
  return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8"), file: cert };
}

export interface SeenRequest {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

export interface Upstream {
  port: number;
  seen: SeenRequest[];
  server: Server;
}

type Answering = (request: SeenRequest, response: ServerResponse) => void;

/** A server that stores every request and gives the test's answers; with TLS if a certificate is given. */
export async function upstream(answer: Answering, tls?: { key: string; cert: string }): Promise<Upstream> {
  const seen: SeenRequest[] = [];
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString("latin1");
      const one = { method: request.method!, url: request.url!, headers: request.headers, body };
      seen.push(one);
      answer(one, response);
    });
  };
  const server =
    tls === undefined ? createServer(handle) : (createTlsServer(tls, handle) as unknown as Server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ended.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, seen, server };
}

export interface ProxyFiles {
  manifests: string;
  policy?: string;
  config?: string;
  args?: string[];
  env?: Record<string, string>;
}

export interface ProxyProcess {
  url: string;
  port: number;
  folder: string;
  /** The authority's certificate. */
  ca: string;
  output(): string;
  pid: number;
  /** Runs `svc` on the proxy's own data. */
  svc(...args: string[]): ReturnType<typeof svc>;
  /** The records of its ledger. */
  records(): Promise<Record<string, unknown>[]>;
  stop(): Promise<number | null>;
}

export const AGENT_KEY = "agent-key-0001";
export const APPROVER_KEY = "approver-key-0001";
export const ADMIN_KEY = "admin-key-0001";

export async function startProxy(files: ProxyFiles): Promise<ProxyProcess> {
  const folder = tempDir("proxy");
  const entry = (name: string, role: string, key: string) => ({
    name,
    role,
    key_sha256: sha256Hex(key),
    ...(role === "agent" ? { max_permissions: ["*"] } : {}),
  });
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("manifests.yaml", files.manifests);
  write("policy.yaml", files.policy ?? "version: 1\n");
  write(
    "keys.json",
    JSON.stringify([
      entry("agent", "agent", AGENT_KEY),
      entry("boss", "approver", APPROVER_KEY),
      entry("chief", "admin", ADMIN_KEY),
    ]),
  );
  write(
    "svc.config.yaml",
    `manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\ndata: data\n${files.config ?? ""}`,
  );
  const ca = join(folder, "ca.pem");
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder, ...files.env };
  const child = spawn(
    process.execPath,
    [BIN, "proxy", "--config", "svc.config.yaml", "--ca-out", ca, ...(files.args ?? [])],
    { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve));
  const url = await new Promise<string>((resolve, reject) => {
    const look = () => {
      const found = /listening on (http:\S+)/.exec(output)?.[1];
      if (found !== undefined) resolve(found);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    void exited.then((code) => reject(new Error(`the proxy ended with code ${code}: ${output}`)));
  });
  const stop = () => {
    child.kill("SIGTERM");
    return exited;
  };
  ended.push(stop);
  const run = (...args: string[]) =>
    svc([...args, "--config", "svc.config.yaml"], { cwd: folder, env: files.env ?? {} });
  return {
    url,
    port: Number(new URL(url).port),
    folder,
    ca: readFileSync(ca, "utf8"),
    output: () => output,
    pid: child.pid!,
    svc: run,
    async records() {
      const { out } = await run("export");
      return out
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    },
    stop,
  };
}

export interface RawAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Sends bytes as they are and reads one answer to its end. */
export async function rawExchange(socket: Socket, text: string): Promise<RawAnswer> {
  socket.write(text, "latin1");
  let read = "";
  return new Promise((resolve, reject) => {
    const done = () => {
      const at = read.indexOf("\r\n\r\n");
      if (at < 0) return reject(new Error(`no answer: ${read}`));
      const [line, ...lines] = read.slice(0, at).split("\r\n");
      const headers = Object.fromEntries(
        lines.map((one) => [
          one.slice(0, one.indexOf(":")).toLowerCase(),
          one.slice(one.indexOf(":") + 1).trim(),
        ]),
      );
      resolve({ status: Number(line!.split(" ")[1]), headers, body: read.slice(at + 4) });
    };
    socket.on("data", (chunk: Buffer) => {
      read += chunk.toString("latin1");
      const at = read.indexOf("\r\n\r\n");
      if (at < 0) return;
      if (/^HTTP\/1.1 200 Connection/.test(read)) return done();
      const length = /content-length: (\d+)/i.exec(read.slice(0, at))?.[1];
      if (length !== undefined && read.length - at - 4 >= Number(length)) done();
      else if (/^HTTP\/1.1 (?:204|304|101)/.test(read)) done();
      else if (/transfer-encoding: chunked/i.test(read) && read.endsWith("0\r\n\r\n")) done();
    });
    socket.once("error", reject);
    socket.once("close", done);
  });
}

export const basicOf = (key: string): string => `Basic ${Buffer.from(`agent:${key}`).toString("base64")}`;

/** A connection to the proxy. */
export function proxySocket({ port }: Pick<ProxyProcess, "port">): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => resolve(socket));
    socket.once("error", reject);
  });
}

/** A tunnel through the proxy, opened with TLS. `servername` and `ca` as a client would choose them. */
export async function tunnel(
  proxy: ProxyProcess,
  target: string,
  { servername = target.split(":")[0]!, ca = proxy.ca, key = AGENT_KEY } = {},
): Promise<Socket> {
  const socket = await proxySocket(proxy);
  const answer = await rawExchange(
    socket,
    `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\nProxy-Authorization: ${basicOf(key)}\r\n\r\n`,
  );
  if (answer.status !== 200) throw new Error(`CONNECT: ${answer.status} ${answer.body}`);
  socket.removeAllListeners("data");
  socket.removeAllListeners("close");
  return new Promise((resolve, reject) => {
    const secure = tlsConnect({ socket, ca, servername }, () => resolve(secure));
    secure.once("error", reject);
  });
}

export interface Wanted {
  method?: string;
  path?: string;
  host: string;
  headers?: Record<string, string>;
  body?: string;
}

/** The text of a request. */
export function requestText({ method = "GET", path = "/", host, headers = {}, body }: Wanted): string {
  const lines = Object.entries({
    host,
    ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body, "latin1")) }),
    ...headers,
  });
  return `${method} ${path} HTTP/1.1\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n${body ?? ""}`;
}

/** One request in its own tunnel. */
export async function throughTunnel(proxy: ProxyProcess, wanted: Wanted): Promise<RawAnswer> {
  const target = wanted.host.includes(":") ? wanted.host : `${wanted.host}:443`;
  const socket = await tunnel(proxy, target);
  try {
    return await rawExchange(socket, requestText(wanted));
  } finally {
    socket.destroy();
  }
}

/** One plain request with the whole address in its first line. */
export async function plainly(
  proxy: ProxyProcess,
  wanted: Wanted,
  key: string | null = AGENT_KEY,
): Promise<RawAnswer> {
  const socket = await proxySocket(proxy);
  const headers = { ...(key === null ? {} : { "proxy-authorization": basicOf(key) }), ...wanted.headers };
  try {
    const path = `http://${wanted.host}${wanted.path ?? "/"}`;
    return await rawExchange(socket, requestText({ ...wanted, path, headers }));
  } finally {
    socket.destroy();
  }
}
