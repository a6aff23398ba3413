/** Tokens with actors: what an agent may do that acts for a person, and what it may not. */
import { OAuth2Server } from "oauth2-mock-server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `version: 1
approvals: {four_eyes: true}
rules:
  - {id: by-helper, match: {tool: crm.create, acting: "helper-*"}, action: require_approval, reason: a helper asks}
  - {id: by-anybody, match: {tool: mail.send, acting: "*"}, action: deny, reason: only people send mail}
limits:
  - {id: few, match: {tool: crm.get, acting: counter}, max: 2, per: run, window: 1h, action: deny}
tests:
  - {name: a helper asks, input: {tool: crm.create, acting: [desk, helper-1]}, expect: require_approval, rule: by-helper}
  - {name: a person does not ask, input: {tool: crm.create}, expect: allow}
`;

const issuer = new OAuth2Server();
let s: TestServer;
beforeAll(async () => {
  await issuer.issuer.keys.generate("ES256");
  await issuer.start(0, "127.0.0.1");
  s = await testServer({
    policy: POLICY,
    config: `capture: {enabled: true}\noidc: {issuer: "${issuer.issuer.url}", audience: svc, role_map: {bots: agent, security: admin, people: approver}}\n`,
    keys: [
      { name: "ann", role: "approver" },
      { name: "helper-1", role: "approver" },
      { name: "bea", role: "approver" },
    ],
  });
});
afterAll(() => issuer.stop());

const chain = (...names: unknown[]): unknown =>
  names.reduceRight((act: unknown, sub) => (act === undefined ? { sub } : { sub, act }), undefined);

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
      });
      Object.assign(payload, claims);
    },
  });
}

let opened = 0;
async function openRun(bearer: string): Promise<string> {
  const run_id = `acting-${++opened}`;
  const body = { run_id, permissions: ["crm.read", "crm.write", "mail.send"] };
  expect((await s.call(bearer, "POST", "/v1/runs", body)).status).toBe(201);
  return run_id;
}

const ask = (bearer: string, run_id: string, tool: string, args = {}) =>
  s.call(bearer, "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason: "r" });

describe("a token with actors", () => {
  it("has the role agent only, on every route", async () => {
    verifies("beyond.acting.agent-only");
    const admin = await token({ groups: ["security", "people"] });
    const acting = await token({ groups: ["security", "people"], act: { sub: "helper-1" } });
    expect((await s.call(admin, "GET", "/v1/keys")).status).toBe(200);
    for (const { op, method, body, ...row } of HTTP_TABLE) {
      const path = row.path.replaceAll(/\{\w+\}/g, "0");
      const { status } = await s.call(acting, method, path, body ? {} : undefined);
      // Some routes also serve the owner of a run, for whom a foreign one does not exist.
      if (op.role !== "agent" && op.any_role !== true) expect([403, 404], op.id).toContain(status);
    }
    expect((await s.call(acting, "POST", "/v1/runs", { permissions: [] })).status).toBe(201);
    const strangers = await token({ groups: ["strangers"], act: { sub: "helper-1" } });
    expect((await s.call(strangers, "POST", "/v1/runs", { permissions: [] })).status).toBe(403);
  });

  it("opens runs of its subject that name who acts, outermost first", async () => {
    verifies("beyond.acting.run", "beyond.acting.shown");
    const bearer = await token({ act: chain("helper-1", "crawler", "cron") });
    const run_id = await openRun(bearer);
    const { body } = await s.call(bearer, "GET", `/v1/runs/${run_id}`);
    expect(body).toMatchObject({ actor: "ann", acting: ["helper-1", "crawler", "cron"] });
    await ask(bearer, run_id, "crm.get");
    const report = await s.call("auditor", "GET", `/v1/runs/${run_id}/report`);
    expect(report.text).toContain("helper-1, crawler, cron");
  });

  it("is matched by the policy", async () => {
    verifies("beyond.acting.match");
    const direct = await token({});
    const own = await openRun(direct);
    expect((await ask(direct, own, "crm.create")).body.decision).toBe("allow");
    expect((await ask(direct, own, "mail.send")).body.decision).toBe("allow");
    const helper = await token({ act: chain("desk", "helper-2") });
    const helped = await openRun(helper);
    expect((await ask(helper, helped, "crm.create")).body).toMatchObject({ decision: "block" });
    expect((await ask(helper, helped, "mail.send")).body.reasons[0]).toContain("only people send mail");
    const counted = await token({ act: chain("counter") });
    const limited = await openRun(counted);
    const decisions = [];
    for (let i = 0; i < 3; i++) decisions.push((await ask(counted, limited, "crm.get", { i })).body.decision);
    expect(decisions).toEqual(["allow", "allow", "block"]);
    const other = await token({ act: chain("desk") });
    expect((await ask(other, await openRun(other), "crm.create")).body.decision).toBe("allow");
  });
});

describe("four eyes", () => {
  it("keeps subject and actors from deciding, and shows both on the card", async () => {
    verifies("beyond.acting.four-eyes", "beyond.acting.shown");
    const bearer = await token({ act: chain("desk", "helper-1") });
    const run_id = await openRun(bearer);
    await ask(bearer, run_id, "crm.create", { name: "x" });
    const { approvals } = (await s.call("bea", "GET", `/v1/approvals?run_id=${run_id}`)).body;
    const { id } = approvals[0];
    const card = (await s.call("bea", "GET", `/v1/approvals/${id}/card`)).body;
    expect(card).toMatchObject({ actor: "ann", acting: ["desk", "helper-1"] });
    expect(card.text).toContain("ann, by desk and helper-1");
    for (const name of ["ann", "helper-1"]) {
      const said = await s.call(name, "POST", `/v1/approvals/${id}/approve`, {});
      expect([name, said.status, said.body.error]).toEqual([name, 403, "you cannot decide your own request"]);
      const glass = await s.call(name, "POST", `/v1/approvals/${id}/break-glass`, { reason: "now" });
      expect(glass.status).toBe(403);
    }
    expect((await s.call("bea", "POST", `/v1/approvals/${id}/approve`, {})).status).toBe(200);
    expect((await ask(bearer, run_id, "crm.create", { name: "x" })).body.decision).toBe("allow");
  });

  it("judges a plan, its card and a preview as the call itself", async () => {
    verifies("beyond.acting.match", "beyond.acting.four-eyes");
    const bearer = await token({ act: chain("desk", "helper-1") });
    const run_id = await openRun(bearer);
    const calls = [{ tool: "crm.create", args: { name: "planned" } }];
    const preview = await s.call(bearer, "POST", `/v1/runs/${run_id}/intents/preview`, {
      ...calls[0],
      reason: "r",
    });
    expect(preview.body.decision).toBe("needs_approval");
    const plan = (await s.call(bearer, "POST", `/v1/runs/${run_id}/plans`, { reason: "r", calls })).body;
    expect(plan).toMatchObject({ status: "pending", actor: "ann", acting: ["desk", "helper-1"] });
    expect(plan.calls[0].decision).toBe("needs_approval");
    expect((await s.call("helper-1", "POST", `/v1/plans/${plan.id}/approve`, {})).status).toBe(403);
    expect((await s.call("bea", "POST", `/v1/plans/${plan.id}/approve`, {})).status).toBe(200);
    expect((await ask(bearer, run_id, "crm.create", { name: "planned" })).body.decision).toBe("allow");
  });

  it("counts no grant of an actor for the calls that it makes", async () => {
    const bearer = await token({ act: chain("helper-1") });
    const run_id = await openRun(bearer);
    const grant = {
      match: { tool: "crm.create", actor: "ann" },
      rules: ["by-helper"],
      max_uses: 5,
      expires_at: new Date(s.env.now() + 60_000).toISOString(),
      reason: "r",
    };
    expect((await s.call("helper-1", "POST", "/v1/grants", grant)).status).toBe(201);
    expect((await ask(bearer, run_id, "crm.create", { name: "granted" })).body.decision).toBe("block");
    expect((await s.call("bea", "POST", "/v1/grants", grant)).status).toBe(201);
    expect((await ask(bearer, run_id, "crm.create", { name: "granted" })).body.decision).toBe("allow");
  });
});

describe("somebody who lies about who acts", () => {
  it("does not reach the run of another chain", async () => {
    verifies("beyond.acting.own-runs");
    const bearer = await token({ act: chain("desk") });
    const run_id = await openRun(bearer);
    const others = [token({}), token({ act: chain("helper-1") }), token({ act: chain("desk", "helper-1") })];
    // A subject whose text looks like the identity of another chain is still another subject.
    others.push(token({ sub: '["ann","desk"]' }));
    for (const other of await Promise.all(others)) {
      expect((await ask(other, run_id, "crm.get")).status).toBe(404);
      expect((await s.call(other, "GET", `/v1/runs/${run_id}`)).status).toBe(404);
    }
    expect((await ask(await token({ act: chain("desk") }), run_id, "crm.get")).status).toBe(200);
  });

  it.each([
    ["a text", "helper-1"],
    ["a list", [{ sub: "helper-1" }]],
    ["nothing", null],
    ["without a subject", {}],
    ["with an empty subject", { sub: "" }],
    ["with a subject of another type", { sub: 7 }],
    ["with a broken inner actor", { sub: "desk", act: "helper-1" }],
    ["with a line break in a name", { sub: "desk\nhelper" }],
    ["too deep", chain(...Array.from({ length: 11 }, (_, i) => `a${i}`))],
  ])("is refused with a claim that is %s", async (_name, act) => {
    verifies("beyond.acting.agent-only");
    const bearer = await token({ groups: ["security"], act });
    expect((await s.call(bearer, "GET", "/v1/keys")).status).toBe(401);
  });

  it("does not borrow the name of the service", async () => {
    expect((await s.call(await token({ act: chain("engine") }), "GET", "/v1/runs")).status).toBe(403);
  });

  it("uses no delegation to its subject", async () => {
    const direct = await token({ groups: ["people"] });
    const acting = await token({ groups: ["people"], act: chain("desk") });
    const lent = { to: "ann", to_kind: "oidc", tools: "*", expires_ms: s.env.now() + 60_000, reason: "r" };
    await s.call("bea", "POST", "/v1/delegations", lent);
    await s.call("agent", "POST", "/v1/runs", { run_id: "of-agent", permissions: ["crm.write"] });
    expect((await s.call(acting, "GET", "/v1/approvals")).status).toBe(403);
    expect((await s.call(direct, "GET", "/v1/approvals")).status).toBe(200);
  });
});

describe("policies about actors", () => {
  it("are tested, proved and compared", async () => {
    verifies("beyond.acting.prover");
    const looser = POLICY.replace('acting: "helper-*"', 'acting: "helper-1"');
    const diff = (await s.call("operator", "POST", "/v1/policy/diff", { a: POLICY, b: looser })).body;
    expect(JSON.stringify(diff)).toContain('"acting":["helper-');
  });
});

it("is followed by simulations of captured calls", async () => {
  verifies("beyond.acting.prover");
  const bearer = await token({ act: chain("desk", "crawler") });
  const run_id = await openRun(bearer);
  await ask(bearer, run_id, "crm.get");
  await s.call("agent", "POST", "/v1/runs", { run_id: "simulated", permissions: ["crm.read"] });
  await ask("agent", "simulated", "crm.get");
  await s.app.capture!.drain(5_000);
  const stricter = "version: 1\nrules:\n  - {id: none, match: {acting: crawler}, action: deny, reason: no}\n";
  const { body } = await s.call("operator", "POST", "/v1/simulate", { policy: stricter });
  const changed = JSON.stringify(body.changes ?? body);
  expect(changed).toContain(run_id);
  expect(changed).not.toContain('"simulated"');
});

it("writes nothing of it for runs without actors", async () => {
  verifies("beyond.acting.absent");
  const run_id = await openRun(await token({}));
  await s.call("agent", "POST", "/v1/runs", { run_id: "of-a-key", permissions: [] });
  for (const id of [run_id, "of-a-key"]) {
    const run = (await s.call("auditor", "GET", `/v1/runs/${id}`)).body;
    expect(run).not.toHaveProperty("acting");
  }
});
