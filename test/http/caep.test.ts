/** Security events of an identity provider: what they halt, and what a forger does not. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const TYPE = "https://schemas.openid.net/secevent/caep/event-type/";
const ISSUER = "https://id.example.com";
const pair = await generateKeyPair("ES256", { extractable: true });
const stranger = await generateKeyPair("ES256", { extractable: true });
const jwks = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: "k1", alg: "ES256", use: "sig" }] };
let isDown = false;
const keys = createServer((_request, response) => {
  if (isDown) return void response.writeHead(500).end();
  response.setHeader("content-type", "application/json").end(JSON.stringify(jwks));
});
let s: TestServer;
let jwks_url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => keys.listen(0, "127.0.0.1", resolve));
  jwks_url = `http://127.0.0.1:${(keys.address() as AddressInfo).port}/jwks`;
  s = await receiver();
});
afterAll(() => void keys.close());

const receiver = () =>
  testServer({
    config: `caep: {issuer: "${ISSUER}", audience: svc, jwks_url: "${jwks_url}"}\n`,
    keys: ["*", "a*", "ab", "{a,b}", "cara", "dora", "evan"].map((name) => ({ name, role: "agent" })),
  });

interface Change {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  key?: CryptoKey;
}

let count = 0;
function event(
  sub: string,
  { claims = {}, header = {}, key = pair.privateKey }: Change = {},
  type = "session-revoked",
) {
  const payload = {
    iss: ISSUER,
    aud: "svc",
    iat: Math.floor(s.env.now() / 1_000),
    jti: `e${++count}`,
    sub_id: { format: "iss_sub", iss: ISSUER, sub },
    events: { [TYPE + type]: { event_timestamp: 1 } },
    ...claims,
  };
  const said = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
  return new SignJWT(said as JWTPayload)
    .setProtectedHeader({ alg: "ES256", kid: "k1", typ: "secevent+jwt", ...header })
    .sign(key);
}

async function deliver(token: string, type = "application/secevent+jwt", to = s) {
  const answer = await to.http.inject({
    method: "POST",
    url: "/caep/events",
    headers: { "content-type": type },
    payload: token,
  });
  return { status: answer.statusCode, body: answer.body === "" ? null : JSON.parse(answer.body) };
}

const halts = async () => (await s.call("auditor", "GET", "/v1/halts")).body.halts;

async function isHalted(name: string): Promise<boolean> {
  const run_id = `r${++count}`;
  await s.call(name, "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
  const { body } = await s.call(name, "POST", `/v1/runs/${run_id}/intents`, {
    tool: "crm.get",
    args: {},
    reason: "r",
  });
  return body.decision === "block";
}

describe("an event", () => {
  it.each([
    ["session-revoked", "cara"],
    ["credential-change", "dora"],
  ])("%s halts its subject until a person lifts it", async (type, sub) => {
    verifies("beyond.caep.delivery", "beyond.caep.halt");
    expect(await isHalted(sub)).toBe(false);
    expect(await deliver(await event(sub, {}, type))).toEqual({ status: 202, body: null });
    expect(await isHalted(sub)).toBe(true);
    expect(await isHalted("evan")).toBe(false);
    const [halt] = (await halts()).filter(({ scope }: { scope: { actor: string } }) => scope.actor === sub);
    expect(halt).toMatchObject({ by: `caep:${ISSUER}`, scope: { actor: sub, tool: null, tenant: null } });
    const { records } = (await s.call("auditor", "GET", "/v1/search/records?event=halted")).body;
    expect(
      records.some(
        ({ actor, detail }: { actor: string; detail: string }) =>
          actor === `caep:${ISSUER}` && detail.includes(sub),
      ),
    ).toBe(true);
    expect((await s.call("admin", "POST", "/v1/resume", { id: halt.id })).status).toBe(200);
    expect(await isHalted(sub)).toBe(false);
  });

  it("names its subject in the event, as older transmitters do", async () => {
    const subject = { format: "iss_sub", iss: ISSUER, sub: "dora" };
    const claims = { sub_id: undefined, events: { [`${TYPE}session-revoked`]: { subject } } };
    expect((await deliver(await event("", { claims }))).status).toBe(202);
    expect(await isHalted("dora")).toBe(true);
    await s.call("admin", "POST", "/v1/resume", {});
  });

  it("of another type, or about a subject of another issuer, does nothing", async () => {
    verifies("beyond.caep.halt");
    const elsewhere = { sub_id: { format: "iss_sub", iss: "https://other.example.com", sub: "evan" } };
    expect((await deliver(await event("evan", {}, "token-claims-change"))).status).toBe(202);
    expect((await deliver(await event("evan", { claims: elsewhere }))).status).toBe(202);
    expect(await isHalted("evan")).toBe(false);
    expect(await halts()).toEqual([]);
  });

  it("about a subject that looks like a glob halts exactly that actor", async () => {
    verifies("beyond.caep.exact");
    for (const sub of ["*", "a*", "{a,b}"]) expect((await deliver(await event(sub))).status).toBe(202);
    for (const sub of ["*", "a*", "{a,b}"]) expect([sub, await isHalted(sub)]).toEqual([sub, true]);
    for (const other of ["ab", "evan", "agent"])
      expect([other, await isHalted(other)]).toEqual([other, false]);
    await s.call("admin", "POST", "/v1/resume", {});
  });

  it("counts once, also after the halt was lifted", async () => {
    verifies("beyond.caep.once");
    const token = await event("cara");
    expect((await deliver(token)).status).toBe(202);
    expect((await deliver(token)).status).toBe(202);
    // Another event about the same halted actor adds no second halt.
    expect((await deliver(await event("cara"))).status).toBe(202);
    expect(await halts()).toHaveLength(1);
    await s.call("admin", "POST", "/v1/resume", {});
    await s.env.advance(60 * 86_400_000);
    expect((await deliver(token)).status).toBe(202);
    expect(await isHalted("cara")).toBe(false);
    expect((await deliver(await event("cara"))).status).toBe(202);
    expect(await isHalted("cara")).toBe(true);
    await s.call("admin", "POST", "/v1/resume", {});
  });
});

describe("somebody who forges events", () => {
  const said = async (change: Change, type?: string) =>
    (await deliver(await event("evan", change), type)).body?.err;

  it("halts nobody", async () => {
    verifies("beyond.caep.forged", "beyond.caep.delivery");
    expect(await said({ key: stranger.privateKey })).toBe("invalid_key");
    expect(await said({ header: { kid: "k2" } })).toBe("invalid_key");
    expect(await said({ claims: { iss: "https://evil.example.com" } })).toBe("invalid_issuer");
    expect(await said({ claims: { aud: "others" } })).toBe("invalid_audience");
    // An id token of the same issuer is not an event.
    expect(await said({ header: { typ: "JWT" } })).toBe("invalid_request");
    expect(await said({ claims: { jti: undefined } })).toBe("invalid_request");
    expect(await said({ claims: { jti: "" } })).toBe("invalid_request");
    expect(await said({ claims: { iat: undefined } })).toBe("invalid_request");
    expect(await said({ claims: { iat: Math.floor(s.env.now() / 1_000) + 3_600 } })).toBe("invalid_request");
    expect(await said({ claims: { iat: 1 } })).toBe("invalid_request");
    expect(await said({ claims: { events: {} } })).toBe("invalid_request");
    expect(await said({ claims: { events: undefined } })).toBe("invalid_request");
    expect(await said({ claims: { sub_id: { format: "email", email: "evan@example.com" } } })).toBe(
      "invalid_request",
    );
    expect(await said({ claims: { sub_id: { format: "iss_sub", iss: ISSUER } } })).toBe("invalid_request");
    expect(await said({}, "application/json")).toBe("invalid_request");
    const [header, payload, signature] = (await event("cara")).split(".");
    const changed = JSON.parse(Buffer.from(payload!, "base64url").toString());
    changed.sub_id.sub = "evan";
    const forged = Buffer.from(JSON.stringify(changed)).toString("base64url");
    expect((await deliver(`${header}.${forged}.${signature}`)).body.err).toBe("invalid_key");
    const none = Buffer.from('{"alg":"none","typ":"secevent+jwt"}').toString("base64url");
    for (const token of [`${none}.${forged}.`, "", "{}", "a.b.c", "x".repeat(70_000)])
      expect((await deliver(token)).body).toMatchObject({
        err: expect.any(String),
        description: expect.any(String),
      });
    expect(await isHalted("evan")).toBe(false);
    expect(await halts()).toEqual([]);
  });

  it("does not use the service's outage: an event that cannot be checked is sent again", async () => {
    isDown = true;
    const cold = await receiver();
    expect((await deliver(await event("evan"), undefined, cold)).status).toBe(503);
    isDown = false;
  });
});

it("is off without its settings", async () => {
  verifies("beyond.caep.off");
  const plain = await testServer();
  expect((await deliver(await event("evan"), undefined, plain)).status).toBe(404);
});

it.each([
  [`caep: {issuer: "${ISSUER}"}\n`, /caep: security events need/],
  [`caep: {issuer: "${ISSUER}", audience: svc}\n`, /caep: security events need/],
  [`caep: {issuer: "${ISSUER}", audience: svc, jwks_url: "http://id.example.com/jwks"}\n`, /over https/],
])("does not load with %s", async (config, problem) => {
  verifies("beyond.caep.off");
  await expect(testServer({ config })).rejects.toThrow(problem);
});
