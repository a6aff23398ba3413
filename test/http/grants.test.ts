/** Grants over HTTP: what one covers, what it never lifts, and whose authority each use needs. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: pay, compensation: {tool: pay.charge, args: {id: $args.id}}}
- {tool: pay.wire, effect: irreversible, permission: pay}
- {tool: pay.tip, effect: idempotent, permission: pay}
`;
const RULES = `
  - {id: refunds, match: {tool: pay.refund}, action: require_approval, reason: a person looks at refunds}
  - {id: large, match: {tool: pay.refund}, when: [{path: $args.amount, op: gt, value: 1000}], action: require_approval, reason: large}
  - {id: wires, match: {tool: pay.wire}, action: require_approval, reason: wires}
  - {id: tips, match: {tool: pay.tip}, action: require_approval, approval: {groups: [ops]}}
  - {id: pairs, match: {tool: pay.pair}, action: require_approval, approval: {quorum: 2}}
  - {id: fine, match: {tool: pay.fine}, action: allow}
`;
const POLICY = `version: 1\nrules:${RULES}`;
const DAY = 86_400_000;
let s: TestServer;
let n = 0;
beforeEach(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [
      { name: "ann", role: "approver", groups: ["ops"] },
      { name: "bob", role: "approver" },
      { name: "both", roles: ["agent", "approver"] },
      { name: "eve", role: "auditor" },
      { name: "agent-acme", role: "agent", tenant: "acme" },
    ],
  });
});

const expiry = (ms = DAY) => new Date(s.env.now() + ms).toISOString();
const terms = (more: object = {}) => ({
  match: { tool: "pay.refund", actor: "agent" },
  rules: ["refunds"],
  max_uses: 3,
  expires_at: expiry(),
  reason: "the fair refunds many",
  ...more,
});
async function given(key: string, more: object = {}) {
  const made = await s.call(key, "POST", "/v1/grants", terms(more));
  expect(made.status, made.text).toBe(201);
  return made.body;
}
async function opened(key = "agent") {
  const run_id = `g${n++}`;
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  return run_id;
}
async function ask(run_id: string, args: unknown, tool = "pay.refund", key = "agent") {
  const asked = await s.call(key, "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason: "r" });
  expect(asked.status, asked.text).toBe(200);
  return asked.body;
}
const waits = async (args: unknown, tool?: string, key?: string) =>
  expect((await ask(await opened(key), args, tool, key)).reasons.at(-1)).toMatch(
    /^approval required: request apr_/,
  );
const passes = async (args: unknown, tool?: string) =>
  expect(await ask(await opened(), args, tool)).toMatchObject({ decision: "allow" });
const records = async () =>
  (await s.app.core.store.records({ limit: 1_000 })).map((line) => JSON.parse(line));
function usePolicy(text: string) {
  writeFileSync(join(s.folder, "policy.yaml"), text);
  return s.call("admin", "POST", "/v1/reload", {});
}
async function useKeys(change: (entry: Record<string, unknown>) => Record<string, unknown> | null) {
  const path = join(s.folder, "keys.json");
  const entries = (JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>[]).flatMap(
    (entry) => change(entry) ?? [],
  );
  writeFileSync(path, JSON.stringify(entries));
  expect((await s.call("admin", "POST", "/v1/reload", {})).status).toBe(200);
}

describe("a grant", () => {
  it("is given, listed and revoked, each on the ledger", async () => {
    verifies("beyond.grant.fields", "beyond.grant.routes", "beyond.grant.revoke");
    const grant = await given("bob", { budget: { path: "$args.amount", max: 500 } });
    expect(grant).toEqual({
      id: expect.stringMatching(/^grt_[0-9a-f-]{36}$/),
      match: { tool: "pay.refund", actor: "agent", tenant: null, environment: null },
      rules: ["refunds"],
      when: [],
      max_uses: 3,
      budget: { path: "$args.amount", max: 500 },
      irreversible: false,
      reason: "the fair refunds many",
      by: "bob",
      created_ms: s.env.now(),
      expires_ms: s.env.now() + DAY,
      uses: 0,
      spent: 0,
      revoked_ms: null,
    });
    const second = await given("ann");
    const first = await s.call("auditor", "GET", "/v1/grants?limit=1");
    expect(first.body.grants).toHaveLength(1);
    const rest = await s.call("auditor", "GET", `/v1/grants?limit=1&cursor=${first.body.next_cursor}`);
    expect([first.body.grants[0].id, rest.body.grants[0].id].sort()).toEqual([grant.id, second.id].sort());

    expect((await s.call("ann", "DELETE", `/v1/grants/${grant.id}`)).status).toBe(403);
    expect((await s.call("bob", "DELETE", `/v1/grants/${grant.id}`)).body).toEqual({
      ...grant,
      revoked_ms: s.env.now(),
    });
    expect((await s.call("bob", "DELETE", `/v1/grants/${grant.id}`)).status).toBe(409);
    expect((await s.call("admin", "DELETE", `/v1/grants/${second.id}`)).status).toBe(200);
    expect((await s.call("admin", "DELETE", "/v1/grants/grt_none")).status).toBe(404);
    await waits({ id: 1, amount: 5 });
    expect((await records()).filter(({ event }) => /grant/.test(event))).toMatchObject([
      {
        event: "granted",
        actor: "bob",
        reason: "the fair refunds many",
        detail: expect.stringContaining(grant.id),
      },
      { event: "granted", actor: "ann" },
      { event: "grant_revoked", actor: "bob" },
      { event: "grant_revoked", actor: "admin" },
    ]);
  });

  it("covers no call with an unlisted argument, and only runs without a tenant if it names them", async () => {
    verifies("beyond.grant.other-args", "beyond.grant.no-tenant");
    const match = { tool: "pay.refund", actor: "agent*", tenant: "", environment: "" };
    const grant = await given("bob", { match, args_only: ["id", "amount"], max_uses: 4 });
    expect(grant).toMatchObject({ match, args_only: ["id", "amount"] });
    await waits({ id: 1, amount: 5, recipient2: "x" });
    await waits(["id"]);
    await waits({ id: 1, amount: 5 }, "pay.refund", "agent-acme");
    await passes({ id: 1, amount: 5 });
    await passes({ id: 1 });
    const [{ detail }] = (await records()).filter(({ event }) => event === "granted");
    expect(detail).toContain("no tenant; no environment");
    expect(detail).toContain("no other arguments");
    for (const args_only of ["id", [""], [5], Array(101).fill("x")])
      expect((await s.call("bob", "POST", "/v1/grants", terms({ args_only }))).status).toBe(400);
  });

  it("is refused over its limits, without names, and where it is wider than its giver's authority", async () => {
    verifies("beyond.grant.limits", "beyond.grant.named", "beyond.grant.not-wider");
    const wrong: [object, RegExp, string?][] = [
      [{ max_uses: 1_001 }, /max_uses: at most 1000 uses/],
      [{ max_uses: 0 }, /max_uses: must be at least 1$/],
      [{ reason: "   " }, /reason: must not be empty$/],
      [{ budget: 5 }, /budget: must be an object or null$/],
      [{ budget: { max: 5 } }, /budget\.path: is required$/],
      [{ budget: { path: "$args.amount", max: -1 } }, /budget\.max: must be at least 0$/],
      [{ expires_at: expiry(31 * DAY) }, /at most 30 days/],
      [{ expires_at: expiry(-1) }, /in the past/],
      [{ match: { actor: "agent" } }, /match\.tool/],
      [{ match: { tool: "pay.refund" } }, /match\.actor/],
      [{ match: { tool: "*", actor: "agent" } }, /match\.tool: must say which tools/],
      [{ match: { tool: "pay.refund", actor: "**" } }, /match\.actor: must say which actors/],
      [{ match: { tool: "{pay.x,*}", actor: "agent" } }, /match\.tool: must say which tools/],
      [{ rules: [] }, /rules: name at least one/],
      [{ rules: ["nothing"] }, /the policy has no rule "nothing"/],
      [{ rules: ["fine"] }, /does not require approval/],
      [{ rules: ["tips"] }, /members of ops/],
      [{ rules: ["pairs"] }, /asks for 2 approvals/],
      [{ rules: ["wires"], irreversible: true }, /only an admin/],
      [{ match: { tool: "pay.refund", actor: "bob" } }, /its giver's own runs/],
      [{ when: [{ path: "$result.x", op: "eq", value: 1 }] }, /\$result/],
      [{ when: [{ path: "$args.x", op: "matches", value: "(" }] }, /when/],
      [{ budget: { path: "amount", max: 1 } }, /budget/],
      [{ surprise: 1 }, /surprise/],
    ];
    for (const [more, message, key] of wrong) {
      const { status, body } = await s.call(key ?? "bob", "POST", "/v1/grants", terms(more));
      expect([more, status, body.error]).toEqual([more, 400, expect.stringMatching(message)]);
    }
    expect((await s.call("eve", "POST", "/v1/grants", terms())).status).toBe(403);
    expect((await s.call("agent", "GET", "/v1/grants")).status).toBe(403);
    expect(await records()).toEqual([]);
    await given("ann", { rules: ["tips"], match: { tool: "pay.tip", actor: "agent" } });
  });
});

describe("a use", () => {
  it("is recorded, counted, and ends the request that was open", async () => {
    verifies("beyond.grant.use", "beyond.grant.open-request");
    const run = await opened();
    const [apr] = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask(run, { id: 1 })))!;
    const { id } = await given("bob", { max_uses: 2 });
    expect(await ask(run, { id: 1 })).toEqual({ decision: "allow", step: 0 });
    const trail = (await records()).filter(({ run_id }) => run_id === run);
    expect(trail.map(({ event, actor, detail }) => [event, actor, detail]).slice(1)).toEqual([
      ["approval_expired", "engine", `request ${apr}: covered by grant ${id}`],
      ["approved", "engine", `used grant ${id} (1 of 2)`],
      ["intended", "agent", undefined],
    ]);
    expect((await s.call("auditor", "GET", `/v1/approvals/${apr}`)).body).toMatchObject({
      status: "expired",
      note: `covered by grant ${id}`,
    });
    await passes({ id: 2 });
    await waits({ id: 3 });
    expect((await s.call("bob", "GET", "/v1/grants")).body.grants[0]).toMatchObject({ uses: 2, max_uses: 2 });
  });

  it("is for the tools, actors and conditions that it names", async () => {
    verifies("beyond.grant.when");
    await given("bob", {
      match: { tool: "pay.re*", actor: "{agent,other}" },
      when: [
        { path: "$args.currency", op: "in", value: ["EUR"] },
        { path: "$args.amount", op: "lte", value: 10 },
      ],
      max_uses: 100,
    });
    await passes({ id: 1, amount: 10, currency: "EUR" });
    await waits({ id: 1, amount: 11, currency: "EUR" });
    await waits({ id: 1, amount: "1", currency: "EUR" });
    await waits({ id: 1, currency: "EUR" });
    await waits({ id: 1, amount: 1, currency: "USD" });
    await waits({ id: 1, amount: 1, currency: "EUR" }, "pay.refund", "agent2");
  });

  it("goes no further than the budget, which only plain numbers can use", async () => {
    verifies("beyond.grant.budget");
    await given("bob", { budget: { path: "$args.amount", max: 0.3 }, max_uses: 100 });
    await passes({ id: 1, amount: 0.1 });
    await passes({ id: 2, amount: 0.2 });
    for (const amount of [undefined, -1, "0", null, [0], 0.0001]) await waits({ id: 3, amount });
    await passes({ id: 4, amount: 0 });
    expect((await s.call("bob", "GET", "/v1/grants")).body.grants[0]).toMatchObject({ uses: 3, spent: 0.3 });
  });

  it("shows the values of conditions to approvers only, and records none", async () => {
    verifies("beyond.grant.when-values");
    const value = "canary-4711";
    const made = await given("bob", { when: [{ path: "$args.to", op: "eq", value }] });
    expect(made.when).toEqual([{ path: "$args.to", op: "eq", value }]);
    await passes({ id: 1, to: value });
    expect((await s.call("auditor", "GET", "/v1/grants")).body.grants[0].when).toEqual([
      { path: "$args.to", op: "eq" },
    ]);
    expect((await s.call("ann", "GET", "/v1/grants")).text).toContain(value);
    await s.call("bob", "DELETE", `/v1/grants/${made.id}`);
    expect(JSON.stringify([await records(), s.logged])).not.toContain("canary");
  });

  it("lifts nothing but what the named rules asked for", async () => {
    verifies("beyond.grant.only-named-rules");
    const { id } = await given("bob", { max_uses: 100 });
    await waits({ id: 1, amount: 2_000 });
    const both = await given("bob", { rules: ["refunds", "large"] });
    await passes({ id: 1, amount: 2_000 });
    await s.call("bob", "DELETE", `/v1/grants/${both.id}`);
    for (const more of [
      "content: {pii: require_approval}",
      "limits: [{id: few, match: {tool: pay.refund}, max: 0, per: run, window: 1h, action: require_approval}]",
      "budgets: [{id: sum, path: $args.id, max: 0, per: run, window: 1h, action: require_approval}]",
      "risk: {weights: {effect: {compensable: 50}}, require_approval_at: 40}",
      "freezes: [{id: cold, from: 2026-01-01, to: 2027-01-01, action: require_approval}]",
      // An entry that shares its name with a rule is not the rule.
      "limits: [{id: refunds, match: {tool: pay.refund}, max: 0, per: run, window: 1h, action: require_approval}]",
    ]) {
      expect((await usePolicy(`${POLICY}${more}\n`)).status, more).toBe(200);
      await waits({ id: 1, mail: "ann@example.com" });
    }
    await usePolicy(`${POLICY}  - {id: no, match: {tool: pay.refund}, action: deny}\n`);
    expect(await ask(await opened(), { id: 1 })).toMatchObject({ decision: "block" });
    await usePolicy(POLICY);
    await passes({ id: 1 });
    expect(
      (await s.call("bob", "GET", "/v1/grants")).body.grants.find((one: { id: string }) => one.id === id),
    ).toMatchObject({ uses: 1 });
  });

  it("needs the policy to be as mild as its giver's authority by then", async () => {
    verifies("beyond.grant.stricter-policy");
    await given("bob", { max_uses: 100 });
    await passes({ id: 1 });
    const stricter = (terms: string) =>
      usePolicy(POLICY.replace("reason: a person looks at refunds", `approval: ${terms}`));
    await stricter("{quorum: 2}");
    await waits({ id: 2 });
    await stricter("{groups: [ops]}");
    await waits({ id: 3 });
    await stricter("{groups: []}");
    await passes({ id: 4 });
  });

  it("covers irreversible calls only for an admin who allowed them, and only while an admin", async () => {
    verifies("beyond.grant.irreversible");
    const wire = { match: { tool: "pay.wire", actor: "agent" }, rules: ["wires"], max_uses: 100 };
    await given("admin", wire);
    await given("bob", wire);
    await waits({ id: 1 }, "pay.wire");
    await given("admin", { ...wire, irreversible: true });
    await passes({ id: 1 }, "pay.wire");
    await useKeys((entry) => (entry["name"] === "admin" ? { ...entry, role: "approver" } : entry)).catch(
      () => {},
    );
    await waits({ id: 2 }, "pay.wire");
  });

  it("never covers the runs of its giver", async () => {
    verifies("beyond.grant.own-run");
    await given("both", { match: { tool: "pay.refund", actor: "{agent,both}" }, max_uses: 100 });
    await waits({ id: 1 }, "pay.refund", "both");
    await passes({ id: 1 });
  });
});

describe("at the moment of use", () => {
  it("the giver's key, role and groups count as they are", async () => {
    verifies("beyond.grant.moment-of-use");
    await given("ann", { match: { tool: "pay.tip", actor: "agent" }, rules: ["tips"], max_uses: 100 });
    await passes({ id: 1 }, "pay.tip");
    for (const change of [
      { groups: [] },
      { role: "auditor" },
      { disabled: true },
      { expires_at: expiry(-1) },
    ]) {
      const path = join(s.folder, "keys.json");
      const before = readFileSync(path, "utf8");
      await useKeys((entry) => (entry["name"] === "ann" ? { ...entry, ...change } : entry));
      await waits({ id: 2 }, "pay.tip");
      writeFileSync(path, before);
      await s.call("admin", "POST", "/v1/reload", {});
      await passes({ id: 3 }, "pay.tip");
    }
    await useKeys((entry) => (entry["name"] === "ann" ? null : entry));
    await waits({ id: 4 }, "pay.tip");
  });

  it("delegated authority counts while it lasts, and under four eyes not that of the requester", async () => {
    verifies("beyond.grant.moment-of-use", "beyond.grant.four-eyes");
    const lend = async (from: string, to: string) =>
      (await s.call(from, "POST", "/v1/delegations", { to, expires_at: expiry(), reason: "away" })).body.id;
    const loan = await lend("ann", "bob");
    await given("bob", { match: { tool: "pay.tip", actor: "agent" }, rules: ["tips"], max_uses: 100 });
    await passes({ id: 1 }, "pay.tip");
    await s.call("ann", "DELETE", `/v1/delegations/${loan}`);
    await waits({ id: 2 }, "pay.tip");

    await useKeys((entry) => (entry["name"] === "both" ? { ...entry, groups: ["ops"] } : entry));
    await lend("both", "bob");
    await given("bob", { match: { tool: "pay.tip", actor: "b*" }, rules: ["tips"], max_uses: 100 });
    expect(await ask(await opened("both"), { id: 1 }, "pay.tip", "both")).toMatchObject({
      decision: "allow",
    });
    await usePolicy(`${POLICY}approvals: {four_eyes: true}\n`);
    await waits({ id: 2 }, "pay.tip", "both");
  });

  it("an expired grant covers nothing", async () => {
    verifies("beyond.grant.revoke");
    await given("bob", { max_uses: 100 });
    await passes({ id: 1 });
    s.env.setNow(s.env.now() + DAY);
    await waits({ id: 2 });
  });
});
