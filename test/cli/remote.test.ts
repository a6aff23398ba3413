/** The same commands on the data and on a server: the same output, the same exit codes. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type ServerProcess, startSvcServer, svc } from "../support/cli.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
let server: ServerProcess;
beforeAll(async () => {
  folder = tempDir("remote");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
  const key = (name: string, role: string) => ({
    name,
    role,
    key_sha256: sha256Hex(name),
    max_permissions: ["*"],
  });
  write(
    "manifests.yaml",
    "- {tool: crm.get, effect: read, permission: crm}\n- tool: crm.create\n  effect: compensable\n  permission: crm\n  compensation: {tool: crm.delete, args: {id: $result.id}}\n- {tool: crm.post, effect: irreversible, permission: crm}\n",
  );
  write("policy.yaml", "version: 1\nretention: {default_days: 30}\n");
  write("keys.json", JSON.stringify([key("bot", "agent"), key("root", "admin")]));
  write("s.key", newKeyPair().private_pem);
  write(
    "svc.config.yaml",
    "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\nsigning_key: s.key\ncapture: {enabled: true}\nrollback: {compensator_cmd: 'true'}\nanchor: {sinks: [{type: file, path: anchors.jsonl}]}\n",
  );
  write("root.key", "root\n");
  server = await startSvcServer([], { cwd: folder });
  await call("/v1/runs", { run_id: "r1", permissions: ["crm"], reason: "clean up" });
  await call("/v1/runs/r1/intents", { tool: "crm.create", args: { name: "Jo" }, reason: "a new lead" });
  await call("/v1/runs/r1/steps/0/outcome", { status: "succeeded", result: { id: 7 } });
  await call("/v1/runs/r1/intents", { tool: "mail.send", args: {}, reason: "greet" });
});
afterAll(() => server?.stop());

const call = async (path: string, body: unknown) =>
  fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { authorization: "Bearer bot", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const here = (...args: string[]) => speak(args, { cwd: folder });
const there = (...args: string[]) =>
  speak([...args, "--server", server.url, "--key-file", "root.key"], { cwd: folder });

describe("a command against a server", () => {
  it.each([
    ["runs", "--json"],
    ["plan", "r1"],
    ["export", "--run", "r1"],
    ["keys", "list", "--json"],
    ["retention", "plan", "--json"],
    ["retention", "apply", "--dry-run"],
    ["verify", "--json"],
  ])("says the same as on the data: svc %s %s %s", async (...args) => {
    verifies("beyond.cli.server");
    const given = args.filter((arg) => arg !== undefined);
    const [local, remote] = [await here(...given), await there(...given)];
    expect({ out: remote.out, code: remote.code }).toEqual({ out: local.out, code: local.code });
    expect(remote.code).toBeLessThan(3);
  });

  it("says what to do about what the server has not enabled", async () => {
    const bare = tempDir("bare");
    for (const name of ["keys.json", "root.key"]) copyFileSync(join(folder, name), join(bare, name));
    writeFileSync(join(bare, "svc.config.yaml"), "keys: keys.json\n");
    const without = await startSvcServer([], { cwd: bare });
    onTestFinished(async () => {
      await without.stop();
    });
    const args = ["--server", without.url, "--key-file", "root.key"];
    expect((await svc(["verify", ...args], { cwd: bare })).err).toBe(
      "error: signed bundles are not enabled on this server: create a key there with svc keygen and set signing_key, or run this on the server's machine with -d <dir>\n",
    );
  });

  it("takes the server and the key from the environment", async () => {
    const env = { SVC_SERVER: server.url, SVC_TOKEN: "root" };
    expect((await svc(["runs", "--json"], { cwd: tempDir("elsewhere"), env })).out).toContain(
      '"run_id":"r1"',
    );
  });

  it("writes a bundle that verifies with the server's key", async () => {
    const { code, out } = await there("bundle", "--run", "r1", "--out", "r1.json");
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/r1\.json: run r1, 3 records, ledger head [0-9a-f]{64}/),
    ]);
    expect((await there("bundle", "--out", "x.json", "--key", "s.key")).err).toContain(
      "a server signs with its own key",
    );
  });

  it("publishes an anchor to the server's own sinks", async () => {
    verifies("beyond.cli.server");
    const anchors = () => readFileSync(join(folder, "anchors.jsonl"), "utf8").trim().split("\n");
    // A server publishes on its own as well; this one is of now.
    const began = Date.now();
    const published = await there("anchor", "publish");
    expect([published.code, published.out]).toEqual([
      0,
      expect.stringMatching(/^anchored \d+ records, .* signed with key .*\n {2}file +\S+anchors\.jsonl +ok/),
    ]);
    expect(JSON.parse(anchors().at(-1)!).ts_ms).toBeGreaterThanOrEqual(began);
    expect((await there("anchor", "publish", "--file", "x")).err).toContain("publishes to its own sinks");
    rmSync(join(folder, "anchors.jsonl"));
    mkdirSync(join(folder, "anchors.jsonl"));
    const failed = await there("anchor", "publish");
    expect([failed.code, failed.out]).toEqual([1, expect.stringMatching(/anchors\.jsonl +FAILED: /)]);
  });

  it("says where the data themselves are needed", async () => {
    verifies("beyond.cli.needs-data");
    const needs: Record<string, string> = {
      "capture list": "this command needs local data",
      "backup --out b.tar": "this command needs local data",
      server: "this command needs local data",
      gateway: "this command needs local data",
      probe: "this command needs local data",
      doctor: "run it on the server's",
      console: "a server has its own console",
      "kill-switch on stop": "use svc halt add --server",
      "config show": "works on local files: omit --server",
      "policy test policy.yaml": "works on local files: omit --server",
      "validate manifests.yaml": "works on local files: omit --server",
      "connect cursor --print": "use --url",
    };
    for (const [line, said] of Object.entries(needs)) {
      // With any key: no key helps here.
      const words = line.split(" ");
      for (const argv of [
        [...words, "--server", server.url],
        ["--server", server.url, ...words],
      ]) {
        const { code, err } = await speak(argv, { cwd: folder });
        expect([line, code, err]).toEqual([line, 1, expect.stringContaining(said)]);
      }
    }
    const both = await speak(["runs", "--server", server.url, "-d", "data"], { cwd: folder });
    expect([both.code, both.err]).toEqual([1, expect.stringContaining("cannot be combined with --data")]);
  });
});

describe("svc show", () => {
  it("tells what the run did, in order, with captured values on local data only", async () => {
    verifies("beyond.cli.show", "beyond.cli.show-values");
    const local = await here("show", "r1");
    expect(local.code).toBe(0);
    const lines = local.out.split("\n");
    expect(lines[0]).toBe("run r1: bot, enforce, 1 step");
    expect(lines[1]).toMatch(/^ {2}opened \S+: clean up$/);
    expect(lines[2]).toMatch(/#0 +intended +crm\.create +\{"name":"Jo"\} +a new lead/);
    expect(lines[3]).toMatch(/#0 +succeeded +crm\.create/);
    expect(lines[4]).toMatch(/blocked +mail\.send +greet +no manifest is registered/);
    expect(lines[5]).toBe("to undo it: svc plan r1");
    const remote = await there("show", "r1");
    expect(remote.out).not.toContain("Jo");
    expect(remote.out).toMatch(/#0 +intended +crm\.create +a new lead/);
    expect(JSON.parse((await here("show", "r1", "--json")).out)).toMatchObject({
      run_id: "r1",
      steps: [{ step: 0, args: { name: "Jo" } }],
      records: [{ event: "intended" }, { event: "succeeded" }, { event: "blocked" }],
    });
    expect(await here("show", "none")).toMatchObject({
      code: 1,
      err: expect.stringContaining("unknown run none"),
    });
  });
});

it("svc show names no rollback where only irreversible steps are left", async () => {
  verifies("beyond.first.show-undo");
  await call("/v1/runs", { run_id: "final", permissions: ["crm"] });
  await call("/v1/runs/final/intents", { tool: "crm.post", args: {}, reason: "say it" });
  await call("/v1/runs/final/steps/0/outcome", { status: "succeeded", result: {} });
  for (const shown of [await here("show", "final"), await there("show", "final")]) {
    expect(shown.out).toMatch(/#0 +succeeded +crm\.post/);
    expect(shown.out).not.toContain("svc plan");
  }
});

describe("svc rollback", () => {
  it("has the server undo the run, waits for its report, and lists the remaining steps", async () => {
    verifies("beyond.cli.rollback-server", "beyond.cli.next-command");
    expect((await there("rollback", "r1", "--compensator-cmd", "true")).err).toContain(
      "--compensator-cmd: a server uses its own command",
    );
    expect((await there("rollback", "r1", "--actor", "me")).err).toContain("the key identifies the actor");
    expect(await there("rollback", "none")).toMatchObject({
      code: 1,
      err: expect.stringContaining("unknown run"),
    });
    const done = await there("rollback", "r1");
    expect([done.code, done.out]).toEqual([0, "run r1: rollback complete\n  compensated: 0\n"]);
    expect((await there("show", "r1")).out).not.toContain("to undo it");
    await call("/v1/runs/r1/intents", { tool: "crm.create", args: {}, reason: "left open" });
    const left = await there("rollback", "r1");
    expect(left.code).toBe(2);
    expect(left.out).toContain("to resolve 1: svc resolve r1 1\n");
  });
});

describe("svc login", () => {
  it("keeps a key that the server takes, and refuses a file that others can read", async () => {
    verifies("beyond.cli.login");
    const home = tempDir("home");
    const env = { XDG_CONFIG_HOME: home };
    const bad = await svc(["login", server.url], { cwd: home, env: { ...env, SVC_TOKEN: "wrong" } });
    expect([bad.code, bad.err]).toEqual([1, expect.stringContaining("invalid credential")]);
    const no_url = await svc(["login", "svc.example.com"], { cwd: home, env: { ...env, SVC_TOKEN: "root" } });
    expect(no_url.err).toBe("error: url: must be a URL such as https://svc.example.com\n");
    expect((await svc(["login", server.url], { cwd: home, env: { ...env, SVC_TOKEN: "root" } })).code).toBe(
      0,
    );
    const file = join(home, "svc", "keys.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const runs = () => svc(["runs", "--server", server.url], { cwd: home, env });
    expect(await runs()).toMatchObject({ code: 0, out: expect.stringContaining("r1") });
    chmodSync(file, 0o644);
    expect(await runs()).toMatchObject({
      code: 1,
      err: expect.stringContaining("other accounts can read this key"),
    });
  });
});
