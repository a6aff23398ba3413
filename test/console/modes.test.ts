/** Who gets in: the three modes, cookies, sessions that end, forms that belong to a session. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadSettings } from "../../src/config/load.ts";
import { mountConsole } from "../../src/console/mount.ts";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { fakeEnv } from "../support/env.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Client, loggedIn } from "./support/client.ts";
import { localIssuer } from "./support/issuer.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const running: ConsoleServer[] = [];
async function started(...args: Parameters<typeof consoleServer>): Promise<ConsoleServer> {
  const server = await consoleServer(...args);
  running.push(server);
  return server;
}
afterAll(async () => {
  await Promise.all(running.map((server) => server.close()));
});

/** The same browser, shown another server's address. */
function as(client: Client, url: string): Client {
  const moved = new Client(url);
  for (const [name, value] of client.cookies) moved.cookies.set(name, value);
  return moved;
}

const POST_PATHS = CONSOLE_ROUTES.filter(({ method }) => method === "POST").map(({ path }) =>
  `/console${path}`
    .replace(":id", "apr_00000000-0000-4000-8000-000000000000")
    .replace(/:(?:n|index|version)/, "0")
    .replace(":tool", "crm.get"),
);

describe("off", () => {
  it(`has no console unless it is asked for ${verifies("core.auth.console-off", "core.setting.console-default")}`, async () => {
    const server = await started({ config: "environment: test\n" });
    const client = new Client(server.url);
    for (const path of ["/console", "/console/login", "/console/assets/console.css", "/console/events"])
      expect((await client.get(path)).status).toBe(404);
  });
});

describe("open", () => {
  let server: ConsoleServer;
  beforeAll(async () => {
    server = await started({ config: "console: open\n" });
  });
  const at = (host: string) => ({ host: host.replace("PORT", String(server.port)) });

  it(`asks for no login and acts as local-console, operator ${verifies("core.auth.console-open-actor", "core.auth.console-open-role", "core.setting.console")}`, async () => {
    const client = new Client(server.url);
    const page = await client.get("/console");
    expect(page.status).toBe(200);
    expect(page.text).toContain("local-console");
    await server.api("agent", "POST", "/v1/runs", { run_id: "open-1", permissions: ["crm.read"] });
    await server.api("agent", "POST", "/v1/runs/open-1/intents", { tool: "crm.get", args: {}, reason: "r" });
    const resolved = await client.submit("/console/runs/open-1/steps/0/resolve", {
      status: "failed",
      note: "it never ran",
    });
    expect(resolved.status).toBe(303);
    const trail = (await server.api("auditor", "GET", "/v1/search/records?run_id=open-1")).body.records;
    expect(trail[0]).toMatchObject({ event: "failed", actor: "local-console" });
    expect((await client.submit("/console/evidence/halt", { reason: "no", confirm: "yes" })).status).toBe(
      403,
    );
  });

  it(`takes a lower role from the settings, and never admin ${verifies("core.auth.console-open-role", "core.auth.console-open-not-admin")}`, async () => {
    const lower = await started({ config: "console: {mode: open, role: auditor}\n" });
    const client = new Client(lower.url);
    expect(
      (
        await client.submit("/console/approvals/apr_00000000-0000-4000-8000-000000000000", {
          decision: "approve",
        })
      ).status,
    ).toBe(403);
    const settings = () =>
      loadSettings({
        flags: {},
        env: { SVC_CONSOLE: "open", SVC_CONSOLE_ROLE: "admin" },
        cwd: server.folder,
      });
    expect(settings).toThrow(/never acts as admin/);
  });

  it(`refuses to start where others could reach it ${verifies("core.auth.console-open-loopback")}`, () => {
    const env = { SVC_CONSOLE: "open", SVC_HOST: "0.0.0.0" };
    expect(() => loadSettings({ flags: {}, env, cwd: server.folder })).toThrow(/loopback/);
    const { app } = server;
    const settings = { ...app.settings, listen: { ...app.settings.listen, host: "192.0.2.7" } };
    expect(() => mountConsole({} as never, { app: { ...app, settings }, auth: app.auth })).toThrow(
      /loopback/,
    );
  });

  it(`answers only requests to localhost ${verifies("core.auth.console-open-localhost")}`, async () => {
    const client = new Client(server.url);
    for (const host of [
      "localhost:PORT",
      "127.0.0.1:PORT",
      "[::1]:PORT",
      "LOCALHOST:PORT",
      "localhost",
      "localhost:9000",
    ])
      expect((await client.get("/console", at(host))).status, host).toBe(200);
    for (const host of [
      "evil.com",
      "localhost.evil.com",
      "localhost.evil.com:PORT",
      "evil.com:PORT",
      "127.0.0.1.evil.com:PORT",
      "localhost:1:2",
      "127.0.0.2:PORT",
      "localhost:PORT@evil.com",
      "192.0.2.1:PORT",
    ]) {
      const page = await client.get("/console", at(host));
      expect(page.status, host).toBe(403);
      expect(page.text).not.toContain("Waiting for approval");
    }
    expect((await client.get("/console/assets/console.css", at("evil.com"))).status).toBe(403);
    expect((await client.get("/console/events", at("evil.com:PORT"))).status).toBe(403);
  });

  it(`answers only its own pages ${verifies("core.auth.console-open-origin")}`, async () => {
    const client = new Client(server.url);
    const csrf = await client.csrf();
    const lend = (headers: Record<string, string>) =>
      client.post("/console/delegations", { csrf, to: "ann", days: "1", reason: "away" }, headers);
    for (const origin of [
      "http://evil.com",
      "null",
      `https://127.0.0.1:${server.port}`,
      "http://127.0.0.1:1",
      `http://localhost:${server.port}`,
    ])
      expect((await lend({ origin })).status, origin).toBe(403);
    for (const site of ["cross-site", "same-site"])
      expect((await lend({ "sec-fetch-site": site })).status).toBe(403);
    expect(
      (await lend({ origin: `http://127.0.0.1:${server.port}`, "sec-fetch-site": "same-origin" })).status,
    ).toBe(303);
  });

  it("lets a reader who followed a link walk in by themselves", async () => {
    const client = new Client(server.url);
    const arrival = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    const page = await client.get("/console/approvals", arrival);
    expect(page.status).toBe(403);
    expect(page.text).toContain('href="/console/approvals"');
    expect(page.text).not.toContain('name="csrf"');
  });

  it("has no login", async () => {
    const client = new Client(server.url);
    expect((await client.get("/console/login")).to).toBe("/console");
  });
});

describe("login", () => {
  let server: ConsoleServer;
  beforeAll(async () => {
    server = await started({ keys: [{ name: "both", roles: ["agent", "approver"] }] });
  });

  it(`takes an API key, for a cookie that scripts and other sites never see ${verifies("core.auth.console-login-key", "core.auth.console-cookie", "core.console.login-page")}`, async () => {
    const client = new Client(server.url);
    const away = await client.get("/console/runs?attention=1");
    expect([away.status, away.to]).toEqual([303, "/console/login?next=%2Fconsole%2Fruns%3Fattention%3D1"]);
    const page = await client.get(away.to!);
    expect(page.text).toContain("API key or OIDC token");
    const csrf = /name="csrf" value="(\w+)"/.exec(page.text)![1]!;
    const answer = await client.post("/console/login", {
      csrf,
      credential: "operator",
      next: "/console/runs?attention=1",
    });
    expect([answer.status, answer.to]).toEqual([303, "/console/runs?attention=1"]);
    const [cookie] = answer.set_cookies;
    expect(cookie).toMatch(/; Path=\/console; HttpOnly; SameSite=Strict$/);
    expect((await client.get("/console")).text).toContain("operator");
  });

  it("knows a page with a slash behind it", async () => {
    const client = await loggedIn(server.url, "auditor");
    for (const [path, to] of [
      ["/console/runs/?attention=1", "/console/runs?attention=1"],
      ["/console/login/", "/console/login"],
      ["/console/settings//", "/console/settings"],
    ] as const)
      expect((await client.get(path)).to).toBe(to);
    expect((await client.get("/console/")).status).toBe(200);
  });

  it("never leads to another site after the login", async () => {
    for (const next of [
      "//evil.com",
      "https://evil.com",
      "/console/../v1",
      "/\\evil.com",
      "/console//evil.com",
      "/v1/runs",
      "javascript:alert(1)",
    ]) {
      const client = new Client(server.url);
      const csrf = await client.csrf("/console/login");
      const answer = await client.post("/console/login", { csrf, credential: "auditor", next });
      expect(answer.to, next).toBe("/console");
    }
  });

  it(`marks cookies as HTTPS-only on demand ${verifies("core.setting.secure-cookies")}`, async () => {
    const secure = await started({
      environment: { SVC_SECURE_COOKIES: "1", SVC_CONSOLE: "login" },
      config: "\n",
    });
    const client = new Client(secure.url);
    await client.get("/console/login");
    const { set_cookies } = await client.logIn("operator");
    expect(set_cookies[0]).toMatch(/; HttpOnly; Secure; SameSite=Strict$/);
  });

  it(`refuses agent keys and wrong ones ${verifies("core.auth.console-login-no-agent")}`, async () => {
    const client = new Client(server.url);
    const agent = await client.logIn("agent");
    expect(agent.status).toBe(403);
    expect(agent.text).toContain("Agent keys cannot use the console");
    const wrong = await client.logIn("nobody's key");
    expect(wrong.status).toBe(401);
    expect(wrong.text).not.toContain("nobody&#39;s key");
    expect((await client.get("/console")).status).toBe(303);
    expect((await client.logIn("both")).status).toBe(303);
  });

  it("knows nobody without a credential, and does not start with a key file that lets everybody in", async () => {
    for (const nothing of ["", " ", "\n"]) {
      const client = new Client(server.url);
      const answer = await client.logIn(nothing);
      expect([nothing, answer.status, answer.to]).toEqual([nothing, 401, undefined]);
    }
    const entries = [
      { name: "ann", role: "admin", key_sha256: sha256Hex("ann") },
      { name: "everybody", role: "admin", key_sha256: sha256Hex("") },
    ];
    await expect(consoleServer({ files: { "keys.json": JSON.stringify(entries) } })).rejects.toThrow(
      /keys\.json: entry 1 \("everybody"\): key_sha256: is the hash of an empty key/,
    );
  });

  it("gives a token's session the role that the role map says now", async () => {
    const env = systemEnv;
    const issuer = await localIssuer(env);
    const store = new MemoryStore();
    const mapped = (role_map: string, more = "") =>
      started({
        store,
        config: `console: login\noidc: {issuer: "${issuer.url}", audience: svc, role_map: ${role_map}}\n${more}`,
      });
    const before = await mapped("{ops: admin}");
    const client = await loggedIn(before.url, await issuer.token());
    const halt = (url: string) =>
      as(client, url).submit("/console/evidence/halt", { reason: "x", confirm: "yes" });
    expect((await halt(before.url)).status).toBe(303);
    const halted = async () => (await before.api("auditor", "GET", "/v1/halts")).body.halts.length;
    const count = await halted();
    expect(count).toBeGreaterThan(0);
    // The store outlives the process, and so does the session; what it may do is up to the settings of today.
    const lowered = await mapped("{ops: auditor}");
    expect((await halt(lowered.url)).status).toBe(403);
    expect((await as(client, lowered.url).get("/console")).status).toBe(200);
    for (const elsewhere of [await mapped("{others: admin}"), await started({ store })])
      expect((await as(client, elsewhere.url).get("/console")).to).toContain("/console/login");
    expect(await halted()).toBe(count);
    await issuer.close();
  });

  it("carries a form out with the authority that its sender has when it is whole", async () => {
    const own = await started({ keys: [{ name: "chief", role: "admin" }] });
    const client = await loggedIn(own.url, "chief");
    const csrf = await client.csrf();
    const cookie = [...client.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const sent = request(`${own.url}/console/evidence/halt`, {
      method: "POST",
      headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
    });
    sent.write(`csrf=${csrf}&reason=x&`);
    const begun = performance.now();
    const keys = own.app.keys!;
    const { index, fingerprint } = (await keys.list()).find(({ name }) => name === "chief")!;
    await keys.patch(index, { roles: ["auditor"] }, fingerprint);
    await until(() => performance.now() - begun > 2 * SERVICE_LIMITS.look_again_ms, "some time has passed");
    sent.end("confirm=yes");
    const [{ statusCode }] = (await once(sent, "response")) as [IncomingMessage];
    expect(statusCode).toBe(403);
    expect((await own.api("auditor", "GET", "/v1/halts")).body.halts).toEqual([]);
  });

  it("gives a fresh token at login, so that one known before is worth nothing", async () => {
    const client = new Client(server.url);
    await client.get("/console/login");
    const before = [...client.cookies.values()][0];
    await client.logIn("admin");
    expect([...client.cookies.values()][0]).not.toBe(before);
  });

  it("keeps the session over a restart and over processes, and ends it at logout", async () => {
    const client = await loggedIn(server.url, "approver");
    const again = await started({ store: server.app.core.store });
    const copy = new Client(again.url);
    for (const [name, value] of client.cookies) copy.cookies.set(name, value);
    expect((await copy.get("/console")).status).toBe(200);
    const out = await client.submit("/console/logout");
    expect([out.status, out.to]).toEqual([303, "/console/login"]);
    expect((await copy.get("/console")).status).toBe(303);
  });

  it("does not ask readers who come by a link to log in again", async () => {
    const client = await loggedIn(server.url, "approver");
    const stranger = new Client(server.url);
    const arrival = {
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    };
    const bounce = await stranger.get("/console/approvals", arrival);
    expect(bounce.status).toBe(200);
    expect(bounce.text).toContain("url=/console/approvals?arrived=1");
    expect(
      (await client.get("/console/approvals?arrived=1", { "sec-fetch-site": "same-origin" })).status,
    ).toBe(200);
    expect((await stranger.get("/console/approvals?arrived=1", arrival)).status).toBe(303);
  });

  it(`ends a session with its key ${verifies("core.auth.console-session-key-end")}`, async () => {
    const own = await started({
      keys: [
        { name: "ann", role: "operator" },
        { name: "eve", role: "operator", expires_at: "2026-06-01T00:00:00Z" },
      ],
      env: fakeEnv({ now: Date.parse("2026-05-31T23:00:00Z") }),
    });
    const ann = await loggedIn(own.url, "ann");
    const eve = await loggedIn(own.url, "eve");
    const { keys } = (await own.api("admin", "GET", "/v1/keys")).body;
    const index = keys.findIndex((key: { name: string }) => key.name === "ann");
    await own.api("admin", "PATCH", `/v1/keys/${index}`, { disabled: true });
    expect((await ann.get("/console")).to).toContain("/console/login");
    expect(
      (await ann.post("/console/delegations", { csrf: await ann.csrf("/console/login"), to: "x" })).to,
    ).toContain("/console/login");
    expect((await eve.get("/console")).status).toBe(200);
    (own.app.core.env as ReturnType<typeof fakeEnv>).setNow(Date.parse("2026-06-01T00:00:00Z"));
    expect((await eve.get("/console")).to).toContain("/console/login");
  });

  it(`takes an OIDC token, for as long as it counts ${verifies("core.auth.console-login-token", "core.auth.console-session-token-end")}`, async () => {
    const env = fakeEnv({ now: Date.now() });
    const issuer = await localIssuer(env);
    const own = await started({
      env,
      config: `console: login\noidc: {issuer: "${issuer.url}", audience: svc, role_map: {ops: operator, bots: agent}}\n`,
    });
    const client = new Client(own.url);
    expect((await client.logIn(await issuer.token({ groups: ["bots"] }))).status).toBe(403);
    expect((await client.logIn(await issuer.token({ aud: "others" }))).status).toBe(401);
    expect((await client.logIn(await issuer.token({ sub: "ann@example.com" }))).status).toBe(303);
    expect((await client.get("/console")).text).toContain("ann@example.com");
    env.setNow(env.now() + 299_000);
    expect((await client.get("/console")).status).toBe(200);
    env.setNow(env.now() + 2_000);
    expect((await client.get("/console")).to).toContain("/console/login");
    await issuer.close();
  });

  it("sees a key that was disabled in the file within three seconds", async () => {
    const own = await started({ keys: [{ name: "ann", role: "operator" }] });
    const ann = await loggedIn(own.url, "ann");
    const entries = ["admin", "ann"].map((name) => ({
      name,
      role: name === "ann" ? "operator" : "admin",
      key_sha256: sha256Hex(name),
      disabled: name === "ann",
    }));
    writeFileSync(join(own.folder, "keys.json"), JSON.stringify(entries), { mode: 0o600 });
    await until(async () => (await ann.get("/console")).status === 303, "the key to be refused");
  });

  it(`refuses what a role may not do, with any form ${verifies("core.auth.console-lower-role", "core.auth.console-follows-role")}`, async () => {
    const auditor = await loggedIn(server.url, "auditor");
    const csrf = await auditor.csrf("/console/evidence");
    expect(csrf).not.toBe("");
    const refused = [
      ["/console/evidence/halt", { reason: "x", confirm: "yes" }],
      ["/console/evidence/resume", {}],
      ["/console/settings/test", {}],
      ["/console/settings/keys", { name: "mallory", role_admin: "yes" }],
      ["/console/settings/keys/0/delete", { confirm: "yes" }],
      ["/console/settings/holds", { run_id: "x", reason: "because" }],
      ["/console/settings/retention", { do: "apply", confirm: "yes" }],
      ["/console/delegations", { to: "x", days: "1", reason: "y" }],
      ["/console/approvals", { decision: "approve", id: "apr_00000000-0000-4000-8000-000000000000" }],
      [
        "/console/approvals/apr_00000000-0000-4000-8000-000000000000/break-glass",
        { reason: "long enough", confirm: "yes" },
      ],
      ["/console/runs/any/rollback", { confirm: "yes" }],
      ["/console/runs/any/steps/0/resolve", { status: "failed", note: "n" }],
    ] as const;
    for (const [path, fields] of refused) {
      const answer = await auditor.post(path, { csrf, ...fields });
      expect(answer.status, path).toBe(403);
    }
    const page = await auditor.get("/console/settings");
    expect(page.text).not.toContain("Make a key");
    expect((await auditor.get("/console/evidence")).text).not.toContain("Block all new calls</button>");
  });
});

describe("forms", () => {
  let server: ConsoleServer;
  beforeAll(async () => {
    server = await started({ keys: [{ name: "second", role: "admin" }] });
  });

  it(`refuses every form without its session's field ${verifies("core.console.csrf-403")}`, async () => {
    const admin = await loggedIn(server.url, "admin");
    const other = await loggedIn(server.url, "second");
    const foreign = await other.csrf();
    const before = (await server.app.core.store.head()).records;
    for (const path of [...POST_PATHS, "/console/logout", "/console/login"]) {
      for (const fields of [{}, { csrf: "" }, { csrf: foreign }, { csrf: "0".repeat(64) }] as Record<
        string,
        string
      >[]) {
        const answer = await admin.post(path, { confirm: "yes", reason: "long enough reason", ...fields });
        expect(answer.status, path).toBe(403);
      }
    }
    expect((await server.app.core.store.head()).records).toBe(before);
    expect((await admin.get("/console")).status).toBe(200);
  });

  it("refuses forms of other sites, and of nobody", async () => {
    const admin = await loggedIn(server.url, "admin");
    const csrf = await admin.csrf();
    const halt = (headers: Record<string, string>) =>
      admin.post("/console/evidence/halt", { csrf, reason: "x", confirm: "yes" }, headers);
    for (const headers of [
      { origin: "http://evil.com" },
      { origin: "null" },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
    ])
      expect((await halt(headers)).status).toBe(403);
    const nobody = new Client(server.url);
    expect((await nobody.post("/console/login", { csrf, credential: "admin" })).status).toBe(403);
    expect((await nobody.post("/console/evidence/halt", { csrf, reason: "x", confirm: "yes" })).status).toBe(
      403,
    );
    expect((await server.api("auditor", "GET", "/v1/halts")).body.halts).toEqual([]);
  });

  it("changes nothing on GET, wherever one looks", async () => {
    const admin = await loggedIn(server.url, "admin");
    const before = (await server.app.core.store.head()).records;
    for (const path of POST_PATHS) {
      const answer = await admin.get(
        `${path}?reason=long+enough+reason&confirm=yes&decision=approve&csrf=${await admin.csrf()}`,
      );
      expect([200, 404, 400]).toContain(answer.status);
    }
    expect((await server.app.core.store.head()).records).toBe(before);
    expect((await server.api("auditor", "GET", "/v1/halts")).body.halts).toEqual([]);
  });

  it(`carries the field in every form on every page ${verifies("core.console.csrf-field")}`, async () => {
    const admin = await loggedIn(server.url, "admin");
    const csrf = await admin.csrf();
    let forms = 0;
    for (const path of [
      "",
      "/approvals",
      "/runs",
      "/alerts",
      "/tools",
      "/policy",
      "/impact",
      "/evidence",
      "/settings",
    ]) {
      const { text } = await admin.get(`/console${path}`);
      for (const form of text.match(/<form method="post"[\s\S]*?<\/form>/g) ?? []) {
        expect(form).toContain(`name="csrf" value="${csrf}"`);
        forms++;
      }
      expect(text.match(/<form(?! method="(?:post|get)")/g)).toBeNull();
    }
    expect(forms).toBeGreaterThan(20);
  });

  it("takes only forms, of one megabyte at most, and leaves the API's reader alone", async () => {
    const admin = await loggedIn(server.url, "admin");
    const json = await admin.post("/console/evidence/halt", {}, { "content-type": "application/json" });
    expect(json.status).toBe(415);
    const huge = await admin.submit("/console/policy", { yaml: "x".repeat(1_100_000) });
    expect(huge.status).toBe(413);
    const form = await server.api("admin", "POST", "/v1/halt", undefined);
    expect(form.status).toBe(400);
  });

  it("sends every page under a strict policy", async () => {
    const admin = await loggedIn(server.url, "admin");
    for (const path of ["/console", "/console/login", "/console/nowhere", "/console/assets/console.js"]) {
      const { headers } = await admin.get(path);
      expect(headers["content-security-policy"]).toMatch(
        /^default-src 'none'; style-src 'self'; script-src 'self'; /,
      );
      expect(headers["content-security-policy"]).not.toContain("unsafe");
      expect(headers["x-content-type-options"]).toBe("nosniff");
      expect(headers["x-frame-options"]).toBe("DENY");
    }
    expect((await admin.get("/console")).headers["cache-control"]).toBe("no-store");
  });
});
