/** `svc config show|check`: the active settings and their sources, without a secret, and every problem of a file at once. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { settingRows } from "../../src/config/settings.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("config");
});
const config = (text: string, name = "svc.config.yaml") => writeFileSync(join(folder, name), text);
const svc = (args: string[], env: Record<string, string> = {}) =>
  speak(["config", ...args], { cwd: folder, env });
/** The line of one key. */
const lineOf = (out: string, key: string) => out.split("\n").find((line) => line.startsWith(`${key} `));

describe("svc config show", () => {
  it("prints every setting and where it came from", async () => {
    config("store: sqlite\nenvironment: staging\nlisten: {port: 1234}\ncapture: {ttl: 36h}\n");
    const { code, out, err } = await svc(["show", "-d", "elsewhere", "--port", "4321"], {
      SVC_STORE: "files",
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.trimEnd().split("\n")).toHaveLength(settingRows().length);
    expect(lineOf(out, "data")).toMatch(/\/elsewhere +--data$/);
    expect(lineOf(out, "store")).toMatch(/ files +SVC_STORE$/);
    expect(lineOf(out, "environment")).toMatch(/ staging +svc\.config\.yaml:2$/);
    expect(lineOf(out, "listen.port")).toMatch(/ 4321 +--port$/);
    expect(lineOf(out, "capture.ttl")).toMatch(/ 1d12h +svc\.config\.yaml:4$/);
    expect(lineOf(out, "alerts.denial_spike")).toMatch(/ 10 +default$/);
  });

  const SECRETS = ["hunter2", "hush-hook", "hush-routing", "hush-mail", "hush-otlp", "hush-chat", "hush-env"];
  const secretConfig = () =>
    config(`
store: postgres
database_url: postgres://svc:hunter2@db.example.com/svc
notifications:
  channels:
    - {name: hook, type: webhook, url: "https://hooks.example.com/hush-hook", secret: hush-hook}
    - {name: pager, type: pagerduty, routing_key: hush-routing}
    - {name: mail, type: smtp, host: mail.example.com, port: 25, user: u, password: hush-mail, from: a@example.com, to: [b@example.com]}
otlp: {endpoint: "https://otlp.example.com", headers: {x-key: hush-otlp}}
chat: {signing_secret: hush-chat, users: {U1: ann}}
upstreams: [{name: t, command: run, env: {TOKEN: hush-env}}]
`);

  it("masks secrets, in text and in JSON", async () => {
    secretConfig();
    for (const args of [["show"], ["show", "--json"]]) {
      const { code, out, err } = await svc(args);
      expect(code).toBe(0);
      for (const secret of SECRETS) expect(out + err).not.toContain(secret);
      expect(out).toContain("db.example.com");
      expect(out).toContain("hooks.example.com");
    }
  });

  it("says the same in JSON", async () => {
    config("environment: prod\nchat: {users: {U1: ann}}\n");
    const { out } = await svc(["show", "--json"]);
    const { file, settings, warnings } = JSON.parse(out);
    expect(file).toBe("svc.config.yaml");
    expect(settings.find(({ key }: { key: string }) => key === "environment")).toEqual({
      key: "environment",
      value: "prod",
      origin: { from: "file", file: "svc.config.yaml", line: 1 },
      about: expect.any(String),
    });
    expect(warnings).toEqual([expect.stringContaining("chat actions stay off")]);
  });

  it("keeps control characters of the environment off the terminal", async () => {
    const { out } = await svc(["show"], { SVC_ENVIRONMENT: "a\u001b[2Jb" });
    expect(out).not.toContain("\u001b");
  });
});

describe("svc config check", () => {
  it("says ok, and warns on stderr", async () => {
    config("chat: {users: {U1: ann}}\n");
    const { code, out, err } = await svc(["check"]);
    expect({ code, out }).toEqual({ code: 0, out: "ok: svc.config.yaml\n" });
    expect(err).toMatch(/^warning: svc\.config\.yaml:1: chat\.users: chat actions stay off/);
  });

  it("lists every problem with its line and exits 1", async () => {
    config("store: oracle\nlisten:\n  port: 70000\nconsol: off\ncapture: {ttl: soon}\n", "gateway.yaml");
    const { code, out, err } = await svc(["check", "gateway.yaml"]);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    const lines = err.trimEnd().split("\n");
    expect(lines).toHaveLength(4);
    for (const [i, line] of [1, 3, 4, 5].entries())
      expect(lines[i]).toMatch(new RegExp(`^gateway\\.yaml:${line}:`));
    expect(lines[2]).toContain("unknown key");
  });

  it("refuses a file that is not there", async () => {
    const { code, err } = await svc(["check", "none.yaml"]);
    expect(code).toBe(1);
    expect(err).toMatch(/none\.yaml: does not exist\n$/);
  });

  it("is fine without a file", async () => {
    expect((await svc(["check"])).out).toMatch(/^ok: no config file/);
  });
});
