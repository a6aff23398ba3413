import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type ServerProcess, startSvcServer, svcProcess as svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;
const folder = tempDir("cli");
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const manifests = file("manifests.yaml", MANIFESTS);

describe("svc validate", () => {
  it("refuses prerequisites that form a ring, over several files too", async () => {
    const folder = tempDir("ring");
    writeFileSync(join(folder, "a.yaml"), "- tool: a\n  effect: read\n  permission: p\n  requires: [b]\n");
    writeFileSync(join(folder, "b.yaml"), "- tool: b\n  effect: read\n  permission: p\n  requires: [a]\n");
    const { code, err } = await svc(["validate", folder]);
    expect(code).toBe(1);
    expect(err).toMatch(/a\.yaml:4: tool a: requires: .*cycle/);
    expect(err).toMatch(/b\.yaml:4: tool b: requires: .*cycle/);
  });

  it("counts valid manifests", async () => {
    verifies("core.validate.ok-line", "core.validate.ok-exit", "core.cli.validate");
    expect(await svc(["validate", manifests])).toEqual({
      code: 0,
      out: "ok: 2 tool manifests valid\n",
      err: "",
    });
  });

  it("lists one error per invalid entry and exits 1", async () => {
    verifies("core.validate.one-error-per-entry", "core.validate.error-exit");
    const bad = file(
      "bad.yaml",
      "- {tool: a, effect: odd, permission: p}\n- {tool: b}\n- {tool: c, effect: read, permission: p}\n",
    );
    const { code, out, err } = await svc(["validate", bad]);
    expect(code).toBe(1);
    expect(out).toBe("");
    const lines = err.trimEnd().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/bad\.yaml:1:.*a.*effect/);
    expect(lines[1]).toMatch(/bad\.yaml:2:.*b.*effect.*permission/);
  });

  it.each([
    ["missing", "nope.yaml"],
    ["a device", "/dev/zero"],
  ])("refuses %s in one line", async (_, path) => {
    const { code, err } = await svc(["validate", path], { cwd: folder });
    expect(code).toBe(1);
    expect(err.trimEnd().split("\n")).toHaveLength(1);
    expect(err).not.toContain("    at ");
  });
});

describe("the command line", () => {
  it.each([
    [["nope"], "unknown command"],
    [["runs", "--nope"], "unknown option"],
    [["rollback"], "missing required argument"],
    [["halt", "lift"], "--all"],
    [["kill-switch", "maybe", "f"], "must be on or off"],
    [["kill-switch", "on", "f", "--server", "http://127.0.0.1:1"], "use svc halt add --server"],
    [["resolve", "r", "0", "--status", "succeeded"], "--note"],
  ])("refuses %j with exit 1 and no stack trace", async (args, why) => {
    const { code, err } = await svc(args, { cwd: folder, env: { SVC_TOKEN: "k" } });
    expect(code).toBe(1);
    expect(err).toContain(why);
    expect(err).not.toContain("    at ");
  });

  it("teaches with --help and knows its version", async () => {
    const help = await svc(["--help"]);
    expect(help.code).toBe(0);
    expect(help.out).toContain("Exit codes: 0 success, 1 failure, 2 a result that needs attention.");
    expect((await svc(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it("ends quietly when its reader leaves", () => {
    const text = execFileSync("sh", ["-c", `node ${join(process.cwd(), "bin", "svc.js")} --help | head -1`], {
      encoding: "utf8",
    });
    expect(text).toContain("Usage: svc");
  });

  it("takes the global options before the command, and on every command", async () => {
    verifies("core.cli.option-manifests", "core.cli.option-data", "core.cli.option-store");
    const data = join(tempDir("global"), "runs");
    const before = ["-m", manifests, "--store=sqlite", "-d", data];
    const added = await svc([...before, "halt", "add", "--reason", "drill"]);
    expect(added).toMatchObject({ code: 0, err: "" });
    // The nearer word wins, and a value may look like a command.
    const listed = await svc(["-d", "halt", "halt", "list", "--store", "sqlite", "-d", data]);
    expect(listed.out).toContain("drill");
    expect((await svc([...before, "keygen", join(data, "first")])).code).toBe(0);
    expect((await svc(["keygen", join(data, "second"), ...before])).code).toBe(0);
    expect((await svc(["policy", "check", file("empty.yaml", "version: 1\n"), ...before])).code).toBe(0);
    expect((await svc(["-d", data, "nope"])).err).toContain("unknown command");
  });

  it("turns the kill switch on and off", async () => {
    verifies("core.cli.kill-switch");
    const kill = join(folder, "kill");
    expect((await svc(["kill-switch", "on", kill])).code).toBe(0);
    expect(existsSync(kill)).toBe(true);
    expect((await svc(["kill-switch", "off", kill])).code).toBe(0);
    expect(existsSync(kill)).toBe(false);
  });
});

describe.each(["files", "sqlite"])("a data folder of the %s store", (store) => {
  const data = join(tempDir("data"), "deep", store);
  const keys = join(folder, `keys-${store}.json`);
  const flags = ["-m", manifests, "-d", data, "--store", store];
  let server: ServerProcess;
  let agent = "";
  let admin = "";

  const call = async (key: string, method: string, path: string, body?: unknown) => {
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      text,
      body: text.startsWith("{") ? JSON.parse(text.split("\n")[0]!) : null,
    };
  };

  beforeAll(async () => {
    mkdirSync(folder, { recursive: true });
    agent = (
      await svc([
        "keys",
        "add",
        "bot",
        "--role",
        "agent",
        "--max-permissions",
        "crm.*,mail.*",
        "--keys",
        keys,
      ])
    ).out.trim();
    admin = (await svc(["keys", "add", "root", "--role", "admin", "--keys", keys])).out.trim();
    server = await startSvcServer([...flags, "--keys", keys], {
      env: { SVC_KILL_FILE: join(folder, `kill-${store}`), SVC_LOG: "json" },
    });
  });

  it("is served, halted, exported and resolved from both sides at once", async () => {
    verifies(
      "core.purpose.shared-ledger",
      "core.purpose.shared-halts",
      "contract.readings.export-same-bytes",
      "core.cli.runs",
      "core.cli.resolve",
    );
    expect(readFileSync(keys, "utf8")).not.toContain(agent);
    await call(agent, "POST", "/v1/runs", { run_id: "r1", permissions: ["crm.read"] });
    const ask = async (tool = "crm.get") =>
      (await call(agent, "POST", "/v1/runs/r1/intents", { tool, args: { id: "canary-77" }, reason: "r" }))
        .body;
    expect(await ask()).toEqual({ decision: "allow", step: 0 });

    const added = await svc(["halt", "add", "--reason", "drill", "--tool", "crm.*", ...flags]);
    expect(added.code).toBe(0);
    const id = /^(halt_[0-9a-f-]{36}) {2}tool crm\.\*$/m.exec(added.out)![1]!;
    expect(await ask()).toEqual({ decision: "block", reasons: ["kill switch: drill"] });
    expect((await svc(["halt", "list", ...flags])).out).toContain(id);
    expect((await svc(["halt", "lift", id, ...flags])).out).toBe(`lifted ${id}\n`);
    writeFileSync(join(folder, `kill-${store}`), "by file\n");
    expect(await ask()).toEqual({ decision: "block", reasons: ["kill switch: by file"] });
    await svc(["kill-switch", "off", join(folder, `kill-${store}`)]);

    await call(agent, "POST", "/v1/runs/r1/steps/0/outcome", { status: "uncertain", error: "timeout" });
    const resolved = await svc([
      "resolve",
      "r1",
      "0",
      "--status",
      "failed",
      "--note",
      "looked it up",
      "--actor",
      "olga",
      ...flags,
    ]);
    expect(resolved).toMatchObject({ code: 0, out: "step 0 of r1: failed\n" });
    expect((await svc(["resolve", "r1", "0", "--status", "failed", "--note", "again", ...flags])).code).toBe(
      1,
    );

    const exported = await svc(["export", "--run", "r1", ...flags]);
    expect(exported.out).toBe((await call(admin, "GET", "/v1/runs/r1/export")).text);
    const records = exported.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.map((record) => record.event)).toEqual([
      "intended",
      "blocked",
      "blocked",
      "uncertain",
      "failed",
    ]);
    expect(records.at(-1)).toMatchObject({ actor: "olga", detail: "resolved by olga: looked it up" });
    const whole = await svc(["export", ...flags]);
    expect(whole.out).not.toContain("canary-77");
    expect(
      whole.out
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).seq),
    ).toEqual([0, 1, 2, 3, 4, 5, 6]);
    if (store === "files") expect(readFileSync(join(data, "ledger.jsonl"), "utf8")).toBe(whole.out);

    expect((await svc(["runs", ...flags])).out).toMatch(/^r1 {2}\S+ {2}bot {2}enforce {2}1 step/);
    expect((await svc(["export", "--run", "none", ...flags])).code).toBe(1);
    expect(server.output()).toContain('"path":"/v1/runs/r1/intents"');
    expect(server.output()).not.toContain(agent);
    expect(server.output()).not.toContain("canary-77");
  });

  it("stops cleanly and starts again where it was", async () => {
    expect(await server.stop()).toBe(0);
    server = await startSvcServer([...flags, "--keys", keys]);
    expect((await call(agent, "GET", "/v1/runs/r1")).body).toMatchObject({ run_id: "r1", unresolved: [] });
    expect((await call(admin, "GET", "/v1/status")).body).toMatchObject({ store, records: 7, runs: 1 });
    expect(await server.stop("SIGINT")).toBe(0);
  });
});

describe("svc server refuses to start", () => {
  it("on files that do not load, listing every problem", async () => {
    const bad = file("bad2.yaml", "- {tool: a, effect: odd, permission: p}\n");
    const policy = file("bad-policy.yaml", "version: 2\nrulez: []\n");
    const keys = file("bad-keys.json", '[{"name": "a", "role": "king", "key_sha256": "x"}]');
    const files = ["-m", bad, "--policy", policy, "--keys", keys, "-d", join(folder, "d")];
    const { code, err } = await svc(["server", ...files]);
    expect(code).toBe(1);
    expect(err).toContain("effect");
    expect(err).toContain("version");
    expect(err).toContain("key_sha256");
    expect(err).toContain("rulez");
    expect(err).not.toContain("    at ");
  });
});
