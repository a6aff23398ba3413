import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { tempDir } from "../../test/support/tmp.ts";
import { ProblemsError } from "../kernel/errors.ts";
import { describeSettings, showOrigin } from "./describe.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import { listenGiven } from "./settings.ts";

function load(yaml: string | null, options: Partial<LoadOptions> = {}) {
  const cwd = tempDir("cfg");
  if (yaml !== null) writeFileSync(join(cwd, "svc.config.yaml"), yaml);
  return { cwd, settings: loadSettings({ env: {}, cwd, ...options }) };
}

function problems(yaml: string | null, options: Partial<LoadOptions> = {}): readonly string[] {
  try {
    load(yaml, options);
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
  return [];
}

const WHOLE = `
manifests: manifests/
policy: policy.yaml
keys: /etc/svc/keys.json
data: var
store: postgres
database_url: postgres://svc:hunter2@db/svc
listen: {host: 127.0.0.2, port: 9000}
environment: prod
signing_key: sign.key
kill_file: KILL
console: {mode: open, role: auditor}
console_url: https://svc.example.com/
oidc: {issuer: "https://id.example.com", audience: svc, role_map: {ops: operator}, groups_claim: roles, max_permissions: {bots: ["crm.*"]}}
rollback: {compensator_cmd: "undo --now", reader_cmd: read, timeout: 5s}
capture: {enabled: true, ttl: 3d, redact_pii: false}
anchor:
  interval: 30m
  sinks: [{type: file, path: anchors.jsonl}, {type: webhook, url: "https://a.example.com/x", secret: s3cret}]
egress: {allow: ["*.example.com"], block_private: true, region: eu}
archive_root: archive
notifications:
  channels: [{name: ops, type: slack, url: "https://hooks.example.com/T0/B0/abc", events: [alert]}]
alerts: {remind: 2h, denial_spike: 5}
log: {format: pretty, level: debug}
otlp: {endpoint: "https://otel.example.com", headers: {authorization: "Bearer abc"}}
registry: {manifests: reg/m, policies: reg/p}
mode: observe
actor: bot
permissions: [crm.read]
auth: {keys: gw.json}
upstreams:
  - {name: crm, command: node, args: [server.js], env: {TOKEN: abc}, cwd: up, namespace: true, timeout: 5s, passthrough: [resources]}
  - {name: web, url: "https://mcp.example.com/mcp", headers: {authorization: "Bearer xyz"}}
`;

describe("the whole file", () => {
  test("every key of the interface, typed, with paths from the file's folder", () => {
    const { cwd, settings } = load(WHOLE);
    expect(settings).toMatchObject({
      manifests: join(cwd, "manifests"),
      policy: join(cwd, "policy.yaml"),
      keys: "/etc/svc/keys.json",
      data: join(cwd, "var"),
      store: "postgres",
      listen: { host: "127.0.0.2", port: 9000 },
      environment: "prod",
      signing_key: join(cwd, "sign.key"),
      kill_file: join(cwd, "KILL"),
      console: { mode: "open", role: "auditor" },
      console_url: "https://svc.example.com",
      oidc: { audience: ["svc"], role_map: { ops: "operator" }, groups_claim: "roles", max_permissions: { bots: ["crm.*"] } },
      rollback: { compensator_cmd: "undo --now", reader_cmd: "read", timeout_ms: 5_000 },
      capture: { enabled: true, ttl_ms: 3 * 86_400_000, redact_pii: false },
      anchor: { interval_ms: 1_800_000, sinks: [{ type: "file", path: join(cwd, "anchors.jsonl") }, { type: "webhook", secret: "s3cret" }] },
      egress: { allow: ["*.example.com"], block_private: true, region: "eu" },
      archive_root: join(cwd, "archive"),
      notifications: { channels: [{ name: "ops", type: "slack", events: ["alert"] }] },
      alerts: { remind_ms: 7_200_000, denial_spike: 5 },
      log: { format: "pretty", level: "debug", requests: false },
      otlp: { endpoint: "https://otel.example.com", headers: { authorization: "Bearer abc" } },
      registry: { manifests: join(cwd, "reg/m"), policies: join(cwd, "reg/p") },
      mode: "observe",
      actor: "bot",
      permissions: ["crm.read"],
      auth: { keys: join(cwd, "gw.json") },
      upstreams: [
        { name: "crm", command: "node", args: ["server.js"], env: { TOKEN: "abc" }, cwd: join(cwd, "up"), namespace: true, timeout_ms: 5_000, passthrough: ["resources"] },
        { name: "web", url: "https://mcp.example.com/mcp", namespace: false, timeout_ms: 60_000, passthrough: [] },
      ],
    });
    expect(listenGiven(settings)).toBe(true);
  });

  test("shown: secrets masked everywhere, each value with its origin", () => {
    const { settings } = load(WHOLE, { env: { SVC_CHAT_SIGNING_SECRET: "chat-s3cret", SVC_APPROVAL_WEBHOOK: "https://h.example.com/pw1", PORT: "9001" } });
    const lines = describeSettings(settings);
    const text = JSON.stringify(lines);
    for (const secret of ["hunter2", "s3cret", "/T0/B0", "Bearer", "chat-", "pw1", '"abc"']) expect(text).not.toContain(secret);
    const at = (key: string) => lines.find((line) => line.key === key)!;
    expect(at("database_url").value).toBe("postgres://svc:********@db/svc");
    expect(at("notifications.approval_webhook").value).toBe("https://h.example.com/********");
    expect(at("capture.ttl").value).toBe("3d");
    expect(showOrigin(at("listen.port").origin)).toBe("PORT");
    expect(showOrigin(at("listen.host").origin)).toBe("svc.config.yaml:8");
    expect(showOrigin(at("tenant").origin)).toBe("default");
  });
});

describe("precedence", () => {
  test("option, then environment, then file, then default", () => {
    const yaml = "listen: {port: 1000}\nstore: sqlite\n";
    expect(load(null).settings.listen.port).toBe(8787);
    expect(load(yaml).settings.listen.port).toBe(1000);
    expect(load(yaml, { env: { PORT: "2000" } }).settings.listen.port).toBe(2000);
    expect(load(yaml, { env: { PORT: "2000" }, flags: { port: "3000" } }).settings.listen.port).toBe(3000);
    expect(load(yaml, { flags: { port: 3001 } }).settings.listen.port).toBe(3001);
    expect(load(yaml, { env: { SVC_STORE: "" } }).settings.store).toBe("sqlite");
  });

  test("a value that is hidden by a stronger one is still checked", () => {
    expect(problems("store: mysql\n", { env: { SVC_STORE: "oracle" }, flags: { store: "sqlite" } })).toEqual([
      expect.stringMatching(/^svc\.config\.yaml:1:8: store: must be one of files, sqlite, postgres/),
    ]);
    expect(problems(null, { env: { SVC_STORE: "oracle" } })[0]).toMatch(/^SVC_STORE: must be one of/);
  });

  test("paths of the environment and of options are taken from the working directory", () => {
    const cwd = tempDir("cfg");
    mkdirSync(join(cwd, "etc"));
    writeFileSync(join(cwd, "etc/c.yaml"), "manifests: m\npolicy: p\n");
    const settings = loadSettings({ env: { SVC_CONFIG: "etc/c.yaml", SVC_POLICY: "q" }, flags: { data: "d" }, cwd });
    expect(settings).toMatchObject({ manifests: join(cwd, "etc/m"), policy: join(cwd, "q"), data: join(cwd, "d") });
    expect(settings.meta.file).toBe("etc/c.yaml");
    expect(loadSettings({ env: {}, flags: { config: join(cwd, "etc/c.yaml") }, cwd: "/" }).manifests).toBe(join(cwd, "etc/m"));
  });

  test("a manifests URL stays one", () => {
    expect(load("manifests: https://x.example.com/m.yaml").settings.manifests).toBe("https://x.example.com/m.yaml");
  });

  test("PORT alone does not make a gateway listen", () => {
    expect(listenGiven(load(null, { env: { PORT: "9" } }).settings)).toBe(false);
    expect(listenGiven(load(null, { flags: { port: "9" } }).settings)).toBe(true);
    expect(listenGiven(load("listen: {}").settings)).toBe(true);
  });

  test("every environment variable of the interface", () => {
    const { settings } = load(null, {
      env: {
        SVC_MANIFESTS: "/m", SVC_KEYS: "/k", SVC_DATA: "/d", SVC_POLICY: "/p", PORT: "0", SVC_HOST: "::1", SVC_STORE: "postgres",
        SVC_DATABASE_URL: "postgresql://db", SVC_SIGNING_KEY: "/s", SVC_KILL_FILE: "/x", SVC_CONSOLE: "login", SVC_COMPENSATOR_CMD: "c",
        SVC_READER_CMD: "r", SVC_METRICS_PUBLIC: "1", SVC_LOG: "json", SVC_OIDC_ISSUER: "https://i", SVC_OIDC_AUDIENCE: "a",
        SVC_OIDC_ROLE_MAP: '{"g": "admin"}', SVC_OIDC_GROUPS_CLAIM: "grp", SVC_SECURE_COOKIES: "1", SVC_CAPTURE: "1",
        SVC_CAPTURE_TTL_DAYS: "2", SVC_APPROVAL_WEBHOOK: "https://w", SVC_CONSOLE_URL: "https://c/", SVC_OTLP_ENDPOINT: "http://o:4318",
        SVC_CHAT_SIGNING_SECRET: "s", SVC_CHAT_USERS: '{"U1": "ann"}', SVC_ENVIRONMENT: "prod", SVC_CONSOLE_ROLE: "approver",
      },
    });
    expect(settings).toMatchObject({
      manifests: "/m", keys: "/k", data: "/d", policy: "/p", listen: { host: "::1", port: 0 }, store: "postgres",
      database_url: "postgresql://db", signing_key: "/s", kill_file: "/x", console: { mode: "login", role: "approver" },
      rollback: { compensator_cmd: "c", reader_cmd: "r" }, metrics_public: true, log: { requests: true },
      oidc: { issuer: "https://i", audience: ["a"], role_map: { g: "admin" }, groups_claim: "grp" }, secure_cookies: true,
      capture: { enabled: true, ttl_ms: 2 * 86_400_000 }, notifications: { approval_webhook: "https://w" }, console_url: "https://c",
      otlp: { endpoint: "http://o:4318" }, chat: { signing_secret: "s", users: { U1: "ann" } }, environment: "prod",
    });
  });
});

describe("${NAME}", () => {
  test("is replaced in texts, lists and mappings, and may stand for a number or a switch", () => {
    const yaml = "listen: {port: '${P}'}\ncapture: {enabled: '${ON}', ttl: '${TTL}'}\nenvironment: 'x-${E}-$${E}'\nupstreams: [{name: a, command: c, args: ['${E}'], env: {K: '${E}'}}]\n";
    const { settings } = load(yaml, { env: { P: "81", ON: "1", E: "prod", TTL: "36h" } });
    expect(settings).toMatchObject({
      listen: { port: 81 },
      capture: { enabled: true, ttl_ms: 36 * 3_600_000 },
      environment: "x-prod-${E}",
      upstreams: [{ args: ["prod"], env: { K: "prod" } }],
    });
  });

  test("a variable that is not set is a problem that names the key, the line and the variable", () => {
    expect(problems("store: files\nchat:\n  signing_secret: ${NOPE}\n")).toEqual([
      "svc.config.yaml:3:19: chat.signing_secret: the environment variable NOPE is not set",
    ]);
    expect(problems("environment: ${toString}")[0]).toMatch(/toString is not set/);
  });

  test.each(["${", "${}", "${a-b}", "a ${NAME", "${NAME:-x}"])("%s is refused", (text) => {
    expect(problems(`environment: '${text}'`)[0]).toMatch(/holds a \$\{ that is not \$\{NAME\}/);
  });

  test("what a variable holds is not replaced again, and is judged like any value", () => {
    expect(load("environment: '${A}'", { env: { A: "${B}" } }).settings.environment).toBe("${B}");
    expect(problems("listen: {port: '${A}'}", { env: { A: "http" } })[0]).toMatch(/listen\.port: must be a number/);
  });
});

describe("problems", () => {
  const cases: [string, string, RegExp][] = [
    ["an unknown key", "store: files\nmanifest: x\n", /^svc\.config\.yaml:2:1: manifest: unknown key; did you mean "manifests"/],
    ["an unknown key in a section", "capture:\n  enable: true\n", /^svc\.config\.yaml:2:3: capture\.enable: unknown key; did you mean "enabled"/],
    ["retention", "retention: {}\n", /retention: unknown key; retention belongs in the policy file/],
    ["a malformed duration", "capture: {ttl: 7 days}", /capture\.ttl: is not a duration/],
    ["a number as duration", "capture: {ttl: 7}", /capture\.ttl: must be text/],
    ["an endless duration", "capture: {ttl: 99999999w}", /capture\.ttl: is not a duration/],
    ["no time at all", "anchor: {interval: 0s}", /anchor\.interval: is too short/],
    ["a port too high", "listen: {port: 70000}", /listen\.port: must be at most 65535/],
    ["a negative port", "listen: {port: -1}", /listen\.port: must be at least 0/],
    ["half a port", "listen: {port: 80.5}", /listen\.port: must be a whole number/],
    ["a host with a scheme", "listen: {host: 'http://x'}", /listen\.host: is not a host name/],
    ["a role map that is a list", "oidc: {issuer: 'https://i', audience: a, role_map: [admin]}", /oidc\.role_map: must be a mapping/],
    ["an unknown role", "oidc: {issuer: 'https://i', audience: a, role_map: {g: root}}", /oidc\.role_map\.g: must be one of agent, auditor/],
    ["an issuer without audience", "oidc: {issuer: 'https://i'}", /svc\.config\.yaml:1: oidc\.issuer: an issuer needs an audience/],
    ["a NUL in a path", 'data: "a\\0b"', /data: must not hold a NUL/],
    ["an open console for everybody", "console: open\nlisten: {host: 0.0.0.0}", /svc\.config\.yaml:1: console\.mode: an open console asks nobody/],
    ["an open console on [::]", "console: open\nlisten: {host: '::'}", /an open console/],
    ["an open console as admin", "console: {mode: open, role: admin}", /console\.role: an open console never acts as admin/],
    ["an unknown console mode", "console: on", /console: must be one of off, open, login/],
    ["postgres without a database", "store: postgres", /store: the postgres store needs SVC_DATABASE_URL/],
    ["a section that is a list", "capture: []", /capture: must be a mapping with enabled, ttl, redact_pii/],
    ["a file that is a list", "- a", /must be a mapping of settings/],
    ["an upstream without a door", "upstreams: [{name: a}]", /upstreams\[0\]: needs a command to start or a url/],
    ["an upstream with two doors", "upstreams: [{name: a, command: x, url: 'http://x'}]", /upstreams\[0\]\.url: cannot stand beside command/],
    ["arguments for a url", "upstreams: [{name: a, url: 'http://x', args: [b]}]", /upstreams\[0\]\.args: belongs to an upstream with a command/],
    ["a reserved upstream", "upstreams: [{name: svc, command: x}]", /upstreams\[0\]\.name: must be letters/],
    ["an upstream twice", "upstreams: [{name: a, command: x}, {name: a, command: y}]", /upstreams\[1\]\.name: another upstream has this name/],
    ["a header with a line break", 'upstreams: [{name: a, url: "http://x", headers: {x: "a\\nb"}}]', /headers\.x: must not hold a line break/],
    ["an unknown passthrough", "upstreams: [{name: a, command: x, passthrough: [tools]}]", /passthrough\[0\]: must be one of resources/],
    ["an unknown sink", "anchor: {sinks: [{type: ftp}]}", /anchor\.sinks\[0\]/],
    ["an egress URL", "egress: {allow: ['https://x.example.com/']}", /egress\.allow\[0\]: is not a host pattern/],
    ["a reserved actor", "actor: engine", /actor: is a name of the service itself/],
    ["a password in an address", "console_url: https://a:b@c", /console_url: must not hold a user name or password/],
    ["two channels of one name", "notifications: {channels: [{name: a, type: x}, {name: a, type: y}]}", /channels\[1\]\.name: another channel/],
    ["a duplicate key", "store: files\nstore: files", /duplicate key/],
    ["a tag", "store: !!js/function x", /tags/],
  ];
  test.each(cases)("%s", (_name, yaml, wanted) => {
    expect(problems(yaml).join("\n")).toMatch(wanted);
  });

  test("all are told at once, from all places", () => {
    const found = problems("store: mysql\nlisten: {port: 70000}\nnope: 1\n", { env: { SVC_CAPTURE: "maybe", SVC_LOG: "loud", SVC_CAPTURE_TTL_DAYS: "x", SVC_CHAT_USERS: "{" }, flags: { role: "admin" } });
    expect(found).toHaveLength(8);
  });

  test("a secret is never part of one", () => {
    const found = problems("chat: {signing_secret: 987654321}\ndatabase_url: mysql://u:pw987@h\nupstreams: [{name: a, url: 'https://h', headers: {authorization: 987654321}}]\n", {
      env: { SVC_APPROVAL_WEBHOOK: "pw987", SVC_OIDC_ROLE_MAP: "pw987" },
    });
    expect(found.length).toBeGreaterThanOrEqual(4);
    expect(found.join("\n")).not.toMatch(/987/);
  });

  test("a config file that is not there, a folder, a pipe, a circle, or not text", () => {
    const cwd = tempDir("cfg");
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    symlinkSync("loop", join(cwd, "loop"));
    writeFileSync(join(cwd, "latin1"), Buffer.from([0xff, 0xfe, 0x41]));
    const from = (config: string) => () => loadSettings({ env: {}, flags: { config }, cwd });
    expect(from("nope.yaml")).toThrow(/nope\.yaml: does not exist/);
    expect(from(".")).toThrow(/is a folder/);
    expect(from("pipe")).toThrow(/is a named pipe/);
    expect(from("/dev/zero")).toThrow(/is a device/);
    expect(from("loop")).toThrow(/leads in a circle/);
    expect(from("latin1")).toThrow(/is not UTF-8/);
  });

  test("a file of comments is an empty config", () => {
    expect(load("# nothing yet\n\n  # still\n").settings.store).toBe("files");
    expect(load("").settings.store).toBe("files");
  });
});

describe("warnings and hooks", () => {
  test("half a chat setup, an issuer over plain http, no roles", () => {
    const { settings } = load("oidc: {issuer: 'http://id.example.com', audience: a}", { env: { SVC_CHAT_USERS: "{}" } });
    expect(settings.meta.warnings).toEqual([
      expect.stringMatching(/^SVC_CHAT_USERS: chat actions stay off/),
      expect.stringMatching(/^svc\.config\.yaml:1: oidc\.issuer: .*plain http/),
      expect.stringMatching(/no group has a role/),
    ]);
    expect(load("oidc: {issuer: 'http://localhost:1', audience: a, role_map: {g: admin}}").settings.meta.warnings).toEqual([]);
  });

  test("a feature may hold its key to its own schema", () => {
    const schemas = { "notifications.channels": z.array(z.strictObject({ name: z.string(), type: z.enum(["slack"]), url: z.string() })) };
    const yaml = "notifications:\n  channels:\n    - {name: a, type: slak, url: x}\n    - {name: b, type: slack}\n";
    expect(problems(yaml, { schemas })).toEqual([
      expect.stringMatching(/^svc\.config\.yaml:3:23: notifications\.channels\[0\]\.type: must be slack/),
      expect.stringMatching(/^svc\.config\.yaml:4:7: notifications\.channels\[1\]\.url: is missing/),
    ]);
  });
});
