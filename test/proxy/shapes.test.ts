/** Requests and answers of unusual shape, by real programs and raw upstreams: what passes, and what a credential never rides on. */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { createServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import { program } from "../support/programs.ts";
import { AGENT_KEY, selfSigned, startProxy, throughTunnel } from "../support/proxy.ts";
import { verifies } from "../support/verifies.ts";

const CURL = await program("curl");
await program("openssl");
const TLS = selfSigned(["localhost"]);
const SECRET = "shape-secret-4711";
const zipped = gzipSync(`{"token":"${SECRET}"}`).toString("latin1");
const reply = (head: string, body: string) => `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
const OK = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
const seen: string[] = [];

/** What the upstream sends for a path, with the credential in it. */
const ANSWERS: Record<string, string> = {
  hints: `HTTP/1.1 103 Early Hints\r\nLink: <${SECRET}>\r\n\r\n${reply(OK, "after")}`,
  "status-text": reply(`HTTP/1.1 200 ${SECRET}\r\n`, "told"),
  trailer: `${OK}Trailer: X-Token\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Token: ${SECRET}\r\n\r\n`,
  extension: `${OK}Transfer-Encoding: chunked\r\n\r\n4;t=${SECRET}\r\nbody\r\n0\r\n\r\n`,
  "header-name": reply(`${OK}X-${SECRET}: 1\r\n`, "named"),
  cookies: reply(
    `${OK}Set-Cookie: a=${SECRET}\r\nSet-Cookie: b=${encodeURIComponent(`/${SECRET}`)}\r\n`,
    "set",
  ),
  moved: reply(`HTTP/1.1 302 Found\r\nLocation: https://localhost/?key=${SECRET}\r\n`, ""),
  partial: reply(`HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-20/99\r\n`, `x${SECRET}y`),
  "no-content": `HTTP/1.1 204 No Content\r\nETag: "${SECRET}"\r\n\r\n`,
  "not-modified": `HTTP/1.1 304 Not Modified\r\nETag: "${SECRET}"\r\n\r\n`,
  "upper-gzip": reply(`${OK}Content-Encoding: GZIP\r\n`, zipped),
  "gzip-and-identity": reply(`${OK}Content-Encoding: gzip, identity\r\n`, zipped),
  "two-lines": reply(`${OK}Content-Encoding: identity\r\nContent-Encoding: gzip\r\n`, zipped),
  "to-the-end": `HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil ${SECRET}`,
};
/** Codings that only the client would undo. Nothing of them may pass. */
const HIDDEN: Record<string, string> = {
  twice: reply(`${OK}Content-Encoding: gzip, gzip\r\n`, gzipSync(gzipSync(SECRET)).toString("latin1")),
  zstd: reply(`${OK}Content-Encoding: zstd\r\n`, "\u0028\u00b5\u002f\u00fd"),
  transfer: `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n${zipped.length.toString(16)}\r\n${zipped}\r\n0\r\n\r\n`,
};

const sockets = new Set<Socket>();
const server = createServer(TLS, (socket) => {
  sockets.add(socket);
  let read = "";
  socket.on("error", () => {});
  socket.on("data", (bytes: Buffer) => {
    read += bytes.toString("latin1");
    const at = read.indexOf("\r\n\r\n");
    const length = Number(/content-length: (\d+)/i.exec(read)?.[1] ?? 0);
    if (at < 0 || read.length < at + 4 + length) return;
    seen.push(read);
    const path = /^\S+ \/one\/(\S+)/.exec(read)![1]!;
    read = "";
    const text = ANSWERS[path] ?? HIDDEN[path] ?? reply(OK, "done");
    socket.write(Buffer.from(text, "latin1"));
    if (path === "to-the-end") socket.end();
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});
const address = server.address();
const HOST = `localhost:${typeof address === "object" ? address?.port : ""}`;
const http = (method: string, more = "") =>
  `http: {host: "${HOST}", method: ${method}, path: "/one/{way}"${more}}`;
const proxy = await startProxy({
  manifests: `
- {tool: one.get, effect: read, permission: api, ${http("GET")}}
- {tool: one.head, effect: read, permission: api, ${http("HEAD")}}
- {tool: one.post, effect: irreversible, permission: api, ${http("POST")}}
- {tool: one.put, effect: irreversible, permission: api, ${http("PUT", ", body: opaque")}}
`,
  config: `allow_hosts: [localhost]
proxy: {idle: 20s}
credentials: [{name: main, hosts: ["${HOST}"], header: {name: X-Key}, from: {env: MY_TOKEN}}]
`,
  env: { NODE_EXTRA_CA_CERTS: TLS.file, MY_TOKEN: SECRET },
});

function curl(path: string, ...args: string[]): Promise<string> {
  const child = spawn(CURL, ["-sS", "-i", "--max-time", "60", ...args, `https://${HOST}/one/${path}`], {
    env: {
      HTTPS_PROXY: `http://agent:${AGENT_KEY}@127.0.0.1:${proxy.port}`,
      CURL_CA_BUNDLE: join(proxy.folder, "ca.pem"),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end("from a pipe");
  let out = "";
  child.stdout.on("data", (text: Buffer) => (out += text.toString("latin1")));
  return new Promise((resolve) =>
    // Curl shows the answer to CONNECT too.
    child.once("close", () => resolve(out.replace(/^HTTP\/1.1 200 Connection Established\r\n\r\n/, ""))),
  );
}

describe("an answer", () => {
  it.each(Object.keys(ANSWERS))("carries no credential: %s", async (way) => {
    verifies("beyond.credentials.masked");
    const out = await curl(way, "--compressed");
    expect(out).toMatch(/^HTTP\/1\.1 (?:200|204|206|302|304) /);
    expect(out).not.toContain(SECRET);
    expect(out).not.toContain(encodeURIComponent(SECRET));
  });

  it.each(Object.keys(HIDDEN))("in a coding that the proxy does not read is refused: %s", async (way) => {
    verifies("beyond.credentials.masked");
    const { status, body } = await throughTunnel(proxy, { host: HOST, path: `/one/${way}` });
    expect([status, body]).toEqual([502, expect.stringContaining("coding")]);
  });

  it("to HEAD has its headers and no body", async () => {
    verifies("beyond.http.result");
    const out = await curl("plain", "--head");
    expect(out).toMatch(/^HTTP\/1\.1 200 /);
    expect(out.trimEnd()).not.toContain("done");
  });
});

describe("a request", () => {
  it("that expects to continue, or comes in chunks, arrives whole with its length", async () => {
    verifies("beyond.http.args");
    const json = ["-H", "Content-Type: application/json", "-d", '{"a":1}'];
    expect(await curl("a", "-X", "POST", "-H", "Expect: 100-continue", ...json)).toContain("done");
    expect(await curl("b", "-X", "POST", "-H", "Transfer-Encoding: chunked", ...json)).toContain("done");
    for (const text of seen.slice(-2)) {
      expect(text).toMatch(/content-length: 7\r\n/i);
      expect(text).not.toMatch(/^(?:expect|transfer-encoding):/im);
      expect(text.endsWith('{"a":1}')).toBe(true);
    }
    expect(await curl("c", "-X", "PUT", "-T", "-")).toContain("done");
    expect(seen.at(-1)).toMatch(/content-length: 11\r\n.*from a pipe$/is);
  });

  it("for a range of a host with a credential asks for the whole", async () => {
    verifies("beyond.credentials.masked");
    await curl("plain", "-H", "Range: bytes=3-9", "-H", "If-Range: x");
    expect(seen.at(-1)).not.toMatch(/range/i);
  });
});
