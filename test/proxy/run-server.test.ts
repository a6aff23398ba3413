/** `svc run --server`: a confined command whose calls a server on another machine decides. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type CliResult, type ServerProcess, BIN as SVC_BIN, startSvcServer, svc } from "../support/cli.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
  writeApprovers,
} from "../support/forgeries.ts";
import { forgingServer } from "../support/forging.ts";
import { program } from "../support/programs.ts";
import { selfSigned, upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

await program("bubblewrap");
await program("curl");
await program("openssl");
const TLS = selfSigned(["localhost"]);
let received: string[] = [];
const api = await upstream(({ method, url }, response) => {
  received.push(`${method} ${url}`);
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ id: 7 }));
}, TLS);
const HOST = `localhost:${api.port}`;
const URL_OF_API = `https://${HOST}`;

const folder = tempDir("run-server");
const MANIFESTS = join(folder, "manifests.yaml");
const key = (name: string, role: string, more = {}) => ({
  name,
  role,
  key_sha256: sha256Hex(`${name}-key`),
  max_permissions: ["*"],
  ...more,
});
const write = (path: string, text: string) =>
  writeFileSync(join(folder, path), text, { mode: 0o600, flag: "w" });
write(
  "manifests.yaml",
  `- {tool: net.connect, effect: irreversible, permission: net}
- {tool: api.get, effect: read, permission: api, http: {host: "${HOST}", method: GET, path: "/{what}"}}
- {tool: api.add, effect: irreversible, permission: api, http: {host: "${HOST}", method: POST, path: /things}}
- {tool: api.pay, effect: irreversible, permission: api, http: {host: "${HOST}", method: POST, path: /payments}}
- {tool: api.wipe, effect: irreversible, permission: api, http: {host: "${HOST}", method: DELETE, path: /things}}
`,
);
write(
  "policy.yaml",
  `version: 1
rules:
  - {id: no-other-host, match: {tool: net.connect}, action: deny}
  - {id: no-wiping, match: {tool: api.wipe}, action: deny}
  - {id: ask, match: {tool: api.add}, action: require_approval}
`,
);
write(
  "keys.json",
  JSON.stringify([
    key("bot", "agent"),
    key("launcher", "agent", { may_sandbox: true }),
    key("root", "admin"),
    key("desk", "approver"),
  ]),
);
write(
  "svc.config.yaml",
  "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\ndata: data\napprovals: {wait: 300s}\n",
);
const home = join(folder, "home");
const workspace = join(home, "work");
mkdirSync(workspace, { recursive: true });
const server: ServerProcess = await startSvcServer([], { cwd: folder });
afterAll(() => server.stop());
beforeEach(() => {
  received = [];
});

const call = async (who: string, method: string, path: string) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${who}-key`, "content-type": "application/json" },
    ...(method === "POST" ? { body: "{}" } : {}),
  });
  return JSON.parse(await answer.text());
};
const runArgs = (url: string, key_file: string) => [
  ...["run", "--server", url, "--key-file", key_file, "--allow-host", "localhost"],
];
/** Runs the script confined, with the key of `who` in a file inside the workspace. */
function run(
  script: string,
  {
    who = "bot",
    args = [],
    url = server.url,
    env = {},
  }: { who?: string; args?: string[]; url?: string; env?: Record<string, string> } = {},
): Promise<CliResult> {
  const file = join(workspace, `${who}.key`);
  writeFileSync(file, `${who}-key\n`, { mode: 0o600 });
  return svc([...runArgs(url, file), ...args, "--", "bash", "-c", script], {
    cwd: workspace,
    env: { HOME: home, NODE_EXTRA_CA_CERTS: TLS.file, ...env },
  });
}
const runOf = ({ err }: CliResult): string => /run_[0-9a-f-]+/.exec(err)![0];
const curl = (more: string) => `curl -sS --noproxy '' -w ' %{http_code}\\n' ${more}`;

describe("svc run --server", () => {
  it("decides by the server's manifests and policy, and records there", async () => {
    verifies("beyond.run.server");
    const ran = await run(
      [
        curl(`${URL_OF_API}/things`),
        curl(`-X DELETE ${URL_OF_API}/things`),
        curl("https://8.8.8.8/ 2>&1"),
        "exit 3",
      ].join("; "),
    );
    expect(ran.code).toBe(3);
    expect(ran.out).toContain('{"id":7} 200');
    expect(ran.out).toMatch(/no-wiping.*\n 403/);
    expect(received).toEqual(["GET /things"]);
    const { actor, steps } = await call("root", "GET", `/v1/runs/${runOf(ran)}`);
    expect(actor).toBe("bot");
    expect(steps).toMatchObject([{ tool: "api.get", status: "succeeded" }]);
    const { records } = await call("root", "GET", `/v1/search/records?run_id=${runOf(ran)}&event=blocked`);
    expect(records.map(({ tool }: { tool: string }) => tool).sort()).toEqual(["api.wipe", "net.connect"]);
  });

  it("holds a call until somebody approves it on the server", async () => {
    verifies("beyond.run.server");
    const running = run(
      curl(`-X POST -H 'content-type: application/json' -d '{"n":1}' ${URL_OF_API}/things`),
    );
    const waiting = async () => (await call("desk", "GET", "/v1/approvals?status=pending")).approvals;
    await until(async () => (await waiting()).length > 0, "the request");
    expect(received).toEqual([]);
    await call("desk", "POST", `/v1/approvals/${(await waiting())[0].id}/approve`);
    expect((await running).out).toContain('{"id":7} 200');
    expect(received).toEqual(["POST /things"]);
  });

  it("hides the key and the service's files from the command", async () => {
    verifies("beyond.run.server");
    const ran = await run(
      `cat bot.key; cat ~/.config/svc/* ; env; echo 'allow_hosts: [8.8.8.8]' > svc.config.yaml; ${curl("https://8.8.8.8/ 2>&1")}`,
    );
    expect(ran.out + ran.err).not.toContain("bot-key");
    // What the command writes into its workspace changes nothing, in this run or the next.
    for (const { out } of [ran, await run(curl("https://8.8.8.8/ 2>&1"))])
      expect(out).toContain("CONNECT tunnel failed, response 403");
  });

  it("asks as outside unless the key may vouch for the sandbox", async () => {
    verifies("beyond.run.server");
    expect((await run("true")).err).toContain("may_sandbox");
    const trusted = await run("true", { who: "launcher" });
    expect([trusted.code, trusted.err]).toEqual([0, expect.not.stringContaining("may_sandbox")]);
  });

  it("starts nothing where the server cannot be had or refuses", async () => {
    verifies("beyond.run.refuses");
    const away = await run("echo started", { url: "http://127.0.0.1:9" });
    expect([away.code, away.out]).toEqual([1, ""]);
    const stranger = await run("echo started", { who: "stranger" });
    expect([stranger.code, stranger.out]).toEqual([1, ""]);
    const both = await run("echo started", { args: ["--policy", "policy.yaml"] });
    expect([both.code, both.out, both.err]).toEqual([1, "", expect.stringContaining("own policy")]);
  });

  it("sends nothing once the server is gone", async () => {
    verifies("beyond.run.server");
    const second = await startSvcServer([], { cwd: folder, env: { SVC_DATA: join(folder, "data-2") } });
    const running = run(
      `${curl(`${URL_OF_API}/one`)}; touch ready; until [ -e gone ]; do sleep 0.1; done; ${curl(`${URL_OF_API}/two`)}`,
      { url: second.url },
    );
    await until(() => existsSync(join(workspace, "ready")), "the first answer");
    await second.stop();
    writeFileSync(join(workspace, "gone"), "");
    const { out } = await running;
    expect(out).toMatch(/ 200\n.* 503\n/s);
    expect(received).toEqual(["GET /one"]);
  });

  it("starts nothing with an approvers file that the command could write", async () => {
    verifies("beyond.approvers.outside-workspace");
    const inside = join(workspace, "approvers.json");
    writeApprovers(inside, "api.add");
    const elsewhere = join(folder, "linked.json");
    symlinkSync(inside, elsewhere);
    for (const approvers of [inside, "approvers.json", elsewhere]) {
      const { code, out, err } = await run("echo started", {
        env: { SVC_APPROVERS: approvers, SVC_MANIFESTS: MANIFESTS },
      });
      expect([approvers, code, out, err]).toEqual([
        ...[approvers, 1, ""],
        expect.stringContaining("move it out of the workspace"),
      ]);
    }
    copyFileSync(MANIFESTS, join(workspace, "tools.yaml"));
    const outside = join(folder, "approvers.json");
    writeApprovers(outside, "api.add");
    const { code, out, err } = await run("echo started", {
      env: { SVC_APPROVERS: outside, SVC_MANIFESTS: "tools.yaml" },
    });
    expect([code, out, err]).toEqual([1, "", expect.stringContaining("move it out of the workspace")]);
  });
});

/** The calls of one confined command, which reads an amount a line and sends each to the API. */
const SENDS = `while read -r n; do ${curl(`-X POST -H 'content-type: application/json' -d '{"n":'"$n"'}' ${URL_OF_API}/payments`)} | tr '\n' ' '; echo; done`;

describe("svc run --server with a forging server", () => {
  const tool = "api.pay";
  const file = forgedApprovers(tool);
  let asked: AskedCall;
  let child: ChildProcess;
  let lines: AsyncIterator<string>;
  const surface: ForgedSurface = {
    lies: { decision: {}, evidence: () => ({}) },
    open: async () => async (amount) => {
      const before = received.length;
      child.stdin!.write(`${amount}\n`);
      const { value } = await lines.next();
      const ran = received.length > before;
      return { ran, why: ran ? "" : value };
    },
  };

  beforeAll(async () => {
    const forger = await forgingServer(server.url);
    forger.lies.push(({ path, body }, answer) => {
      const intent = /\/v1\/runs\/([^/]+)\/intents$/.exec(path);
      if (intent !== null) {
        asked = { run_id: intent[1]!, tool: body.tool, args: body.args };
        return { ...answer, ...surface.lies.decision };
      }
      return /\/signatures$/.test(path) ? surface.lies.evidence(asked) : undefined;
    });
    const key_file = join(workspace, "bot.key");
    writeFileSync(key_file, "bot-key\n", { mode: 0o600 });
    child = spawn(process.execPath, [SVC_BIN, ...runArgs(forger.url, key_file), "--", "bash", "-c", SENDS], {
      cwd: workspace,
      env: {
        PATH: process.env["PATH"],
        ...{ HOME: home, NODE_EXTRA_CA_CERTS: TLS.file, SVC_APPROVERS: file, SVC_MANIFESTS: MANIFESTS },
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    afterAll(async () => {
      child.stdin!.end();
      await once(child, "exit");
      await forger.close();
    });
  });

  it("sends a really signed request", async () => {
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.forgeries", "beyond.approvers.proxy");
    await playForgery(name, surface, { file, tool });
  });

  it("sends nothing for a server that hides its tools, if the file requires every tool", async () => {
    verifies("beyond.approvers.hidden-tools");
    const forger = await forgingServer(server.url);
    forger.lies.push(({ path, body }, answer) => {
      if (path.startsWith("/v1/http-tools")) return { ...answer, tools: [] };
      if (/\/intents$/.test(path)) return { decision: "allow", step: 0 };
      if (/\/outcome$/.test(path)) return { step: 0, status: body.status };
      return undefined;
    });
    const send = (required: string) => {
      writeApprovers(file, required);
      const args = { url: forger.url, env: { SVC_APPROVERS: file } };
      return run(curl(`-k -X POST -d '{}' ${URL_OF_API}/payments 2>&1`), args);
    };
    const held = await send("*");
    expect([received, held.err]).toEqual([[], expect.not.stringContaining("SVC_MANIFESTS")]);
    // Without its own manifests, the launcher trusts no other file.
    const refused = await send(tool);
    expect([received, refused.code, refused.err]).toEqual([[], 1, expect.stringContaining("SVC_MANIFESTS")]);
    await forger.close();
  });
});

interface ListedTool {
  tool: string;
  http: { host: string; method: string; path: string };
}

/** A server in front of another one, which lists other HTTP tools. */
async function lister(target: string, list: (tools: ListedTool[]) => ListedTool[]): Promise<string> {
  const front = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { authorization = "", "content-type": type = "application/json" } = request.headers;
    const answer = await fetch(target + request.url, {
      method: request.method!,
      headers: { authorization, "content-type": type },
      ...(request.method === "POST" ? { body: Buffer.concat(chunks) } : {}),
    });
    const body = await answer.text();
    response.writeHead(answer.status, { "content-type": "application/json" });
    const isList = request.url === "/v1/http-tools";
    const read = () => JSON.parse(body) as { tools: ListedTool[] };
    response.end(isList ? JSON.stringify({ ...read(), tools: list(read().tools) }) : body);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    front.closeAllConnections();
    front.close();
  });
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}`;
}

const LISTS: Readonly<Record<string, (tools: ListedTool[]) => ListedTool[]>> = {
  "hides all of them": () => [],
  "hides the one that needs a signature": (tools) => tools.filter(({ tool }) => tool !== "api.add"),
  "calls it by another name": (tools) =>
    tools.map((one) => (one.tool === "api.add" ? { ...one, tool: "api.wipe" } : one)),
  "moves it to another path": (tools) =>
    tools.map((one) =>
      one.tool === "api.add"
        ? { ...one, http: { ...one.http, path: "/elsewhere" } }
        : one.tool === "api.wipe"
          ? { ...one, http: { ...one.http, method: "POST" } }
          : one,
    ),
};

describe("a server that lies about its HTTP tools", () => {
  const post = curl(`-X POST -H 'content-type: application/json' -d '{"n":1}' ${URL_OF_API}/things`);

  it("decides what it says they are, and cannot avoid its own decision", async () => {
    verifies("beyond.run.server");
    const url = await lister(server.url, LISTS["hides all of them"]!);
    const ran = await run(post, { url });
    expect([ran.out, received]).toEqual([expect.stringContaining("000"), []]);
    const { records } = await call("root", "GET", `/v1/search/records?run_id=${runOf(ran)}&event=blocked`);
    expect(records.map(({ tool }: { tool: string }) => tool)).toEqual(["net.connect"]);
  });

  it.each(Object.keys(LISTS))("and %s sends nothing that the approvers file guards", async (name) => {
    verifies("beyond.run.server-tools");
    writeFileSync(join(folder, "open.yaml"), "version: 1\n");
    const open = await startSvcServer([], {
      cwd: folder,
      env: { SVC_DATA: join(folder, `data-${name}`), SVC_POLICY: join(folder, "open.yaml") },
    });
    try {
      const url = await lister(open.url, LISTS[name]!);
      const approvers = { SVC_APPROVERS: forgedApprovers("api.add") };
      const without = await run(`echo started; ${post}`, { url, env: approvers });
      expect([without.code, without.out, without.err]).toEqual([
        1,
        "",
        expect.stringContaining("SVC_MANIFESTS"),
      ]);
      const env = { ...approvers, SVC_MANIFESTS: MANIFESTS };
      const ran = await run(`${post}; ${curl(`${URL_OF_API}/things`)}`, { url, env });
      expect(ran.out).toMatch(/the approvers file requires signatures.*\n 403\n\{"id":7\} 200/);
      expect(received).toEqual(["GET /things"]);
    } finally {
      await open.stop();
    }
  });
});
