/** Git itself, through the proxy, to a repository behind `git http-backend`. */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { program } from "../support/programs.ts";
import { AGENT_KEY, selfSigned, startProxy, throughTunnel } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");
await program("openssl");
const TLS = selfSigned(["localhost"]);
const TOKEN = "git-token-0815";
const root = tempDir("repositories");
spawnSync(GIT, ["init", "-q", "--bare", "-b", "main", join(root, "team/app.git")]);

/** The common gateway interface, as far as the program needs it. */
function backend(request: IncomingMessage, response: ServerResponse): void {
  const expected = `Basic ${Buffer.from(`git:${TOKEN}`).toString("base64")}`;
  if (request.headers.authorization !== expected) {
    response.writeHead(401, { "www-authenticate": "Basic" }).end();
    return;
  }
  const [path, query = ""] = request.url!.split("?");
  const child = spawn(GIT, ["http-backend"], {
    env: {
      PATH: process.env["PATH"]!,
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      REMOTE_USER: "git",
      REQUEST_METHOD: request.method!,
      PATH_INFO: path!,
      QUERY_STRING: query,
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      CONTENT_LENGTH: request.headers["content-length"] ?? "",
      HTTP_CONTENT_ENCODING: request.headers["content-encoding"] ?? "",
      GIT_PROTOCOL: String(request.headers["git-protocol"] ?? ""),
    },
  });
  request.pipe(child.stdin);
  child.stdin.on("error", () => {});
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.once("close", () => {
    const all = Buffer.concat(chunks);
    const at = all.indexOf("\r\n\r\n");
    const lines = all
      .toString("latin1", 0, at)
      .split("\r\n")
      .map((line) => line.split(": ") as [string, string]);
    const status = lines.find(([name]) => name === "Status")?.[1] ?? "200";
    response.writeHead(
      Number.parseInt(status, 10),
      Object.fromEntries(lines.filter(([name]) => name !== "Status")),
    );
    response.end(all.subarray(at + 4));
  });
}

const server = createServer(TLS, backend);
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => server.close());
const HOST = `localhost:${(server.address() as AddressInfo).port}`;
const proxy = await startProxy({
  manifests: `
- {tool: git.fetch, effect: read, permission: git}
- {tool: git.push, effect: irreversible, permission: git}
`,
  policy: `
version: 1
rules:
  - {id: forced, match: {tool: git.push}, when: [{path: $args.force, op: eq, value: true}], action: require_approval, reason: it may drop commits}
  - {id: moved, match: {tool: git.push}, when: [{path: $args.force, op: eq, value: false}, {path: $args.refs, op: contains, value: refs/heads/never}], action: deny, reason: never}
  - {id: deleted, match: {tool: git.push}, when: [{path: $args.delete, op: eq, value: true}], action: deny, reason: refs stay}
`,
  config: `capture: {enabled: true}
allow_hosts: [localhost]
credentials: [{name: git, hosts: ["${HOST}"], basic: {user: git}, from: {env: GIT_TOKEN}}]
`,
  env: { NODE_EXTRA_CA_CERTS: TLS.file, GIT_TOKEN: TOKEN },
});

const work = tempDir("work");
function git(...args: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(GIT, args, {
    cwd: work,
    env: {
      PATH: process.env["PATH"]!,
      HOME: work,
      https_proxy: `http://agent:${AGENT_KEY}@127.0.0.1:${proxy.port}`,
      GIT_SSL_CAINFO: join(proxy.folder, "ca.pem"),
      GIT_TERMINAL_PROMPT: "0",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "a",
      GIT_AUTHOR_EMAIL: "a@b",
      GIT_COMMITTER_NAME: "a",
      GIT_COMMITTER_EMAIL: "a@b",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (out += text));
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, out })));
}

const commit = async (name: string, bytes = 10) => {
  mkdirSync(join(work, "app"), { recursive: true });
  writeFileSync(join(work, "app", name), Buffer.alloc(bytes, Math.random().toString()));
  await git("-C", "app", "add", name);
  await git("-C", "app", "commit", "-qm", name);
};

describe("git over HTTPS", () => {
  const calls = async (tool: string) =>
    (await proxy.records()).filter((one) => one["tool"] === tool).map(({ event }) => event);

  it("is decided by what it reads and changes", async () => {
    verifies("beyond.git.recognised");
    const url = `https://${HOST}/team/app.git`;
    expect(await git("clone", "-q", url, "app")).toMatchObject({ code: 0 });
    await commit("one", 3_000_000);
    expect(await git("-C", "app", "push", "-q", "origin", "HEAD:main")).toMatchObject({ code: 0 });
    const head = spawnSync(GIT, ["-C", join(root, "team/app.git"), "log", "--format=%s", "main"], {
      encoding: "utf8",
    });
    expect(head.stdout).toBe("one\n");
    expect(await calls("git.push")).toContain("succeeded");
    expect(await calls("git.fetch")).toContain("succeeded");

    await commit("fast-forward");
    expect(await git("-C", "app", "push", "-q", "origin", "HEAD:main")).toMatchObject({ code: 0 });
    await git("-C", "app", "checkout", "-q", "--orphan", "fresh");
    await commit("two");
    const update = await git("-C", "app", "push", "-qf", "origin", "HEAD:main");
    expect(update.code).not.toBe(0);
    expect(update.out).toContain("403");
    const id = spawnSync(GIT, ["-C", join(work, "app"), "rev-parse", "HEAD"], { encoding: "utf8" });
    const { out } = await proxy.svc("approvals", "list", "--json");
    const [request] = JSON.parse(out).approvals;
    const shown = (await proxy.svc("approvals", "show", request.id, "--json")).out;
    for (const text of [`${HOST}/team/app`, "refs/heads/main", id.stdout.trim(), "true"])
      expect(shown).toContain(text);
    await proxy.svc("approvals", "approve", request.id, "--as", "boss");
    expect(await git("-C", "app", "push", "-qf", "origin", "HEAD:main")).toMatchObject({ code: 0 });
    expect(await git("-C", "app", "push", "-q", "origin", "HEAD:side")).toMatchObject({ code: 0 });
    await commit("three");
    expect(await git("-C", "app", "push", "-q", "origin", "HEAD:main")).toMatchObject({ code: 0 });
    const back = await git("-C", "app", "push", "-qf", "origin", "HEAD~1:main");
    expect([back.code === 0, back.out]).toEqual([false, expect.stringContaining("403")]);
    verifies("beyond.git.unknown-force");
    const open = JSON.parse((await proxy.svc("approvals", "list", "--json")).out).approvals;
    const unknown = (await proxy.svc("approvals", "show", open[0].id, "--json")).out;
    expect(unknown).toContain('"unknown"');
    expect(unknown).not.toContain("could not compare");
    // A rule for pushes that are surely not forced does not hold.
    const never = await git("-C", "app", "push", "-qf", "origin", "HEAD~1:main", "HEAD~1:refs/heads/never");
    expect(never.out).toContain("403");
    const blocked = (await proxy.records()).filter(({ event }) => event === "blocked").at(-1);
    expect(JSON.stringify(blocked)).toContain("it may drop commits");
    expect(JSON.stringify(blocked)).not.toContain("never");
    const deleted = await git("-C", "app", "push", "-q", "origin", ":side");
    expect(deleted.code).not.toBe(0);
    expect(await git("clone", "-q", url, "again")).toMatchObject({ code: 0 });
  });

  it("records a push that the server refuses within its answer as failed", async () => {
    verifies("beyond.git.refused-push");
    const hook = join(root, "team/app.git/hooks/update");
    writeFileSync(hook, "#!/bin/sh\ncase $1 in */no*) exit 1;; esac\n", { mode: 0o755 });
    const before = (await calls("git.push")).filter((event) => event === "failed").length;
    const refused = await git("-C", "app", "push", "-q", "origin", "HEAD:no");
    expect(refused.out).toContain("hook declined");
    const failed = (await proxy.records()).filter(
      (one) => one["tool"] === "git.push" && one["event"] === "failed",
    );
    expect(failed).toHaveLength(before + 1);
    expect(JSON.stringify(failed.at(-1))).toContain("hook declined");
    const some = await git("-C", "app", "push", "-q", "origin", "HEAD:no2", "HEAD:yes");
    expect(some.code).not.toBe(0);
    expect((await calls("git.push")).at(-1)).toBe("succeeded");
  });

  it("in other protocols is refused with a sentence", async () => {
    verifies("beyond.git.not-understood");
    for (const path of [
      "/team/app.git/info/refs",
      "/team/app.git/objects/info/packs",
      "/team/app.git/info/lfs/objects/batch",
    ]) {
      const { status, body } = await throughTunnel(proxy, { host: HOST, path });
      expect([status, body]).toEqual([403, expect.stringContaining("smart HTTP")]);
    }
    for (const body of ["nonsense", "0030push-cert\0report-status\n0000", "0000", "00ffshort"]) {
      const answer = await throughTunnel(proxy, {
        host: HOST,
        method: "POST",
        path: "/team/app.git/git-receive-pack",
        body,
      });
      expect([answer.status, answer.body]).toEqual([403, expect.stringContaining("not understood")]);
    }
  });
});
