/** When the push messages to a person's devices end, and what a push service or a label cannot do. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { localIssuer } from "../console/support/issuer.ts";
import { type PushBrowser, type PushService, pushService } from "../support/push-service.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const CONFIG = "console_url: https://svc.example.com\npush: {allow_private: true}\n";
const MANIFESTS = "- {tool: any.one, effect: idempotent, permission: p}\n";
const POLICY =
  "version: 1\nrules: [{id: all, match: {tool: any.one}, action: require_approval, approval: {ttl: 7d}}]\n";
const TRANSMITTER = "https://events.example.com";

const pair = await generateKeyPair("ES256", { extractable: true });
const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: "k1", alg: "ES256", use: "sig" }] };
const eventKeys = createServer((_, response) =>
  response.setHeader("content-type", "application/json").end(JSON.stringify(jwks)),
);
let issuer: Awaited<ReturnType<typeof localIssuer>>;
let service: PushService;
let s: TestServer;
let n = 0;

beforeAll(async () => {
  issuer = await localIssuer({ now: () => s.env.now() } as never);
  await new Promise<void>((resolve) => eventKeys.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await issuer.close();
  eventKeys.close();
});
afterEach(() => expect(service.problems).toEqual([]));

async function open(config = "", keys: ({ name: string } & Record<string, unknown>)[] = []) {
  service = await pushService();
  s = await testServer({ config: CONFIG + config, manifests: MANIFESTS, policy: POLICY, keys });
}
async function subscribed(key: string, browser = service.browser()): Promise<PushBrowser> {
  browser.server_key = (await s.call(key, "GET", "/v1/push")).body.key;
  const answer = await s.call(key, "POST", "/v1/push", browser.subscription);
  expect(answer.status, answer.text).toBe(201);
  return browser;
}
async function ask(): Promise<string> {
  const run_id = `r${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const call = { tool: "any.one", args: {}, reason: "r" };
  const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, call);
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}
const sent = (browser: PushBrowser) =>
  service.received.filter((one) => one.browser === browser).map(({ message }) => message.id);
const gets = (browser: PushBrowser, id: string) =>
  until(() => sent(browser).includes(id), `the message of ${id}`);
const owners = async (): Promise<string[]> =>
  (await s.call("admin", "GET", "/v1/push")).body.devices.map(({ name }: { name: string }) => name).sort();

it.each(["session-revoked", "credential-change"])(
  "ends with %s at the identity provider, for that person alone",
  async (type) => {
    verifies("beyond.push.ends");
    const { port } = eventKeys.address() as AddressInfo;
    const { url } = issuer;
    await open(
      `oidc: {issuer: "${url}", audience: svc, role_map: {people: approver}}\ncaep: {issuer: "${TRANSMITTER}", audience: svc, jwks_url: "http://127.0.0.1:${port}/jwks"}\n`,
    );
    const token = (sub: string) => issuer.token({ sub, groups: ["people"] });
    const [ann, lea] = [await subscribed(await token("ann")), await subscribed(await token("lea"))];
    const before = await ask();
    for (const browser of [ann, lea]) await gets(browser, before);
    const event = await new SignJWT({
      ...{ iss: TRANSMITTER, aud: "svc", iat: Math.floor(s.env.now() / 1_000), jti: `e${n++}` },
      sub_id: { format: "iss_sub", iss: url, sub: "ann" },
      events: { [`https://schemas.openid.net/secevent/caep/event-type/${type}`]: { event_timestamp: 1 } },
    })
      .setProtectedHeader({ alg: "ES256", kid: "k1", typ: "secevent+jwt" })
      .sign(pair.privateKey);
    const headers = { "content-type": "application/secevent+jwt" };
    const answer = await s.http.inject({ method: "POST", url: "/caep/events", headers, payload: event });
    expect(answer.statusCode).toBe(202);
    expect(await owners()).toEqual(["lea"]);
    const after = await ask();
    await gets(lea, after);
    expect(sent(ann)).toEqual([before]);
  },
);

it("ends with a key that is disabled in the file or expires, also for messages that wait for another attempt", async () => {
  verifies("beyond.push.ends");
  const expires_at = "2026-06-16T12:00:00Z";
  await open("", [
    { name: "ann", role: "approver" },
    { name: "bob", role: "approver", expires_at },
    { name: "lea", role: "approver" },
  ]);
  const [ann, bob, lea] = [await subscribed("ann"), await subscribed("bob"), await subscribed("lea")];
  const first = await ask();
  for (const browser of [ann, bob, lea]) await gets(browser, first);
  // All three are to be sent again, and by then one of the keys is disabled.
  service.answers.push({ status: 503 }, { status: 503 }, { status: 503 });
  const second = await ask();
  await until(() => service.answers.length === 0 && s.env.sleepers > 2, "the first attempts");
  const path = join(s.folder, "keys.json");
  const entries = JSON.parse(readFileSync(path, "utf8")) as { name: string }[];
  writeFileSync(
    path,
    JSON.stringify(entries.map((one) => (one.name === "ann" ? { ...one, disabled: true } : one))),
  );
  await s.app.reload();
  await s.env.advance(5_000);
  for (const browser of [bob, lea]) await gets(browser, second);
  await s.env.advance(Date.parse(expires_at) - s.env.now());
  const third = await ask();
  await gets(lea, third);
  expect([sent(ann), sent(bob)]).toEqual([[first], [first, second]]);
  await s.env.advance(120_000);
  await until(async () => (await owners()).join() === "lea", "their devices to be removed");
});

it("sends nothing to a device that was removed while a message waited", async () => {
  verifies("beyond.push.ends");
  await open();
  const [browser, other] = [await subscribed("approver"), await subscribed("operator")];
  service.answers.push({ status: 503 }, { status: 503 });
  const id = await ask();
  await until(() => service.answers.length === 0 && s.env.sleepers > 1, "the first attempts");
  const [{ id: device }] = (await s.call("approver", "GET", "/v1/push")).body.devices;
  await s.call("approver", "DELETE", `/v1/push/${device}`);
  await s.env.advance(5_000);
  await gets(other, id);
  expect(sent(browser)).toEqual([]);
});

it.each([301, 302, 303, 307, 308])("does not follow a %i of a push service", async (status) => {
  verifies("beyond.push.redirects");
  await open();
  const [browser, elsewhere] = [await subscribed("approver"), service.browser()];
  elsewhere.server_key = browser.server_key;
  const headers = { location: elsewhere.endpoint };
  service.answers.push({ status, headers });
  await ask();
  const problem = async () => (await s.call("approver", "GET", "/v1/push")).body.devices[0].last_error;
  await until(async () => (await problem()) !== null, "the failure");
  expect(await problem()).toBe(`answered ${status}`);
  service.answers.push({ status, headers });
  const [{ id }] = (await s.call("approver", "GET", "/v1/push")).body.devices;
  const tested = (await s.call("approver", "POST", `/v1/push/${id}/test`, {})).body;
  expect(tested).toEqual({ ok: false, error: `answered ${status}` });
  expect(service.received).toEqual([]);
});

it("refuses a label that hides or turns text", async () => {
  verifies("beyond.push.labels");
  await open();
  const { subscription } = service.browser();
  for (const label of ["a\u202eb", "a\u2066b", "a\u200bb", "a\nb", "a\u2028b", "\u0007"]) {
    const { status, body } = await s.call("approver", "POST", "/v1/push", { ...subscription, label });
    expect([status, body.error]).toEqual([400, expect.stringContaining("invisible characters")]);
  }
  const good = await s.call("approver", "POST", "/v1/push", { ...subscription, label: "Änns 📱 (Büro)" });
  expect(good.body.label).toBe("Änns 📱 (Büro)");
});
