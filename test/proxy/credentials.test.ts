/** Credentials that the agent never holds: added for it, and masked wherever they come back. */
import { createHash, createHmac } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SecretMask, spellingsOf } from "../../src/egress/secret-mask.ts";
import { program } from "../support/programs.ts";
import {
  type ProxyProcess,
  type SeenRequest,
  selfSigned,
  startProxy,
  throughTunnel,
  upstream,
} from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

await program("openssl");
const TLS = selfSigned(["localhost"]);
const SECRET = 's3cr3t/To+ken=é"x'.replace("é", "~");
const QUERY_SECRET = "query-secret-77";
const PASSWORD = "pass word:9/9";
const AWS = { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const ALL = [SECRET, QUERY_SECRET, PASSWORD, AWS.secret];

/** Answers with what it received, in the way that the path asks for. */
function echo({ url, headers, body }: SeenRequest, response: ServerResponse): void {
  const value = String(headers.authorization ?? "").replace(/^\w+ /, "");
  const path = url.split("?")[0]!;
  const way = path.split("/")[2] ?? "";
  const text = ways[way]?.(value) ?? JSON.stringify({ headers, url, body });
  response.setHeader("content-type", way === "json" ? "application/json" : "text/plain");
  response.setHeader("x-echo", value);
  const coding = String(headers["x-coding"] ?? "");
  if (coding !== "") {
    response.setHeader("content-encoding", coding);
    response.end({ gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }[coding]!(text));
  } else if (headers["x-chunks"] !== undefined) {
    const bytes = Buffer.from(text);
    for (let i = 0; i < bytes.length; i++) response.write(bytes.subarray(i, i + 1));
    response.end();
  } else response.end(text);
}

const ways: Record<string, (value: string) => string> = {
  plain: (value) => `before ${value} after ${value}`,
  base64: (value) => Buffer.from(`x${value}y`).toString("base64"),
  base64url: (value) => Buffer.from(`xy${value}z`).toString("base64url"),
  hex: (value) => Buffer.from(value).toString("hex").toUpperCase(),
  percent: (value) => encodeURIComponent(value),
  json: (value) => JSON.stringify({ token: value, deep: [value] }),
};

const api = await upstream(echo, TLS);
const bare = await upstream(echo, TLS);
const HOST = `localhost:${api.port}`;
const route = (tool: string, host: string, path: string, method = "GET", more = "") => `
- {tool: ${tool}, effect: read, permission: p, http: {host: "${host}", method: ${method}, path: "${path}"${more}}}`;
const MANIFESTS = `
${route("echo", HOST, "/echo/{way}")}
${route("echo.post", HOST, "/echo/{way}", "POST")}
${route("bare", `localhost:${bare.port}`, "/echo/{way}")}
${route("live", HOST, "/live", "GET", ", websocket: true")}
- tool: things.make
  effect: compensable
  permission: p
  http: {host: "${HOST}", method: POST, path: /things}
  compensation: {tool: things.drop, args: {id: one}, kind: inverse}
- {tool: things.drop, effect: irreversible, permission: p, http: {host: "${HOST}", method: DELETE, path: "/things/{id}"}}
`;
const start = (credentials: string, env: Record<string, string> = {}) =>
  startProxy({
    manifests: MANIFESTS,
    config: `allow_hosts: [localhost]\ncapture: {enabled: true}\ncredentials:\n${credentials}\n`,
    env: { NODE_EXTRA_CA_CERTS: TLS.file, MY_TOKEN: SECRET, ...env },
  });
const credential = (kind: string, from = "{env: MY_TOKEN}") =>
  `  - {name: main, hosts: ["${HOST}"], ${kind}, from: ${from}}`;
const get = (proxy: ProxyProcess, path: string, headers: Record<string, string> = {}) =>
  throughTunnel(proxy, { host: HOST, path, headers });

/** Every byte that the proxy left: its data, its output, its records. */
async function leftBy(proxy: ProxyProcess): Promise<string> {
  const files = readdirSync(join(proxy.folder, "data"), { recursive: true, withFileTypes: true });
  const texts = files
    .filter((file) => file.isFile())
    .map((file) => readFileSync(join(file.parentPath, file.name), "latin1"));
  return [...texts, proxy.output(), JSON.stringify(await proxy.records())].join("\n");
}

function holdsAny(text: string): string[] {
  const bytes = Buffer.from(text, "latin1");
  return ALL.filter((secret) => spellingsOf(secret).some((needle) => bytes.includes(needle)));
}

const shared = await start(credential("header: {name: Authorization, prefix: 'Bearer '}"));

describe("a credential", () => {
  it("is added as a header, and nothing of the agent's stays", async () => {
    verifies("beyond.credentials.added");
    verifies("beyond.credentials.stripped");
    const answer = await get(shared, "/echo/all?access_token=own&page=2", {
      authorization: "Bearer own",
      cookie: "a=b",
      "x-api-key": "own",
      "private-token": "own",
      "x-amz-security-token": "own",
      "x-page-size": "5",
      range: "bytes=0-3",
    });
    expect(answer.status).toBe(200);
    const { headers, url } = api.seen.at(-1)!;
    expect(headers.authorization).toBe(`Bearer ${SECRET}`);
    expect(url).toBe("/echo/all?page=2");
    expect(headers["x-page-size"]).toBe("5");
    for (const name of ["cookie", "x-api-key", "private-token", "x-amz-security-token", "range"])
      expect(headers[name]).toBeUndefined();
  });

  it("goes to its hosts alone", async () => {
    verifies("beyond.credentials.added");
    const answer = await throughTunnel(shared, {
      host: `localhost:${bare.port}`,
      path: "/echo/all",
      headers: { authorization: "Bearer own" },
    });
    expect(answer.status).toBe(200);
    expect(bare.seen.at(-1)!.headers.authorization).toBe("Bearer own");
    expect(holdsAny(JSON.stringify(bare.seen))).toEqual([]);
  });

  it("goes over verified TLS alone", async () => {
    verifies("beyond.credentials.added");
    const before = api.seen.length;
    const proxy = await startProxy({
      manifests: MANIFESTS,
      config: `allow_hosts: [localhost]\ncredentials:\n${credential("query: k")}\n`,
      env: { MY_TOKEN: SECRET, NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    });
    expect((await get(proxy, "/echo/all")).status).toBe(502);
    expect(api.seen.length).toBe(before);
  });

  it("is added as query, basic and AWS signature", async () => {
    verifies("beyond.credentials.added");
    verifies("beyond.credentials.sources");
    const folder = tempDir("secrets");
    const file = join(folder, "password");
    writeFileSync(file, `${PASSWORD}\n`, { mode: 0o600 });
    const query = await start(credential("query: api key", "{env: OTHER}"), { OTHER: QUERY_SECRET });
    await get(query, "/echo/all?api+key=own&x=1");
    expect(new URL(`http://x${api.seen.at(-1)!.url}`).searchParams.getAll("api key")).toEqual([QUERY_SECRET]);
    const basic = await start(credential("basic: {user: me}", `{file: "${file}"}`));
    const answer = await get(basic, "/echo/plain");
    const sent = api.seen.at(-1)!.headers.authorization!;
    expect(Buffer.from(sent.slice(6), "base64").toString()).toBe(`me:${PASSWORD}`);
    expect(answer.body).toBe("before ******** after ********");
    const script = join(folder, "keys.sh");
    writeFileSync(script, `#!/bin/sh\n[ "$1" = '$HOME; x' ] && echo '${AWS.id}:${AWS.secret}'\n`);
    chmodSync(script, 0o700);
    const aws = await start(
      credential(
        "aws_sigv4: {region: eu-west-1, service: execute-api}",
        `{command: ["${script}", "$HOME; x"]}`,
      ),
    );
    const body = '{"c":"d"}';
    const posted = await throughTunnel(aws, {
      host: HOST,
      method: "POST",
      path: "/echo/json?b=2&a=1",
      body,
      headers: {
        "content-type": "application/json",
        authorization: "AWS4-HMAC-SHA256 own",
        "x-amz-date": "20200101T000000Z",
      },
    });
    expect(posted.status).toBe(200);
    const seen = api.seen.at(-1)!;
    expect(seen.headers.authorization).toBe(awsAuthorization(seen, body));
    expect(holdsAny(posted.body + JSON.stringify(posted.headers))).toEqual([]);
    for (const proxy of [query, basic, aws]) expect(holdsAny(await leftBy(proxy))).toEqual([]);
  });

  it.each([
    ["a variable that is not set", "{env: MISSING}"],
    ["a file that is not there", "{file: nowhere}"],
    ["a command that fails", '{command: "false"}'],
    ["a value that is too short", '{command: "echo short"}'],
    ["a value with a line break", "{command: [printf, 'abcdefgh\\nX-Evil: 1']}"],
  ])("that cannot be read sends nothing: %s", async (_what, from) => {
    verifies("beyond.credentials.sources");
    const proxy = await start(credential("header: {name: X-Key}", from));
    const before = api.seen.length;
    const answer = await get(proxy, "/echo/all");
    expect([answer.status, answer.body]).toEqual([502, expect.stringContaining("credential main")]);
    expect(answer.body).not.toContain("abcdefgh");
    expect(api.seen.length).toBe(before);
    expect((await proxy.records()).some(({ event }) => event === "failed")).toBe(true);
  });

  it("is masked in the answer of another host, which can share a server with its own", async () => {
    verifies("beyond.credentials.masked");
    const told = Buffer.from(SECRET).toString("base64");
    await get(shared, "/echo/plain");
    const answer = await throughTunnel(shared, {
      host: `localhost:${bare.port}`,
      path: "/echo/all",
      headers: { authorization: SECRET, "x-told": told },
    });
    expect(answer.body).toContain("********");
    expect(holdsAny(answer.body + JSON.stringify(answer.headers))).toEqual([]);
  });

  it("opens no WebSocket, which could not be masked", async () => {
    verifies("beyond.credentials.masked");
    const headers = { connection: "Upgrade", upgrade: "websocket" };
    expect((await get(shared, "/live", headers)).status).toBe(403);
  });

  it("is used by a rollback", async () => {
    verifies("beyond.credentials.undo");
    const proxy = await start(credential("header: {name: X-Key}"));
    const json = { "content-type": "application/json" };
    await throughTunnel(proxy, { host: HOST, method: "POST", path: "/things", body: "{}", headers: json });
    const run = (await proxy.records()).find(({ run_id }) => run_id !== undefined)!["run_id"] as string;
    const done = await proxy.svc("rollback", run, "--json");
    expect(JSON.parse(done.out)).toMatchObject({ compensated: [0] });
    expect(api.seen.at(-1)).toMatchObject({ method: "DELETE", url: "/things/one" });
    expect(api.seen.at(-1)!.headers["x-key"]).toBe(SECRET);
    expect(holdsAny(done.out + done.err + (await leftBy(proxy)))).toEqual([]);
  });
});

describe("an answer", () => {
  const codings: Record<string, string>[] = [
    {},
    { "x-coding": "gzip" },
    { "x-coding": "deflate" },
    { "x-coding": "br" },
    { "x-chunks": "1" },
  ];
  it.each(Object.keys(ways).flatMap((way) => codings.map((headers) => [way, headers] as const)))(
    "is masked: %s %j",
    async (way, headers) => {
      verifies("beyond.credentials.masked");
      const answer = await get(shared, `/echo/${way}`, headers);
      expect(answer.status).toBe(200);
      expect(answer.body).toContain("********");
      expect(holdsAny(answer.body)).toEqual([]);
      expect(answer.headers["x-echo"]).toBe("********");
    },
  );

  it("is not in the ledger, the data or the log either", async () => {
    verifies("beyond.credentials.nowhere");
    expect(holdsAny(await leftBy(shared))).toEqual([]);
  });

  it("is masked wherever chunks divide it", () => {
    verifies("beyond.credentials.masked");
    const secret = fc.string({
      minLength: 8,
      maxLength: 40,
      unit: fc.constantFrom("a", "b", "/", "+", "9", '"'),
    });
    fc.assert(
      fc.property(secret, fc.nat(100), fc.array(fc.integer({ min: 1, max: 9 })), (text, which, cuts) => {
        const spellings = spellingsOf(text);
        const one = spellings[which % spellings.length]!;
        const bytes = Buffer.concat([Buffer.from("aab"), one, Buffer.from("<->"), one, one.subarray(0, 5)]);
        const stream = new SecretMask([text]).stream();
        const out: Buffer[] = [];
        stream.on("data", (chunk: Buffer) => out.push(chunk));
        let at = 0;
        for (const cut of cuts) {
          stream.write(bytes.subarray(at, at + cut));
          at += cut;
        }
        stream.end(bytes.subarray(at));
        const read = (stream.read() as Buffer | null) ?? Buffer.alloc(0);
        const all = Buffer.concat([...out, read]);
        expect(all.includes(one)).toBe(false);
      }),
    );
  });
});

/** The signature by the published steps of AWS, written again. */
function awsAuthorization({ method, url, headers }: SeenRequest, body: string): string {
  const sha = (text: string) => createHash("sha256").update(text).digest("hex");
  const mac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const date = headers["x-amz-date"] as string;
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization!)![1]!;
  const [path, query = ""] = url.split("?");
  const canonical = [
    method,
    path,
    query.split("&").sort().join("&"),
    ...names.split(";").map((name) => `${name}:${String(headers[name]).trim()}`),
    "",
    names,
    sha(body),
  ].join("\n");
  const scope = `${date.slice(0, 8)}/eu-west-1/execute-api/aws4_request`;
  const key = mac(
    mac(mac(mac(`AWS4${AWS.secret}`, date.slice(0, 8)), "eu-west-1"), "execute-api"),
    "aws4_request",
  );
  const signature = mac(key, `AWS4-HMAC-SHA256\n${date}\n${scope}\n${sha(canonical)}`).toString("hex");
  return `AWS4-HMAC-SHA256 Credential=${AWS.id}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
}
