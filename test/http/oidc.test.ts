/** Tokens of a real OpenID Connect issuer over HTTP, next to API keys. */
import { OAuth2Server } from "oauth2-mock-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const issuer = new OAuth2Server();
let s: TestServer;
beforeAll(async () => {
  await issuer.issuer.keys.generate("ES256");
  await issuer.start(0, "127.0.0.1");
  s = await testServer({
    config: `oidc: {issuer: "${issuer.issuer.url}", audience: svc, role_map: {bots: agent, ops: operator, watchers: auditor}}\n`,
    keys: [{ name: "ann", role: "auditor" }],
  });
});
afterAll(() => issuer.stop());

function token(claims: Record<string, unknown>): Promise<string> {
  const now = Math.floor(s.env.now() / 1_000);
  return issuer.issuer.buildToken({
    scopesOrTransform: (_header, payload) => {
      Object.assign(payload, {
        aud: "svc",
        sub: "ann",
        groups: ["bots"],
        iat: now,
        exp: now + 300,
        nbf: now,
        ...claims,
      });
    },
  });
}

describe("a token", () => {
  it("opens a run as its subject, within what the manifests declare", async () => {
    verifies("core.auth.oidc-token", "core.run.actor-token-sub", "contract.readings.oidc-no-cap");
    const bot = await token({ sub: "bot@example.com" });
    const opened = await s.call(bot, "POST", "/v1/runs", {
      run_id: "t",
      permissions: ["crm.read", "mail.send"],
    });
    expect(opened.status).toBe(201);
    expect((await s.call(bot, "GET", "/v1/runs/t")).body).toMatchObject({
      actor: "bot@example.com",
      tenant: null,
    });
    expect((await s.call(bot, "POST", "/v1/runs", { permissions: ["undeclared.permission"] })).status).toBe(
      403,
    );
    expect((await s.call(bot, "POST", "/v1/runs", { permissions: [], mode: "observe" })).status).toBe(403);
    const asked = await s.call(bot, "POST", "/v1/runs/t/intents", { tool: "crm.get", args: {}, reason: "r" });
    expect(asked.body.decision).toBe("allow");
    const { records } = (await s.call("auditor", "GET", "/v1/search/records?run_id=t")).body;
    expect(records[0]).toMatchObject({ event: "intended", actor: "bot@example.com" });
  });

  it("is known on every route, with the role of its groups", async () => {
    const watcher = await token({ groups: ["watchers"] });
    for (const { op, method, body, ...row } of HTTP_TABLE) {
      const path = row.path.replaceAll(/\{\w+\}/g, "0");
      const { status } = await s.call(watcher, method, path, body ? {} : undefined);
      expect([op.id, status === 401]).toEqual([op.id, false]);
    }
    expect((await s.call(watcher, "GET", "/v1/status")).status).toBe(200);
    expect((await s.call(watcher, "POST", "/v1/halt", { reason: "r" })).status).toBe(403);
  });

  it.each([
    ["for another audience", { aud: "other" }, 401],
    ["that has expired", { exp: 1 }, 401],
    ["of another issuer", { iss: "https://elsewhere.example.com" }, 401],
    ["without a mapped group", { groups: ["strangers"] }, 403],
  ])("%s is refused", async (_name, claims, status) => {
    expect((await s.call(await token(claims), "GET", "/v1/runs")).status).toBe(status);
  });

  it("and a key of the same name are two principals, and both work", async () => {
    verifies("core.auth.oidc-beside-keys");
    const ann = await token({ sub: "agent" });
    await s.call("agent", "POST", "/v1/runs", { run_id: "of-the-key", permissions: [] });
    await s.call(ann, "POST", "/v1/runs", { run_id: "of-the-token", permissions: [] });
    expect((await s.call("agent", "GET", "/v1/runs/of-the-token")).status).toBe(404);
    expect((await s.call(ann, "GET", "/v1/runs/of-the-key")).status).toBe(404);
    expect((await s.call("agent", "GET", "/v1/runs")).body.runs).toEqual(["of-the-key"]);
    expect((await s.call(ann, "GET", "/v1/runs")).body.runs).toEqual(["of-the-token"]);
    expect((await s.call("ann", "GET", "/v1/status")).status).toBe(200);
  });
});
