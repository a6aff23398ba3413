/** `svc doctor`: one line a check, what to do, exit 1 on a failure; and that looking changes and sends nothing. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { clockFindings } from "../../src/cli/doctor/clock.ts";
import { diskSpaceFinding } from "../../src/cli/doctor/disk.ts";
import type { DoctorFinding } from "../../src/cli/doctor/finding.ts";
import { ledgerTail } from "../../src/cli/doctor/store.ts";
import { loadSettings } from "../../src/config/load.ts";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { haltUnit } from "../../src/govern/halts/halts.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openApp } from "../../src/service/open-app.ts";
import { fakeUpstream } from "../gateway/support/gateway.ts";
import { startReceiver } from "../golden/notify/support/receivers.ts";
import { fakeEnv } from "../support/env.ts";
import { type SpeakOptions, speak } from "../support/io.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("doctor");
});

const write = (name: string, text: string, mode = 0o600) => {
  writeFileSync(join(folder, name), text, { mode });
  chmodSync(join(folder, name), mode);
};
const key = (name: string, rest: object) => ({ name, key_sha256: sha256Hex(name), ...rest });

async function doctor(args: string[] = [], options: Partial<SpeakOptions> = {}) {
  const { code, out, err } = await speak(["doctor", "--json", ...args], { cwd: folder, ...options });
  const { ok, checks } = JSON.parse(out) as { ok: boolean; checks: DoctorFinding[] };
  expect(err).toBe("");
  expect(ok).toBe(code === 0);
  return {
    code,
    checks,
    /** `ok: message` for each finding of one check. */
    of: (check: string) =>
      checks.filter((one) => one.check === check).map(({ status, message }) => `${status}: ${message}`),
  };
}

describe("a healthy service", () => {
  beforeEach(() => {
    write("manifests.yaml", "- {tool: crm.get, effect: read, permission: crm.read}\n");
    write(
      "policy.yaml",
      "version: 1\nrules: [{id: no, match: {tool: crm.*}, action: deny, reason: no}]\ntests: [{name: t, input: {tool: crm.get}, expect: deny}]\n",
    );
    write(
      "keys.json",
      JSON.stringify([key("bot", { role: "agent", max_permissions: ["*"] }), key("root", { role: "admin" })]),
    );
    write("sign.key", newKeyPair().private_pem);
    write(
      "svc.config.yaml",
      "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\nsigning_key: sign.key\n",
    );
  });

  it("gets a line for each check and exit 0", async () => {
    verifies("core.cli.doctor");
    mkdirSync(join(folder, "data"));
    const { code, out, err } = await speak(["doctor"], { cwd: folder });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const lines = out.trimEnd().split("\n");
    expect(lines.pop()).toBe(`${lines.length} ok, 0 warn, 0 fail`);
    expect(lines.map((line) => /^ok {4}(\S+(?: key)?) /.exec(line)?.[1])).toEqual([
      "config",
      "manifests",
      "policy",
      "keys",
      "signing key",
      "store",
      "ledger",
      "clock",
      "disk",
      "anchors",
      "egress",
      "capture",
      "console",
    ]);
    expect(out).toContain("its 1 test passes");
  });

  it("leaves a data folder that is not there unmade", async () => {
    const { of, code } = await doctor();
    expect(code).toBe(0);
    expect(of("store")[0]).toContain("does not exist yet");
    expect(existsSync(join(folder, "data"))).toBe(false);
  });

  it("tries the store without touching the ledger", async () => {
    mkdirSync(join(folder, "data"));
    const { of } = await doctor();
    expect(of("store")[0]).toContain("files store at");
    expect(of("ledger")).toEqual(["ok: no records yet"]);
    expect(readFileSync(join(folder, "data", "ledger.jsonl"), "utf8")).toBe("");
  });

  it("says whether capture is on", async () => {
    expect((await doctor()).of("capture")[0]).toMatch(/^ok: off/);
    expect(
      (await doctor([], { env: { SVC_CAPTURE: "1", SVC_CAPTURE_TTL_DAYS: "3" } })).of("capture")[0],
    ).toMatch(/^ok: on: .* 3d/);
    write("svc.config.yaml", "capture: {enabled: true, redact_pii: false}\n");
    expect((await doctor()).of("capture")[0]).toMatch(/^warn: on .*personal data/);
  });
});

describe("config", () => {
  it("that does not load is a failure for each problem, and nothing else is looked at", async () => {
    write("svc.config.yaml", "store: oracle\nlisten: {port: 70000}\ntypo: 1\n");
    const { code, checks } = await doctor();
    expect(code).toBe(1);
    expect(checks).toHaveLength(3);
    expect(
      checks.every(({ check, status, fix }) => check === "config" && status === "fail" && fix !== null),
    ).toBe(true);
    expect(checks.map(({ message }) => message).join("\n")).toMatch(/:1:[\s\S]*:2:[\s\S]*:3:.*typo/);
  });

  it("that is legal and odd is a warning", async () => {
    const { code, of } = await doctor([], { env: { SVC_CHAT_SIGNING_SECRET: "s3cret-value" } });
    expect(code).toBe(0);
    expect(of("config")[1]).toMatch(/^warn: SVC_CHAT_SIGNING_SECRET: chat actions stay off/);
  });
});

describe("manifests and policy", () => {
  it("warns of drafts, deprecated ones and loose ends", async () => {
    write(
      "m.yaml",
      `
- {tool: a, effect: read, permission: p, lifecycle: draft}
- {tool: b, effect: read, permission: p, lifecycle: deprecated}
- {tool: c, effect: read, permission: p, requires: [ghost]}
- {tool: d, effect: read, permission: p, version: 1}
- {tool: d, effect: read, permission: p, version: 2, lifecycle: draft}
`,
    );
    const { code, of } = await doctor(["-m", "m.yaml"]);
    expect(code).toBe(0);
    expect(of("manifests")).toEqual([
      expect.stringMatching(/^ok: 5 manifests in .*m\.yaml$/),
      expect.stringMatching(/^warn: .*tool b: lifecycle: deprecated/),
      expect.stringMatching(/^warn: .*requires: ghost has no manifest/),
      expect.stringMatching(/^warn: 1 tool has only a draft.*: a$/),
    ]);
  });

  it("fails with every problem of both", async () => {
    write("m.yaml", "- {tool: a, effect: odd, permission: p}\n- {tool: b}\n");
    write("p.yaml", "version: 2\nrulez: []\n");
    const { code, of } = await doctor(["-m", "m.yaml", "--policy", "p.yaml"]);
    expect(code).toBe(1);
    expect(of("manifests").filter((line) => line.startsWith("fail"))).toHaveLength(3);
    expect(of("policy").join("\n")).toMatch(/fail: .*version[\s\S]*fail: .*rulez/);
  });

  it("fails on a policy test that fails, knowing the manifests' labels", async () => {
    write("m.yaml", "- {tool: a, effect: irreversible, permission: p}\n");
    const test = (expect: string) =>
      `version: 1\nrules: [{id: no, match: {effect: irreversible}, action: deny, reason: no}]\ntests: [{name: last, input: {tool: a}, expect: ${expect}}]\n`;
    write("p.yaml", test("deny"));
    expect((await doctor(["-m", "m.yaml", "--policy", "p.yaml"])).of("policy")[0]).toMatch(
      /^ok: 1 rule .*its 1 test passes/,
    );
    write("p.yaml", test("allow"));
    const { code, of } = await doctor(["-m", "m.yaml", "--policy", "p.yaml"]);
    expect(code).toBe(1);
    expect(of("policy")[0]).toMatch(/^fail: .*test "last" expected allow, got deny/);
  });

  it("reads remote manifests, and falls back on the copy that a server would use", async () => {
    verifies("ops.egress.covers-manifests");
    let up = true;
    const receiver = await startReceiver((_request, response) => {
      response.statusCode = up ? 200 : 500;
      response.end("- {tool: a, effect: read, permission: p}\n");
    });
    onTestFinished(() => receiver.close());
    const env = { SVC_MANIFESTS: receiver.url("/m.yaml?token=hush") };
    const { of } = await doctor([], { env });
    expect(of("manifests")).toEqual([`ok: 1 manifest in 127.0.0.1:${receiver.port}`]);
    expect(existsSync(join(folder, "data"))).toBe(false);
    expect(receiver.received.map(({ method, body }) => [method, body])).toEqual([["GET", ""]]);
    const server = await openApp(loadSettings({ env, cwd: folder }), systemEnv);
    await server.close();
    const before = receiver.connections();
    write("svc.config.yaml", "egress: {allow: [other.example.com]}\n");
    const refused = await doctor(["-d", "elsewhere"], { env });
    expect(refused.of("manifests")[0]).toMatch(/^fail: egress rule "allow" refuses 127\.0\.0\.1/);
    expect(refused.of("egress")[1]).toMatch(/^fail: manifests: egress rule "allow"/);
    expect(receiver.connections()).toBe(before);
    write("svc.config.yaml", "");
    up = false;
    expect((await doctor([], { env })).of("manifests")).toEqual([
      `ok: 1 manifest in 127.0.0.1:${receiver.port}`,
      "warn: remote manifests are unreachable; using the last good copy",
    ]);
    const down = await doctor(["-d", "elsewhere"], { env });
    expect(down.code).toBe(1);
    expect(JSON.stringify(down.checks)).not.toContain("hush");
  });
});

describe("keys", () => {
  const withKeys = (entries: object[], mode?: number) => {
    write("keys.json", JSON.stringify(entries), mode);
    return doctor(["--keys", "keys.json"]);
  };

  it("warns of a key that asks and approves", async () => {
    verifies("contract.approval.doctor-warns");
    const { code, of } = await withKeys([
      key("both", { roles: ["agent", "approver"], max_permissions: ["*"] }),
      key("fine", { roles: ["agent", "auditor"], max_permissions: ["*"] }),
      key("off", { roles: ["agent", "admin"], max_permissions: ["*"], disabled: true }),
      key("root", { role: "admin" }),
    ]);
    expect(code).toBe(0);
    expect(of("keys").slice(1)).toEqual(["warn: 1 key can request a call and also approve it: both"]);
  });

  it("warns of expired keys, agents without a cap, and no admin", async () => {
    const { of } = await withKeys([
      key("old", { role: "admin", expires_at: "2020-01-01T00:00:00Z" }),
      key("bot", { role: "agent" }),
      key("gone", { role: "admin", disabled: true }),
    ]);
    expect(of("keys").slice(1)).toEqual([
      "warn: 1 key expired: old",
      "warn: 1 key of agents cannot request any permission: bot",
      expect.stringMatching(/^warn: no enabled key has the admin role/),
    ]);
  });

  it.each([
    [0o666, "written by others"],
    [0o644, "read by everybody"],
  ])("warns of mode %s", async (mode, what) => {
    const { of } = await withKeys([key("root", { role: "admin" })], mode);
    expect(of("keys")[1]).toContain(what);
  });

  it("fails on a file that does not parse or is not there", async () => {
    write("keys.json", '[{"name": "x"}]');
    expect((await doctor(["--keys", "keys.json"])).of("keys")[0]).toMatch(/^fail: .*entry 0 \("x"\): roles/);
    expect((await doctor(["--keys", "none.json"])).of("keys")[0]).toMatch(
      /^fail: .*none\.json: does not exist/,
    );
  });

  it("warns where nobody could ever come in", async () => {
    expect((await doctor()).of("keys")[0]).toMatch(/^warn: no keys and no OIDC issuer/);
  });
});

describe("OIDC", () => {
  it("tries discovery, and tells of agents without a cap", async () => {
    verifies("contract.readings.oidc-no-cap");
    const receiver = await startReceiver((request, response) => {
      const issuer = receiver.url("").replace(/\/$/, "");
      response.end(
        JSON.stringify(request.path === "/jwks" ? { keys: [] } : { issuer, jwks_uri: `${issuer}/jwks` }),
      );
    });
    onTestFinished(() => receiver.close());
    const issuer = receiver.url("").replace(/\/$/, "");
    const config = `oidc: {issuer: "${issuer}", audience: svc, role_map: {bots: agent}`;
    write("svc.config.yaml", `${config}}\n`);
    const { code, of } = await doctor();
    expect(code).toBe(0);
    expect(of("oidc")).toEqual([
      `ok: 127.0.0.1:${receiver.port} answers discovery and serves its keys`,
      "warn: agents with a token can request every permission that the manifests declare",
    ]);
    write("svc.config.yaml", `${config}, max_permissions: {bots: [crm.*]}}\n`);
    expect((await doctor()).of("oidc")).toHaveLength(1);
  });

  it("fails where the issuer is out of reach or refused", async () => {
    const receiver = await startReceiver((_request, response) => {
      response.statusCode = 404;
      response.end();
    });
    onTestFinished(() => receiver.close());
    const config = `oidc: {issuer: "${receiver.url("")}", audience: svc, role_map: {ops: operator}}\n`;
    write("svc.config.yaml", config);
    expect((await doctor()).of("oidc")).toEqual([
      `fail: discovery failed: 127.0.0.1:${receiver.port} answered 404`,
    ]);
    write("svc.config.yaml", `${config}egress: {allow: []}\n`);
    const before = receiver.connections();
    const { code, of } = await doctor();
    expect(code).toBe(1);
    expect(of("oidc")[0]).toContain('egress rule "allow"');
    expect(receiver.connections()).toBe(before);
  });
});

describe("security events", () => {
  it("fetches the transmitter's keys, and fails where they are out of reach", async () => {
    verifies("beyond.caep.doctor");
    let status = 200;
    const receiver = await startReceiver((_request, response) => {
      response.statusCode = status;
      response.end('{"keys": []}');
    });
    onTestFinished(() => receiver.close());
    const config = `caep: {issuer: "https://id.example.com", audience: svc, jwks_url: "${receiver.url("/jwks")}"}\n`;
    write("svc.config.yaml", config);
    expect((await doctor()).of("caep")).toEqual([
      `ok: 127.0.0.1:${receiver.port} serves the keys of security events`,
    ]);
    status = 500;
    const { code, of } = await doctor();
    expect(code).toBe(1);
    expect(of("caep")[0]).toContain("answered 500");
    write("svc.config.yaml", `${config}egress: {allow: []}\n`);
    expect((await doctor()).of("caep")[0]).toContain('egress rule "allow"');
  });
});

describe("the signing key", () => {
  it("warns of its mode and fails on another kind", async () => {
    write("sign.key", newKeyPair().private_pem, 0o644);
    const env = { SVC_SIGNING_KEY: "sign.key" };
    expect((await doctor([], { env })).of("signing key")[0]).toMatch(/^warn: .*other accounts/);
    write("sign.key", newKeyPair().public_pem);
    const { code, of } = await doctor([], { env });
    expect(code).toBe(1);
    expect(of("signing key")[0]).toMatch(/^fail: .*is a public key/);
  });
});

describe.each(["files", "sqlite"] as const)("a %s store", (store) => {
  const open = () =>
    openApp(loadSettings({ flags: { store, data: join(folder, "data") }, env: {}, cwd: folder }), systemEnv);

  it("verifies its tail, reports its halts, and leaves no trace", async () => {
    const app = await open();
    await app.core.store.transact(haltUnit(app.core, "ann", { reason: "drill" }));
    await app.close();
    write("kill", "");
    const { code, of } = await doctor(["--store", store], { env: { SVC_KILL_FILE: "kill" } });
    expect(code).toBe(0);
    expect(of("store")[0]).toMatch(/^ok: .*accepts writes; 1 record in the ledger$/);
    expect(of("ledger")[0]).toMatch(/^ok: 1 record verified, head [0-9a-f]{16}$/);
    expect(of("halts")).toEqual([
      "warn: 1 halt is active",
      expect.stringMatching(/^warn: the kill-switch file .*kill exists/),
    ]);
    const again = await open();
    expect(await again.core.store.get("meta", "doctor")).toBeUndefined();
    expect((await again.core.store.head()).records).toBe(1);
    await again.close();
  });

  it("that cannot be opened is a failure", async () => {
    write("data", "not a folder");
    const { code, of } = await doctor(["--store", store]);
    expect(code).toBe(1);
    expect(of("store")[0]).toMatch(/^fail: .*is not a directory/);
  });
});

describe("a postgres store", () => {
  it("is tried out like the others, and its password stays hidden", async () => {
    const { url, drop } = await freshDatabase();
    onTestFinished(drop);
    const { code, of } = await doctor(["--store", "postgres"], { env: { SVC_DATABASE_URL: url } });
    expect(code).toBe(0);
    expect(of("store")[0]).toMatch(
      /^ok: postgres store at postgres.*accepts writes; 0 records in the ledger$/,
    );
    const { password } = new URL(url);
    if (password !== "") expect(of("store")[0]).not.toContain(password);
  });

  it("that does not answer is a failure", async () => {
    const env = { SVC_STORE: "postgres", SVC_DATABASE_URL: "postgres://svc:hush-hush@127.0.0.1:1/svc" };
    const { code, of } = await doctor([], { env });
    expect(code).toBe(1);
    expect(of("store")[0]).toMatch(/^fail: /);
    expect(of("store")[0]).not.toContain("hush-hush");
  });
});

describe("the ledger's tail", () => {
  it("tells the first bad record", async () => {
    const lines = ['{"seq":0}'];
    const store = {
      head: async () => ({ records: 1, hash: "0".repeat(64), events: {} }),
      records: async () => lines,
    };
    const { finding, last_ms } = await ledgerTail(store as unknown as StateStore);
    expect(finding).toMatchObject({
      check: "ledger",
      status: "fail",
      fix: expect.stringContaining("svc verify"),
    });
    expect(finding.message).toMatch(/^record 0: /);
    expect(last_ms).toBeNull();
  });

  it("tells of records that are not there", async () => {
    const store = {
      head: async () => ({ records: 3, hash: "0".repeat(64), events: {} }),
      records: async () => [],
    };
    const { finding } = await ledgerTail(store as unknown as StateStore);
    expect(finding).toMatchObject({ status: "fail", message: "3 records of the last 3 cannot be read" });
  });
});

describe("clock and disk", () => {
  const now = Date.UTC(2026, 5, 15);

  it("checks the clock on its own and against the ledger", async () => {
    expect(clockFindings(now, null)[0]!.status).toBe("ok");
    expect(clockFindings(now, now - 1)[0]!.status).toBe("ok");
    expect(clockFindings(now, now + 3_600_000)[0]).toMatchObject({ status: "warn" });
    expect(clockFindings(0, null)[0]).toMatchObject({ status: "fail" });
    const { code, of } = await doctor([], { clock: fakeEnv({ now: 1_000 }) });
    expect(code).toBe(1);
    expect(of("clock")[0]).toContain("1970-01-01");
  });

  it("judges the room on the disk", () => {
    const MIB = 1_048_576;
    const judged = (free_bytes: number, free_files: number | null = null) =>
      diskSpaceFinding({ free_bytes, free_files }, "/data");
    expect(judged(50_000 * MIB)).toEqual({
      check: "disk",
      status: "ok",
      message: "48 GiB free at /data",
      fix: null,
    });
    expect(judged(500 * MIB)).toMatchObject({ status: "warn", message: "500 MiB free at /data" });
    expect(judged(MIB).status).toBe("fail");
    expect(judged(50_000 * MIB, 12)).toMatchObject({
      status: "warn",
      message: "only 12 more files fit at /data",
    });
  });
});

describe("destinations", () => {
  const channels = (url: string) => `
notifications:
  channels:
    - {name: hook, type: webhook, url: "${url}", secret: hush-hush}
    - {name: mail, type: smtp, host: 127.0.0.1, port: 1, from: a@example.com, to: [b@example.com]}
  approval_webhook: "${url}approve"
anchor: {sinks: [{type: webhook, url: "${url}anchor"}]}
otlp: {endpoint: "${url}otlp"}
upstreams: [{name: tools, url: "${url}mcp"}]
`;

  it("are each judged, and nothing is sent", async () => {
    verifies("ops.doctor.destinations");
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    write("svc.config.yaml", channels(receiver.url("/t0ken/")));
    const { code, of, checks } = await doctor();
    expect(code).toBe(0);
    const at = `127.0.0.1:${receiver.port} is allowed and resolves`;
    expect(of("egress").slice(1)).toEqual([
      `ok: notifications hook: ${at}`,
      "ok: notifications mail: 127.0.0.1:1 is allowed and resolves",
      `ok: notifications SVC_APPROVAL_WEBHOOK: ${at}`,
      `ok: anchors: ${at}`,
      `ok: traces: ${at}`,
      `ok: upstream tools: ${at}`,
    ]);
    expect(receiver.connections()).toBe(0);
    expect(JSON.stringify(checks)).not.toMatch(/t0ken|hush-hush/);
  });

  it("that the rules refuse are failures that name the rule", async () => {
    const receiver = await startReceiver();
    onTestFinished(() => receiver.close());
    write("svc.config.yaml", `${channels(receiver.url("/"))}egress: {block_private: true, region: eu}\n`);
    const { code, of } = await doctor();
    expect(code).toBe(1);
    const judged = of("egress").slice(1);
    expect(judged).toHaveLength(6);
    for (const line of judged)
      expect(line).toMatch(/^fail: .*egress rule "private" refuses 127\.0\.0\.1 \(region eu\)/);
    expect(receiver.connections()).toBe(0);
  });

  it("get one test message each on request", async () => {
    verifies("ops.doctor.send-test", "ops.notify.test-message");
    const receiver = await startReceiver((request, response) => {
      response.statusCode = request.path === "/bad" ? 410 : 200;
      response.end();
    });
    onTestFinished(() => receiver.close());
    write(
      "svc.config.yaml",
      `notifications: {channels: [{name: a, type: webhook, url: "${receiver.url("/a")}"}, {name: b, type: slack, url: "${receiver.url("/b")}"}]}\n`,
    );
    const { code, of } = await doctor(["--send-test"]);
    expect(code).toBe(0);
    expect(of("send-test")).toEqual([
      "ok: a (webhook) accepted a test message",
      "ok: b (slack) accepted a test message",
    ]);
    expect(receiver.received.map(({ path }) => path).sort()).toEqual(["/a", "/b"]);
    write(
      "svc.config.yaml",
      `notifications: {channels: [{name: bad, type: webhook, url: "${receiver.url("/bad")}"}]}\n`,
    );
    const bad = await doctor(["--send-test"]);
    expect(bad.code).toBe(1);
    expect(bad.of("send-test")[0]).toMatch(/^fail: bad \(webhook\): .*410/);
  });

  it("warns if no channel can be tested", async () => {
    expect((await doctor(["--send-test"])).of("send-test")).toEqual([
      "warn: no notification channel is configured",
    ]);
  });
});

describe("anchors", () => {
  it("warns if every sink is next to the ledger, and fails if one cannot be written", async () => {
    write(
      "svc.config.yaml",
      "anchor: {sinks: [{type: file, path: anchors.jsonl}, {type: file, path: none/there.jsonl}]}\n",
    );
    const { code, of } = await doctor();
    expect(code).toBe(1);
    expect(of("anchors")).toEqual([
      "ok: 2 sinks, every 1h",
      expect.stringMatching(/^fail: .*none\/there\.jsonl cannot be written/),
      expect.stringMatching(/^warn: every sink is on the disk of the data directory/),
    ]);
    write(
      "svc.config.yaml",
      'anchor: {sinks: [{type: file, path: anchors.jsonl}, {type: webhook, url: "http://127.0.0.1:1/"}]}\n',
    );
    expect((await doctor()).of("anchors")).toEqual(["ok: 2 sinks, every 1h"]);
  });
});

describe("a gateway", () => {
  it(`has its tool servers started, listed and stopped, and dots in names warned of ${verifies("beyond.names.doctor", "beyond.gateway.doctor-starts")}`, async () => {
    const broken = { name: "broken", command: process.execPath, args: ["-e", "process.exit(3)"] };
    const url = { name: "far", url: "http://127.0.0.1:9/mcp" };
    const upstreams = [fakeUpstream(), broken, url];
    write("svc.config.yaml", JSON.stringify({ upstreams }));
    const first = await doctor();
    expect(first.code).toBe(1);
    expect(first.of("gateway")).toEqual([
      expect.stringMatching(/^warn: tools are listed with dots in their names/),
      expect.stringMatching(
        /^ok: upstream fake: started, listed \d\d tools \(\w+, .* and \d+ more\), and stopped$/,
      ),
      expect.stringMatching(/^fail: upstream broken: cannot read the tools/),
      "ok: upstream far: uses HTTP and was not contacted",
    ]);
    write("svc.config.yaml", JSON.stringify({ upstreams: [fakeUpstream()], tool_names: "underscores" }));
    const second = await doctor();
    expect(second.of("gateway")[0]).toMatch(/^ok: tools are listed under names/);
  });
});

describe("console and commands", () => {
  it.each([
    ["off", {}, "ok: off"],
    ["open", {}, "warn: open: anyone on this machine acts with the operator role"],
    ["login", {}, "ok: login"],
    ["login", { SVC_HOST: "0.0.0.0" }, "warn: login on 0.0.0.0"],
    ["login", { SVC_HOST: "0.0.0.0", SVC_SECURE_COOKIES: "1" }, "ok: login"],
  ])("console %s with %j", async (mode, env, said) => {
    expect((await doctor([], { env: { SVC_CONSOLE: mode, ...env } })).of("console")[0]).toContain(said);
  });

  it("looks for the programs that it would start", async () => {
    write("undo.sh", "#!/bin/sh\n", 0o700);
    write("svc.config.yaml", "upstreams: [{name: none, command: no-such-program-here}]\n");
    const { code, of } = await doctor([], {
      env: { SVC_COMPENSATOR_CMD: "./undo.sh --fast", SVC_READER_CMD: "'open" },
    });
    expect(code).toBe(1);
    expect(of("commands")).toEqual([
      "ok: compensator: found ./undo.sh",
      "fail: reader: command: a quote is not closed",
      "fail: upstream none: no-such-program-here is not an executable file",
    ]);
  });
});

describe("the output", () => {
  it("has colour on a terminal only, and what to do behind an arrow", async () => {
    const plain = await speak(["doctor"], { cwd: folder });
    expect(plain.out).not.toContain("\u001b");
    expect(plain.out).toMatch(
      /^warn {2}keys .* -> create a key with svc keys add <name> --role admin --keys keys\.json/m,
    );
    const bright = await speak(["doctor"], { cwd: folder, tty: true });
    expect(bright.out).toContain("\u001b[33mwarn\u001b[0m");
  });

  it("keeps hostile names on their line", async () => {
    write("m.yaml", '- {tool: "a\\u001b[2Jb", effect: read, permission: p, lifecycle: draft}\n');
    const { out } = await speak(["doctor", "-m", "m.yaml"], { cwd: folder });
    expect(out).not.toContain("\u001b");
  });
});
