import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { load, problems } from "../../test/support/settings.ts";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { describeSettings, renderSettings, showOrigin } from "./describe.ts";
import { type LoadOptions, loadSettings } from "./load.ts";
import { hasListenSetting, keyFileOf } from "./settings.ts";

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
    verifies(
      "contract.config.paths",
      "contract.config.listen",
      "contract.config.oidc",
      "contract.config.rollback",
      "contract.config.features",
      "contract.config.otlp",
      "contract.config.registry",
      "contract.config.gateway",
      "ops.log.format",
      "ops.log.level",
    );
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
      oidc: {
        audience: ["svc"],
        role_map: { ops: "operator" },
        groups_claim: "roles",
        max_permissions: { bots: ["crm.*"] },
      },
      rollback: { compensator_cmd: "undo --now", reader_cmd: "read", timeout_ms: 5_000 },
      capture: { enabled: true, ttl_ms: 3 * 86_400_000, redact_pii: false },
      anchor: {
        interval_ms: 1_800_000,
        sinks: [
          { type: "file", path: join(cwd, "anchors.jsonl") },
          { type: "webhook", secret: "s3cret" },
        ],
      },
      egress: { allow: ["*.example.com"], block_private: true, region: "eu" },
      archive_root: join(cwd, "archive"),
      notifications: { channels: [{ name: "ops", type: "slack", events: ["alert"] }] },
      alerts: { remind_ms: 7_200_000, denial_spike: 5, undo_closing_ms: 86_400_000 },
      log: { format: "pretty", level: "debug", requests: false },
      otlp: { endpoint: "https://otel.example.com", headers: { authorization: "Bearer abc" } },
      registry: { manifests: join(cwd, "reg/m"), policies: join(cwd, "reg/p") },
      mode: "observe",
      actor: "bot",
      permissions: ["crm.read"],
      auth: { keys: join(cwd, "gw.json") },
      upstreams: [
        {
          name: "crm",
          command: "node",
          args: ["server.js"],
          env: { TOKEN: "abc" },
          cwd: join(cwd, "up"),
          namespace: true,
          timeout_ms: 5_000,
          passthrough: ["resources"],
        },
        {
          name: "web",
          url: "https://mcp.example.com/mcp",
          namespace: false,
          timeout_ms: 60_000,
          passthrough: [],
        },
      ],
    });
    expect(hasListenSetting(settings)).toBe(true);
  });

  test("shown: secrets masked everywhere, each value with its origin", () => {
    const { settings } = load(WHOLE, {
      env: {
        SVC_CHAT_SIGNING_SECRET: "chat-s3cret",
        SVC_OIDC_CLIENT_ID: "web",
        SVC_OIDC_CLIENT_SECRET: "client-s3cret",
        SVC_APPROVAL_WEBHOOK: "https://h.example.com/pw1",
        PORT: "9001",
      },
    });
    const lines = describeSettings(settings);
    const text = JSON.stringify(lines);
    for (const secret of ["hunter2", "s3cret", "/T0/B0", "Bearer", "chat-", "pw1", '"abc"'])
      expect(text).not.toContain(secret);
    const at = (key: string) => lines.find((line) => line.key === key)!;
    expect(at("database_url").value).toBe("postgres://svc:********@db/svc");
    expect(at("notifications.approval_webhook").value).toBe("https://h.example.com/********");
    expect(at("capture.ttl").value).toBe("3d");
    expect(showOrigin(at("listen.port").origin)).toBe("PORT");
    expect(showOrigin(at("listen.host").origin)).toBe("svc.config.yaml:8");
    expect(showOrigin(at("tenant").origin)).toBe("default");
    expect(renderSettings(settings)).toMatch(/^listen\.port +9001 +PORT$/m);
  });
});

test("the defaults of the interface", () => {
  verifies(
    "core.setting.store-default",
    "core.setting.console-default",
    "contract.start.default-host",
    "ops.capture-config.enabled",
    "ops.capture-config.ttl",
    "ops.capture-config.redact-pii",
    "ops.anchoring.interval",
    "ops.alerts.remind-default",
    "ops.egress.block-private-default",
  );
  const { settings } = load(null);
  expect(settings).toMatchObject({
    store: "files",
    console: { mode: "off", role: "operator" },
    listen: { host: "127.0.0.1", port: 8787 },
    capture: { enabled: false, ttl_ms: 7 * 86_400_000, redact_pii: true },
    anchor: { interval_ms: 3_600_000, sinks: [] },
    alerts: { remind_ms: 3_600_000, denial_spike: 10, undo_closing_ms: 86_400_000 },
    egress: { block_private: false, region: null },
    oidc: { groups_claim: "groups" },
    mode: "enforce",
  });
  expect(settings.egress.allow).toBeUndefined();
});

describe("precedence", () => {
  test("option, then environment, then file, then default", () => {
    verifies(
      "contract.config.flag-first",
      "contract.config.env-second",
      "contract.config.file-third",
      "contract.start.default-port",
    );
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
      expect.stringMatching(/^SVC_STORE: must be one of/),
      expect.stringMatching(/^svc\.config\.yaml:1:8: store: must be one of files, sqlite, postgres/),
    ]);
    expect(problems(null, { env: { SVC_STORE: "oracle" } })[0]).toMatch(/^SVC_STORE: must be one of/);
  });

  test("paths of the environment and of options are taken from the working directory", () => {
    verifies("contract.config.file-place");
    const cwd = tempDir("cfg");
    mkdirSync(join(cwd, "etc"));
    writeFileSync(join(cwd, "etc/c.yaml"), "manifests: m\npolicy: p\n");
    const settings = loadSettings({
      env: { SVC_CONFIG: "etc/c.yaml", SVC_POLICY: "q" },
      flags: { data: "d" },
      cwd,
    });
    expect(settings).toMatchObject({
      manifests: join(cwd, "etc/m"),
      policy: join(cwd, "q"),
      data: join(cwd, "d"),
    });
    expect(settings.meta.file).toBe("etc/c.yaml");
    expect(loadSettings({ env: {}, flags: { config: join(cwd, "etc/c.yaml") }, cwd: "/" }).manifests).toBe(
      join(cwd, "etc/m"),
    );
  });

  test("a manifests URL stays one", () => {
    expect(load("manifests: https://x.example.com/m.yaml").settings.manifests).toBe(
      "https://x.example.com/m.yaml",
    );
  });

  test("PORT alone does not make a gateway listen", () => {
    expect(hasListenSetting(load(null, { env: { PORT: "9" } }).settings)).toBe(false);
    expect(hasListenSetting(load(null, { flags: { port: "9" } }).settings)).toBe(true);
    expect(hasListenSetting(load("listen: {}").settings)).toBe(true);
  });

  test("every environment variable of the interface", () => {
    verifies(
      "ops.trace.endpoint-env",
      "core.setting.manifests",
      "core.setting.keys",
      "core.setting.data",
      "core.setting.policy",
      "core.setting.port",
      "core.setting.store",
      "core.setting.database-url",
      "core.setting.signing-key",
      "core.setting.kill-file",
      "core.setting.console",
      "core.setting.compensator-cmd",
      "core.setting.reader-cmd",
      "core.setting.oidc-issuer",
      "core.setting.oidc-role-map",
      "ops.capture-config.env",
      "ops.capture-config.env-ttl",
    );
    const { settings } = load(null, {
      env: {
        SVC_MANIFESTS: "/m",
        SVC_KEYS: "/k",
        SVC_DATA: "/d",
        SVC_POLICY: "/p",
        PORT: "0",
        SVC_HOST: "::1",
        SVC_STORE: "postgres",
        SVC_DATABASE_URL: "postgresql://db",
        SVC_SIGNING_KEY: "/s",
        SVC_KILL_FILE: "/x",
        SVC_CONSOLE: "login",
        SVC_COMPENSATOR_CMD: "c",
        SVC_READER_CMD: "r",
        SVC_METRICS_PUBLIC: "1",
        SVC_LOG: "json",
        SVC_OIDC_ISSUER: "https://i",
        SVC_OIDC_AUDIENCE: "a",
        SVC_OIDC_ROLE_MAP: '{"g": "admin"}',
        SVC_OIDC_GROUPS_CLAIM: "grp",
        SVC_OIDC_CLIENT_ID: "web",
        SVC_OIDC_CLIENT_SECRET: "w",
        SVC_SECURE_COOKIES: "1",
        SVC_CAPTURE: "1",
        SVC_CAPTURE_TTL_DAYS: "2",
        SVC_APPROVAL_WEBHOOK: "https://w",
        SVC_CONSOLE_URL: "https://c/",
        SVC_OTLP_ENDPOINT: "http://o:4318",
        SVC_CHAT_SIGNING_SECRET: "s",
        SVC_CHAT_USERS: '{"U1": "ann"}',
        SVC_ENVIRONMENT: "prod",
        SVC_CONSOLE_ROLE: "approver",
      },
    });
    expect(settings).toMatchObject({
      manifests: "/m",
      keys: "/k",
      data: "/d",
      policy: "/p",
      listen: { host: "::1", port: 0 },
      store: "postgres",
      database_url: "postgresql://db",
      signing_key: "/s",
      kill_file: "/x",
      console: { mode: "login", role: "approver" },
      rollback: { compensator_cmd: "c", reader_cmd: "r" },
      metrics_public: true,
      log: { requests: true },
      oidc: {
        issuer: "https://i",
        audience: ["a"],
        role_map: { g: "admin" },
        groups_claim: "grp",
        client_id: "web",
        client_secret: "w",
      },
      secure_cookies: true,
      capture: { enabled: true, ttl_ms: 2 * 86_400_000 },
      notifications: { approval_webhook: "https://w" },
      console_url: "https://c",
      otlp: { endpoint: "http://o:4318" },
      chat: { signing_secret: "s", users: { U1: "ann" } },
      environment: "prod",
    });
  });
});

test("a key file named by option or environment wins over the file's auth.keys", () => {
  const yaml = "auth: {keys: gw.json}\nkeys: all.json\n";
  const named = (options: Partial<LoadOptions>) => keyFileOf(load(yaml, options).settings);
  expect(named({})).toMatch(/\/gw\.json$/);
  expect(named({ flags: { keys: "mine.json" } })).toMatch(/\/mine\.json$/);
  expect(named({ env: { SVC_KEYS: "theirs.json" } })).toMatch(/\/theirs\.json$/);
  expect(keyFileOf(load("keys: all.json\n").settings)).toMatch(/\/all\.json$/);
});
