/** Push messages over HTTP: their recipients, their content, and attempts to cheat. */

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type PushBrowser, type PushService, pushService } from "../support/push-service.ts";
import { type TestServer, type TestServerOptions, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const CONFIG = "console_url: https://svc.example.com\npush: {allow_private: true}\n";
const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: p, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: p}
- {tool: pay.two, effect: idempotent, permission: p}
- {tool: pay.late, effect: idempotent, permission: p}
- {tool: any.one, effect: idempotent, permission: p}
`;
const POLICY = `version: 1
approvals: {flood: {max: 3, window: 10m}, four_eyes: true}
rules:
  - {id: refunds, match: {tool: "pay.{refund,wire}"}, action: require_approval, reason: the rule's reason, approval: {groups: [finance]}}
  - {id: pairs, match: {tool: pay.two}, action: require_approval, approval: {quorum: 2}}
  - {id: late, match: {tool: pay.late}, action: require_approval, approval: {groups: [finance], escalate_after: 30m, escalate_to: [leads]}}
  - {id: all, match: {tool: any.one}, action: require_approval}
`;
const KEYS = [
  { name: "ann", role: "approver", groups: ["finance"] },
  { name: "bob", role: "approver" },
  { name: "lea", role: "approver", groups: ["leads"] },
  { name: "tom", role: "approver", tenant: "t1", tenant_only: true },
  { name: "t1-agent", role: "agent", tenant: "t1" },
];

let service: PushService;
let s: TestServer;
let n = 0;
const open = async (options: TestServerOptions = {}) => {
  service = await pushService();
  s = await testServer({ config: CONFIG, manifests: MANIFESTS, policy: POLICY, keys: KEYS, ...options });
};
// Every message of every test keeps the standards.
afterEach(() => expect(service.problems).toEqual([]));

async function subscribed(key: string, browser = service.browser()) {
  browser.server_key = (await s.call(key, "GET", "/v1/push")).body.key;
  const answer = await s.call(key, "POST", "/v1/push", browser.subscription);
  expect(answer.status, answer.text).toBe(201);
  return { browser, id: answer.body.id as string };
}
async function ask(tool: string, args: object = {}, key = "agent") {
  const run_id = `r${n++}`;
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const call = { tool, args, reason: "the agent's reason" };
  const { body } = await s.call(key, "POST", `/v1/runs/${run_id}/intents`, call);
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}
const got = (browser: PushBrowser) =>
  service.received.filter((one) => one.browser === browser).map(({ message }) => message);
const gets = (browser: PushBrowser, id: string, type = "approval") =>
  until(() => got(browser).some((one) => one.id === id && one.type === type), `${type} ${id}`);
const devices = async (key: string) => (await s.call(key, "GET", "/v1/push")).body.devices;
const shown = async () =>
  (await s.app.core.store.list("push_devices", { limit: 100 })).flatMap(({ doc }) =>
    doc.devices.flatMap((one) => one.shown),
  );

describe("a message", () => {
  it("keeps the standards, and holds ids, the rule and the agent alone", async () => {
    verifies("beyond.push.standard", "beyond.push.content", "beyond.push.records");
    await open();
    const before = await s.app.core.store.head();
    const { browser } = await subscribed("ann");
    expect((await s.app.core.store.head()).records).toBe(before.records);
    const id = await ask("pay.refund", { iban: "DE89370400440532013000", amount: 412.5 });
    await gets(browser, id);
    const [push] = service.received;
    expect(push).toMatchObject({ urgency: "high", ttl: 86_400, subject: "https://svc.example.com" });
    expect(push!.message).toEqual({
      v: 1,
      type: "approval",
      id,
      rule: "refunds",
      agent: "agent",
      waiting: 1,
    });
    expect(push!.text).not.toMatch(/412|DE89|iban|pay\.refund|reason/);
    expect(push!.text.length % 256).toBe(0);
    expect(s.logged.join("\n")).not.toMatch(/\/push\/|"iban"/);
  });

  it("carries credentials out of nothing that an agent named itself", async () => {
    verifies("beyond.push.content");
    const token = `ghp_${"a1B2".repeat(9)}`;
    await open();
    const { browser } = await subscribed("ann");
    const { core } = s.app;
    const id = await ask("pay.refund");
    await gets(browser, id);
    // The name of an actor reaches the message through the same redaction as every notification.
    const doc = (await core.store.get("approvals", id))!;
    const poisoned = { ...doc, id: id.replace(/.$/, "0"), actor: `agent ${token}\u202e\n` };
    await core.store.transact({ run: (tx) => tx.put("approvals", poisoned.id, poisoned) });
    core.listeners.approvalRequested(poisoned);
    await gets(browser, poisoned.id);
    expect(JSON.stringify(got(browser))).not.toContain("ghp_a1B2");
    expect(JSON.stringify(got(browser))).not.toMatch(/\\u202e|\\n/);
  });

  it("is never sent without a contact that push services accept", async () => {
    verifies("beyond.push.person");
    await open({ config: "push: {allow_private: true}\n" });
    expect((await s.call("ann", "GET", "/v1/push")).body).toEqual({ key: null, devices: [] });
    const refused = await s.call("ann", "POST", "/v1/push", service.browser().subscription);
    expect(refused).toMatchObject({ status: 404, body: { error: expect.stringContaining("push.contact") } });
  });
});

describe("devices", () => {
  it("are added, listed, changed and removed by their person, and an admin", async () => {
    verifies("beyond.push.routes");
    await open();
    const { browser, id } = await subscribed("ann");
    const again = await s.call("ann", "POST", "/v1/push", { ...browser.subscription, label: "phone" });
    expect(again.body).toMatchObject({ id, label: "phone", quiet: null, current: true, mine: true });
    const quiet = { from: "22:00", to: "07:00", zone: "Europe/Berlin" };
    expect((await s.call("ann", "PATCH", `/v1/push/${id}`, { quiet })).body.quiet).toEqual(quiet);
    expect(await devices("bob")).toEqual([]);
    const [seen] = await devices("admin");
    expect(seen).toMatchObject({ id, name: "ann", mine: false, quiet });
    for (const secret of [browser.endpoint, browser.subscription.keys.auth, "/push/"])
      expect(JSON.stringify(seen)).not.toContain(secret);
    for (const [verb, key] of [
      ["DELETE", "bob"],
      ["PATCH", "admin"],
    ] as const) {
      const body = verb === "PATCH" ? { quiet: null } : undefined;
      expect((await s.call(key, verb, `/v1/push/${id}`, body)).status).toBe(404);
    }
    expect((await s.call("bob", "POST", `/v1/push/${id}/test`, {})).status).toBe(404);
    expect((await s.call("admin", "DELETE", `/v1/push/${id}`)).body.id).toBe(id);
    expect(await devices("ann")).toEqual([]);
    expect((await s.call("ann", "DELETE", `/v1/push/${id}`)).status).toBe(404);
  });

  it("are ten at most, and refused if they are not a person's subscription", async () => {
    verifies("beyond.push.ten", "beyond.push.person");
    await open();
    for (let i = 0; i < 10; i++) await subscribed("ann");
    const full = await s.call("ann", "POST", "/v1/push", service.browser().subscription);
    expect(full).toMatchObject({ status: 409, headers: { "svc-error-code": "push_full" } });
    const good = service.browser().subscription;
    const point = Buffer.from(good.keys.p256dh, "base64url");
    point[40]! ^= 1;
    for (const bad of [
      { ...good, keys: { ...good.keys, auth: "AAAA" } },
      { ...good, keys: { ...good.keys, p256dh: good.keys.auth } },
      { ...good, keys: { ...good.keys, p256dh: point.toString("base64url") } },
      { ...good, endpoint: "not a URL" },
      { ...good, label: "" },
      { ...good, more: 1 },
    ])
      expect((await s.call("bob", "POST", "/v1/push", bad)).status).toBe(400);
    expect((await s.call("agent", "POST", "/v1/push", good)).status).toBe(403);
    const { id } = await subscribed("bob");
    for (const quiet of [
      { from: "22:00", to: "22:00", zone: "Europe/Berlin" },
      { from: "25:00", to: "07:00", zone: "Europe/Berlin" },
      { from: "22:00", to: "07:00", zone: "Mars/Olympus" },
    ])
      expect((await s.call("bob", "PATCH", `/v1/push/${id}`, { quiet })).status).toBe(400);
  });

  it("are at https endpoints of the internet", async () => {
    verifies("beyond.push.https");
    await open({ config: "console_url: https://svc.example.com\n" });
    const { keys } = service.browser().subscription;
    for (const endpoint of [
      "http://push.example.com/x",
      "https://127.0.0.1/x",
      "https://[::1]/x",
      "https://10.0.0.7/x",
      "https://[::ffff:192.168.0.1]/x",
      "https://169.254.169.254/latest",
      "https://localhost/x",
      "https://user:password@push.example.com/x",
      "file:///etc/passwd",
      service.browser().endpoint,
    ]) {
      const { status, body } = await s.call("ann", "POST", "/v1/push", { endpoint, keys });
      expect([endpoint, status, body.error]).toEqual([endpoint, 400, expect.stringContaining("endpoint: ")]);
    }
    // A name that resolved elsewhere when it was added.
    await s.app.core.store.transact({
      run(tx) {
        const key = "0".repeat(24);
        const device = { id: `psh_${key}.${key.slice(0, 16)}`, endpoint: service.browser().endpoint };
        const holder = { principal: "key:ann", groups: ["finance"] };
        const { p256dh, auth } = keys;
        const more = { p256dh, auth, label: "x", server_key: "k", session: null, quiet: null, added_ms: 0 };
        const rest = { shown: [], held: false, last_ok_ms: null, last_error: null };
        const devices = [{ ...device, ...more, ...rest }];
        tx.put("push_devices", key, { owner: "key:x", name: "ann", tenant: null, holder, devices });
      },
    });
    const { key } = (await s.call("ann", "GET", "/v1/push")).body;
    await s.app.core.store.transact({
      run(tx) {
        const doc = tx.get("push_devices", "0".repeat(24))!;
        tx.put("push_devices", "0".repeat(24), {
          ...doc,
          devices: doc.devices.map((one) => ({ ...one, server_key: key })),
        });
      },
    });
    await ask("pay.refund");
    await until(() => s.logged.some((line) => line.includes("not delivered")), "the refusal");
    expect(service.received).toEqual([]);
    expect(s.logged.join()).not.toContain("/push/");
  });

  it("end at 404 and 410, and say what went wrong otherwise", async () => {
    verifies("beyond.push.gone");
    await open();
    for (const status of [404, 410]) {
      await subscribed("ann");
      service.answers.push({ status });
      await ask("pay.refund");
      await until(async () => (await devices("ann")).length === 0, `${status} to delete it`);
    }
    expect(s.logged.filter((line) => line.includes("not delivered"))).toEqual([]);
    const { browser } = await subscribed("ann");
    service.answers.push({ status: 503 }, { status: 429, headers: { "retry-after": "1" } });
    const id = await ask("pay.refund");
    await until(() => s.env.sleepers > 0, "the first retry");
    await s.env.advance(1_000);
    await until(() => s.env.sleepers > 0, "the second retry");
    await s.env.advance(5_000);
    await gets(browser, id);
    service.answers.push({ status: 403 });
    await ask("pay.refund");
    await until(async () => (await devices("ann"))[0].last_error === "answered 403", "the error");
    await until(() => s.logged.some((line) => line.includes("not delivered")), "the warning");
    expect(s.logged.join()).not.toContain("/push/");
  });

  it("follow a key to another tenant, with what else belongs to it", async () => {
    const token_key = join(tempDir("moved"), "token.key");
    writeFileSync(token_key, randomBytes(32), { mode: 0o600 });
    const upstreams = "[{name: linear, url: https://mcp.example.com/mcp, auth: {type: oauth}}]";
    const boss = { role: "admin", tenant_only: true };
    const config = `${CONFIG}console: login\ntoken_key: ${token_key}\nupstreams: ${upstreams}\n`;
    const bosses = ["t1", "t2"].map((tenant) => ({ ...boss, name: `${tenant}-admin`, tenant }));
    await open({ config, keys: [...KEYS, ...bosses] });
    const { id } = await subscribed("tom");
    const link = () => s.call("tom", "POST", "/v1/upstreams/linear/link", {});
    expect((await link()).status).toBe(200);
    const { keys } = (await s.call("admin", "GET", "/v1/keys")).body;
    const { index } = keys.find(({ name }: { name: string }) => name === "tom");
    await s.call("admin", "PATCH", `/v1/keys/${index}`, { tenant: "t2" });
    expect(await devices("t1-admin")).toEqual([]);
    expect((await s.call("t1-admin", "DELETE", `/v1/push/${id}`)).status).toBe(404);
    for (const key of ["tom", "t2-admin"]) expect(await devices(key)).toMatchObject([{ id }]);
    await subscribed("tom");
    expect((await link()).status).toBe(200);
    // The tenant of a person can also change elsewhere, such as at the issuer.
    const { store } = s.app.core;
    const [row] = await store.list("push_devices", { limit: 1 });
    await store.transact({ run: (tx) => tx.put("push_devices", row!.key, { ...row!.doc, tenant: "t9" }) });
    expect(await devices("t2-admin")).toEqual([]);
    expect(await devices("tom")).toHaveLength(2);
    expect((await s.call("tom", "PATCH", `/v1/push/${id}`, { quiet: null })).status).toBe(200);
    expect((await s.call("tom", "POST", `/v1/push/${id}/test`, {})).body.ok).toBe(true);
    expect((await s.call("t2-admin", "DELETE", `/v1/push/${id}`)).status).toBe(404);
    expect((await s.call("tom", "DELETE", `/v1/push/${id}`)).status).toBe(200);
    await subscribed("tom");
    expect(await devices("t2-admin")).toHaveLength(2);
  });

  it("end with the key, and move to the person who added the browser last", async () => {
    verifies("beyond.push.signing-out", "beyond.push.moves");
    await open();
    const { browser } = await subscribed("ann");
    // Another spelling is the same browser.
    const { endpoint, keys: secrets } = browser.subscription;
    const other = { endpoint: ` ${endpoint.replace("https://", "HTTPS://")}#x`, keys: secrets };
    expect((await s.call("lea", "POST", "/v1/push", other)).status).toBe(201);
    expect(await devices("ann")).toEqual([]);
    await subscribed("bob", browser);
    expect(await devices("lea")).toEqual([]);
    await ask("pay.refund");
    const all = await ask("any.one");
    await gets(browser, all);
    expect(got(browser).map(({ id }) => id)).toEqual([all]);
    const { keys } = (await s.call("admin", "GET", "/v1/keys")).body;
    const { index } = keys.find(({ name }: { name: string }) => name === "bob");
    await s.call("admin", "PATCH", `/v1/keys/${index}`, { disabled: true });
    expect(await devices("admin")).toEqual([]);
    await s.call("admin", "PATCH", `/v1/keys/${index}`, { disabled: false });
    expect(await devices("bob")).toEqual([]);
    await subscribed("bob");
    await s.call("admin", "DELETE", `/v1/keys/${index}`);
    expect(await devices("admin")).toEqual([]);
  });
});

describe("who gets a message", () => {
  it("groups, escalation and votes decide, and nobody is notified of their request", async () => {
    verifies("beyond.push.groups", "beyond.push.escalation", "beyond.push.withdrawn");
    await open({ keys: [...KEYS, { name: "both", roles: ["agent", "approver"], groups: ["finance"] }] });
    const [ann, bob, lea, both] = [
      await subscribed("ann"),
      await subscribed("bob"),
      await subscribed("lea"),
      await subscribed("both"),
    ];
    const late = await ask("pay.late", {}, "both");
    await gets(ann.browser, late);
    await s.env.advance(31 * 60_000);
    await gets(lea.browser, late);
    expect(got(lea.browser)[0]).toMatchObject({ escalated: true, rule: "late", agent: "both" });
    expect([...got(bob.browser), ...got(both.browser)]).toEqual([]);

    const two = await ask("pay.two");
    for (const { browser } of [ann, bob, lea, both]) await gets(browser, two);
    await s.call("ann", "POST", `/v1/approvals/${two}/approve`);
    await gets(ann.browser, two, "withdrawn");
    expect(got(bob.browser).filter(({ type }) => type === "withdrawn")).toEqual([]);
    await s.call("bob", "POST", `/v1/approvals/${two}/approve`);
    for (const { browser } of [bob, lea, both]) await gets(browser, two, "withdrawn");
  });

  it("a delegate hears what the delegator could decide, until it ends", async () => {
    verifies("beyond.push.delegation");
    await open();
    const bob = await subscribed("bob");
    const expires_at = new Date(s.env.now() + 3_600_000).toISOString();
    const lent = { to: "bob", expires_at, reason: "away", tools: "pay.refund" };
    const { body } = await s.call("ann", "POST", "/v1/delegations", lent);
    const refund = await ask("pay.refund");
    await gets(bob.browser, refund);
    await s.call("ann", "DELETE", `/v1/delegations/${body.id}`);
    await gets(bob.browser, refund, "withdrawn");
    await ask("pay.refund");
    const all = await ask("any.one");
    await gets(bob.browser, all);
    expect(got(bob.browser).map(({ type, rule }) => [type, rule])).toEqual([
      ["approval", "refunds"],
      ["withdrawn", null],
      ["approval", "all"],
    ]);
  });

  it("tenants stay separate", async () => {
    verifies("beyond.push.tenants");
    await open();
    const [tom, bob] = [await subscribed("tom"), await subscribed("bob")];
    const foreign = await ask("any.one");
    const own = await ask("any.one", {}, "t1-agent");
    await gets(tom.browser, own);
    await gets(bob.browser, foreign);
    await gets(bob.browser, own);
    expect(got(tom.browser).map(({ id, waiting }) => [id, waiting])).toEqual([[own, 1]]);
    expect((await devices("tom")).map(({ mine }: { mine: boolean }) => mine)).toEqual([true]);
  });

  it("plans and floods are one message with a count", async () => {
    verifies("beyond.push.floods", "beyond.push.plans", "beyond.push.withdrawn");
    await open();
    const [ann, bob] = [await subscribed("ann"), await subscribed("bob")];
    await s.call("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["p"] });
    const call = (tool: string, id: number) => ({ tool, args: { id }, reason: "r" });
    const { body: plan } = await s.call("agent", "POST", "/v1/runs/planned/plans", {
      reason: "two refunds",
      calls: [call("pay.refund", 1), call("pay.refund", 2)],
    });
    await gets(ann.browser, plan.id, "plan");
    expect(got(bob.browser)).toEqual([]);
    await s.call("ann", "POST", `/v1/plans/${plan.id}/deny`, {});
    await gets(ann.browser, plan.id, "withdrawn");

    const ids: string[] = [];
    for (let i = 0; i < 8; i++) ids.push(await ask(i < 7 ? "pay.refund" : "any.one", { id: i }, "agent2"));
    await gets(ann.browser, "digest:agent2", "digest");
    const told = () => got(ann.browser).filter(({ type }) => type === "digest");
    await until(() => told().length > 0, "the digest");
    expect(told()[0]).toMatchObject({ agent: "agent2", rule: null });
    expect(told()[0].count).toBeGreaterThan(0);
    // Three before the burst and one digest, regardless of the number after it.
    expect(got(ann.browser).filter(({ type }) => type === "approval")).toHaveLength(3);
    for (const id of ids) await s.call("ann", "POST", `/v1/approvals/${id}/deny`, { note: "no" });
    await gets(ann.browser, "digest:agent2", "withdrawn");
    await until(async () => (await shown()).length === 0, "every notification withdrawn");
  });

  it("quiet hours delay all but irreversible calls, and end with one message", async () => {
    verifies("beyond.push.quiet", "beyond.push.break-glass");
    await open();
    const [ann, admin] = [await subscribed("ann"), await subscribed("admin")];
    const quiet = { from: "11:00", to: "12:30", zone: "UTC" };
    for (const [key, { id }] of [
      ["ann", ann],
      ["admin", admin],
    ] as const)
      await s.call(key, "PATCH", `/v1/push/${id}`, { quiet });
    const held = await ask("pay.refund");
    const wire = await ask("pay.wire");
    await gets(ann.browser, wire);
    await s.call("admin", "POST", `/v1/approvals/${held}/break-glass`, { reason: "nobody else is awake" });
    await until(() => got(admin.browser).some(({ type }) => type === "alert"), "the alert");
    expect(got(ann.browser).map(({ id }) => id)).toEqual([wire]);
    await ask("pay.refund");
    await until(
      async () =>
        (await s.app.core.store.list("push_devices", { limit: 9 })).some(({ doc }) => doc.devices[0]!.held),
      "the held message",
    );
    await s.env.advance(31 * 60_000);
    await gets(ann.browser, "waiting", "digest");
    expect(got(ann.browser).at(-1)).toMatchObject({ count: 2, agent: null, rule: null });
  });
});

describe("a decision made elsewhere", () => {
  it("withdraws under the same topic, also undelivered messages", async () => {
    verifies("beyond.push.withdrawn", "beyond.push.never-delays");
    await open();
    const [ann, bob] = [await subscribed("ann"), await subscribed("bob")];
    const id = await ask("any.one");
    await gets(ann.browser, id);
    await gets(bob.browser, id);
    await until(async () => (await shown()).length === 2, "both to be noted");
    await s.call("lea", "POST", `/v1/approvals/${id}/approve`);
    await gets(ann.browser, id, "withdrawn");
    await gets(bob.browser, id, "withdrawn");
    expect(new Set(service.received.map(({ topic }) => topic)).size).toBe(1);
    expect(got(ann.browser).at(-1)).toMatchObject({ waiting: 0, rule: null, agent: null });

    // A push service that is down: the decision comes first, and the request is not sent after it.
    service.answers.push({ status: 503 }, { status: 503 });
    const late = await ask("any.one");
    await until(() => s.env.sleepers > 1, "the retries");
    await s.call("lea", "POST", `/v1/approvals/${late}/deny`);
    await s.env.advance(5_000);
    const next = await ask("any.one");
    await gets(ann.browser, next);
    const withdrawnLate = got(ann.browser)
      .filter((one) => one.id === late)
      .map(({ type }) => type);
    expect(withdrawnLate).not.toContain("approval");
  });
});

it("tests the caller's device, and names the problem", async () => {
  verifies("beyond.push.test");
  await open();
  const { browser, id } = await subscribed("ann");
  expect((await s.call("ann", "POST", `/v1/push/${id}/test`, {})).body).toEqual({ ok: true, error: null });
  expect(got(browser)).toEqual([{ v: 1, type: "test", id: "test", rule: null, agent: null, waiting: 0 }]);
  service.answers.push({ status: 500 });
  expect((await s.call("ann", "POST", `/v1/push/${id}/test`, {})).body).toEqual({
    ok: false,
    error: "answered 500",
  });
  service.answers.push({ status: 410 });
  const gone = await s.call("ann", "POST", `/v1/push/${id}/test`, {});
  expect(gone.body.error).toContain("the device was removed");
  expect(await devices("ann")).toEqual([]);
});

it("a push service that hangs delays no decision and no other device", async () => {
  verifies("beyond.push.never-delays");
  await open();
  const hanging = createServer(() => {});
  await new Promise<void>((resolve) => hanging.listen(0, "localhost", resolve));
  const { port } = hanging.address() as AddressInfo;
  const [ann, bob] = [await subscribed("ann"), await subscribed("bob")];
  const silent = { ...service.browser().subscription, endpoint: `https://localhost:${port}/x` };
  expect((await s.call("ann", "POST", "/v1/push", silent)).status).toBe(201);
  const ids = [await ask("any.one"), await ask("any.one")];
  for (const id of ids) {
    for (const { browser } of [ann, bob]) await gets(browser, id);
    expect((await s.call("lea", "POST", `/v1/approvals/${id}/approve`)).status).toBe(200);
  }
  for (const id of ids) await gets(ann.browser, id, "withdrawn");
  hanging.close();
});

it("uses the pair of the settings, and asks to subscribe again after a change", async () => {
  verifies("beyond.push.one-key");
  await open();
  const { browser } = await subscribed("ann");
  const { store } = s.app.core;
  const first = s;
  const key = Buffer.alloc(32, 7).toString("base64url");
  s = await testServer({ config: CONFIG.replace("push: {", `push: {key: ${key}, `), store, keys: KEYS });
  const [device] = await devices("ann");
  expect(device.current).toBe(false);
  expect((await s.call("ann", "POST", `/v1/push/${device.id}/test`, {})).body.error).toContain("key changed");
  expect((await s.call("ann", "GET", "/v1/push")).body.key).not.toBe(browser.server_key);
  await subscribed("ann", browser);
  expect((await s.call("ann", "POST", `/v1/push/${device.id}/test`, {})).body.ok).toBe(true);
  expect((await first.call("ann", "GET", "/v1/push")).body.devices[0].current).toBe(false);
});
