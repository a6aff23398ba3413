/**
 * `svc server` as its own process: where its settings come from, what it logs where, signals, and refusals to
 * start.
 */
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { startSvcServer, svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
const MANIFESTS = "- {tool: crm.get, effect: read, permission: crm.read}\n";
let folder = "";
const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
const entry = (name: string, role: string) => ({
  name,
  role,
  key_sha256: sha256Hex(name),
  max_permissions: ["*"],
});
const keys = (...names: string[]) =>
  JSON.stringify(names.map((name) => entry(name, name === "bot" ? "agent" : "admin")));

beforeEach(() => {
  folder = tempDir("server");
  write("manifests.yaml", MANIFESTS);
  write("keys.json", keys("root", "bot"));
});

async function call(url: string, key: string, method: string, path: string, body?: unknown) {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("svc server", () => {
  it("takes its settings from the config file and the environment, and options override them", async () => {
    verifies(
      "contract.start.server",
      "contract.start.server-flags",
      "core.purpose.process-server",
      "core.purpose.surface-cli",
    );
    const config =
      "manifests: manifests.yaml\nkeys: keys.json\nenvironment: from-file\nlisten: {host: 127.0.0.1, port: 1}\n";
    write("svc.config.yaml", config);
    mkdirSync(join(folder, "other"));
    write(
      "other/svc.yaml",
      `${config.replaceAll(": manifests", ": ../manifests").replace(": keys", ": ../keys")}metrics_public: true\n`,
    );
    const env = { SVC_DATA: "data-from-env" };
    const first = await startSvcServer(["--host", "127.0.0.2"], { cwd: folder, env });
    onTestFinished(() => first.stop().then(() => undefined));
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    expect((await call(first.url, "root", "GET", "/v1/status")).body).toMatchObject({
      environment: "from-file",
      manifests: 1,
      store: "files",
    });
    verifies("beyond.authzen.metadata");
    const metadata = await call(first.url, "root", "GET", "/.well-known/authzen-configuration");
    expect(metadata.body).toMatchObject({ policy_decision_point: first.url });
    expect((await svc(["runs"], { cwd: folder, env })).err).toBe("no runs yet\n");
    expect(await first.stop()).toBe(0);

    const second = await startSvcServer(["--config", "other/svc.yaml"], {
      cwd: folder,
      env: { ...env, SVC_ENVIRONMENT: "from-env", SVC_STORE: "sqlite" },
    });
    onTestFinished(() => second.stop().then(() => undefined));
    expect((await call(second.url, "root", "GET", "/v1/status")).body).toMatchObject({
      environment: "from-env",
      store: "sqlite",
    });
    expect((await fetch(`${second.url}/metrics`)).status).toBe(200);
    expect(await second.stop()).toBe(0);
  });

  it("reads its keys again on SIGHUP, and keeps the old ones where the file is broken", async () => {
    verifies("core.auth.keys-on-sighup", "core.auth.no-restart", "core.auth.api-key");
    const server = await startSvcServer(["-m", "manifests.yaml", "--keys", "keys.json", "-d", "data"], {
      cwd: folder,
    });
    onTestFinished(() => server.stop().then(() => undefined));
    const works = async (key: string) => (await call(server.url, key, "GET", "/v1/runs")).status;
    expect([await works("root"), await works("fresh")]).toEqual([200, 401]);
    write("keys.json", keys("fresh"));
    process.kill(server.pid, "SIGHUP");
    await until(() => server.output().includes('"msg":"reloaded"'), "the reload");
    expect([await works("root"), await works("fresh")]).toEqual([401, 200]);
    write("keys.json", "[");
    process.kill(server.pid, "SIGHUP");
    await until(() => server.output().includes('"msg":"reload refused"'), "the refusal");
    expect(await works("fresh")).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  it("writes its request log to stdout and its own log to stderr", async () => {
    verifies("contract.readings.request-log-stdout", "core.setting.log-json", "ops.log.engine-stderr");
    const args = [BIN, "server", "--port", "0", "-m", "manifests.yaml", "--keys", "keys.json", "-d", "data"];
    const child = spawn(process.execPath, args, {
      cwd: folder,
      env: { PATH: process.env["PATH"], SVC_LOG: "json" },
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err += text;
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    onTestFinished(() => void child.kill("SIGKILL"));
    await until(() => err.includes("listening on"), "the address");
    const url = /listening on (\S+)/.exec(err)![1]!;
    await call(url, "bot", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read"], reason: "canary" });
    child.kill("SIGHUP");
    await until(
      () => err.includes('"msg":"reloaded"') && out.includes("/v1/runs"),
      "the reload and the request",
    );
    child.kill("SIGTERM");
    expect(await ended).toBe(0);
    const lines = out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ method: "POST", path: "/v1/runs", status: 201, principal: "bot" });
    expect(err).not.toContain('"method"');
    expect(out + err).not.toMatch(/canary|Bearer/);
  });
});

describe("svc server refuses to start", () => {
  const refused = async (args: string[], env: Record<string, string> = {}) => {
    const { code, out, err } = await svc(["server", "--port", "0", "-d", "data", ...args], {
      cwd: folder,
      env,
    });
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).not.toMatch(/\n {4}at /);
    return err;
  };

  it("on manifests, policy, keys or a config with errors, and prints all of them", async () => {
    verifies("contract.readings.start-refused", "contract.readings.start-refused-policy");
    write("bad.yaml", "- {tool: a, effect: odd, permission: p}\n- {tool: b}\n");
    write("policy.yaml", "version: 2\nrulez: []\n");
    const rules = await refused(["-m", "bad.yaml", "--policy", "policy.yaml", "--keys", "keys.json"]);
    for (const part of ["tool a: effect", "tool b: effect", "tool b: permission", "version", "rulez"])
      expect(rules).toContain(part);
    write("keys.json", JSON.stringify([{ name: "x" }, { name: "y", role: "king" }]));
    const found = await refused(["-m", "manifests.yaml", "--keys", "keys.json"]);
    for (const part of ['entry 0 ("x")', 'entry 1 ("y")']) expect(found).toContain(part);
    write("svc.config.yaml", "typo: 1\nstore: oracle\nconsole: {mode: open, role: admin}\n");
    const config = await refused([], { SVC_CAPTURE_TTL_DAYS: "soon" });
    for (const part of ["typo", "store", "console.role", "SVC_CAPTURE_TTL_DAYS"])
      expect(config).toContain(part);
  });

  it.each([
    ["an open console on every address", { SVC_CONSOLE: "open", SVC_HOST: "0.0.0.0" }, "loopback"],
    ["an open console as admin", { SVC_CONSOLE: "open", SVC_CONSOLE_ROLE: "admin" }, "admin"],
    ["a role map that is a list", { SVC_OIDC_ROLE_MAP: "[]" }, "SVC_OIDC_ROLE_MAP"],
    ["a postgres store without a database", { SVC_STORE: "postgres" }, "SVC_DATABASE_URL"],
    ["an issuer without an audience", { SVC_OIDC_ISSUER: "https://id.example.com" }, "audience"],
  ])("with %s", async (_name, env, why) => {
    expect(await refused([], env)).toContain(why);
  });
});
