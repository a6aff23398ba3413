/** Credentials that are bound to a tenant: what belongs to another tenant is not there, whichever way it is asked for. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import type { HttpRow } from "../../src/http/api/http-row.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { resumeContainments } from "../../src/operations/contain/job.ts";
import { localIssuer } from "../console/support/issuer.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: a person must see it}
budgets:
  - {id: calls, match: {tool: crm.get}, path: $args.n, per: actor, max: 1, window: 1d}
retention: {default_days: 30}
`;
const ROLES = ["auditor", "approver", "operator", "admin"];
const bound = (tenant: string, role: string) => ({
  name: `${tenant}-${role}`,
  role,
  tenant,
  tenant_only: true,
});

let s: TestServer;
/** The pending request of each tenant. */
const requests: Record<string, string> = {};

beforeAll(async () => {
  const key = join(tempDir("key"), "s.key");
  writeFileSync(key, newKeyPair().private_pem, { mode: 0o600 });
  s = await testServer({
    policy: POLICY,
    config: `capture: {enabled: true}\nsigning_key: ${key}\n`,
    keys: [
      ...["acme", "globex"].flatMap((tenant) => ["agent", ...ROLES].map((role) => bound(tenant, role))),
      { name: "acme-roamer", role: "agent", tenant: "acme" },
      { name: "visitor", role: "agent", tenant: "acme" },
    ],
  });
  for (const tenant of ["acme", "globex"]) {
    const agent = `${tenant}-agent`;
    const run_id = `${tenant}-run`;
    await s.call(agent, "POST", "/v1/runs", {
      run_id,
      permissions: ["crm.read", "mail.send"],
      reason: tenant,
    });
    const intents = `/v1/runs/${run_id}/intents`;
    await s.call(agent, "POST", intents, { tool: "crm.get", args: { n: 1 }, reason: `${tenant} reads` });
    const asked = await s.call(agent, "POST", intents, {
      tool: "mail.send",
      args: {},
      reason: `${tenant} writes`,
    });
    requests[tenant] = /apr_[0-9a-f-]{36}/.exec(asked.body.reasons.join())![0];
    await s.call(`${tenant}-admin`, "POST", "/v1/halt", { tool: "none.*", reason: `${tenant} halts` });
    await s.call(`${tenant}-admin`, "POST", "/v1/holds", { actor: agent, reason: `${tenant} holds this` });
    const until = new Date(s.env.now() + 3_600_000).toISOString();
    await s.call(`${tenant}-approver`, "POST", "/v1/delegations", {
      to: `${tenant}-auditor`,
      expires_at: until,
      reason: `${tenant} lends`,
    });
  }
});

const pathOf = ({ path }: HttpRow, tenant: string): string =>
  path
    .replace("/runs/{id}", `/runs/${tenant}-run`)
    .replace("/approvals/{id}", `/approvals/${requests[tenant]}`)
    .replace("/{id}", "/x_00000000-0000-4000-8000-000000000000")
    .replace("{n}", "0")
    .replace("{index}", "5")
    .replace("{tool}", "crm.get")
    .replace("{version}", "1");

const bodyOf = ({ path }: HttpRow) => (path.endsWith("/break-glass") ? { reason: "x".repeat(20) } : {});

describe("no answer holds a byte of another tenant", () => {
  const reads = HTTP_TABLE.filter(({ method }) => method === "GET");
  it.each(reads.map((row) => [`${row.method} ${row.path}`, row] as const))("%s", async (_, row) => {
    verifies("beyond.tenants.matrix");
    for (const role of ["agent", ...ROLES]) {
      const { text } = await s.call(`acme-${role}`, "GET", pathOf(row, "acme"));
      expect([role, text]).toEqual([role, expect.not.stringContaining("globex")]);
    }
  });

  const named = HTTP_TABLE.filter(({ path }) => /\/(runs|approvals)\/\{id\}/.test(path));
  it.each(named.map((row) => [`${row.method} ${row.path}`, row] as const))(
    "%s elsewhere is a 404",
    async (_, row) => {
      verifies("beyond.tenants.runs", "beyond.tenants.approvals");
      const path = pathOf(row, "globex");
      const before = (await s.call("admin", "GET", "/v1/status")).body.records;
      for (const role of ROLES) {
        const { status } = await s.call(`acme-${role}`, row.method, path, row.body ? bodyOf(row) : undefined);
        expect([role, status === 404 || status === 403]).toEqual([role, true]);
        if (role === "admin") expect(status).toBe(404);
      }
      expect((await s.call("admin", "GET", "/v1/status")).body.records).toBe(before);
    },
  );
});

describe("what concerns the whole service", () => {
  it("is refused, and the evidence key is not", async () => {
    verifies("beyond.tenants.whole-service", "beyond.tenants.evidence-key");
    const whole: [string, string][] = [
      ["POST", "/v1/reload"],
      ["POST", "/v1/anchor"],
      ["POST", "/v1/retention/apply"],
      ["POST", "/v1/registry/policy"],
      ["POST", "/v1/registry/manifests"],
      ["GET", "/v1/ledger/verify"],
      ["GET", "/v1/ledger/bundle"],
      ["GET", "/metrics"],
    ];
    for (const [method, path] of whole) {
      const { status, body } = await s.call("acme-admin", method, path, method === "POST" ? {} : undefined);
      expect([path, status]).toEqual([path, 403]);
      expect(body.error).toContain("bound to the tenant acme");
    }
    expect((await s.call("acme-auditor", "GET", "/v1/evidence/key")).status).toBe(200);
  });

  it("counts the tenant's own things in the status", async () => {
    verifies("beyond.tenants.status");
    const own = (await s.call("acme-auditor", "GET", "/v1/status")).body;
    const all = (await s.call("auditor", "GET", "/v1/status")).body;
    expect(own).toMatchObject({ runs: 1, approvals: { pending: 1 } });
    expect(own.halts).toHaveLength(1);
    expect(all).toMatchObject({ runs: 2, approvals: { pending: 2 } });
    expect(own.records).toBe((await s.call("acme-auditor", "GET", "/v1/search/records")).body.records.length);
    expect(own.records).toBeLessThan(all.records);
  });
});

describe("lists", () => {
  it("hold the tenant's own, and all of it", async () => {
    verifies("beyond.tenants.records", "beyond.tenants.reports");
    const get = async (path: string) => (await s.call("acme-admin", "GET", path)).body;
    expect((await get("/v1/runs")).runs).toEqual(["acme-run"]);
    expect((await get("/v1/search/runs?tenant=globex")).runs).toEqual([]);
    expect((await get("/v1/search/runs")).runs).toHaveLength(1);
    expect((await get("/v1/approvals")).approvals.map((one: { id: string }) => one.id)).toEqual([
      requests["acme"],
    ]);
    for (const { tenant } of (await get("/v1/search/records")).records) expect(tenant).toBe("acme");
    expect((await get("/v1/search/records?run_id=globex-run")).records).toEqual([]);
    expect((await get("/v1/halts")).halts).toHaveLength(1);
    expect((await get("/v1/holds")).holds).toHaveLength(1);
    expect((await get("/v1/delegations")).delegations).toHaveLength(1);
    const report = await get("/v1/report?since=1d");
    expect(report.by_actor).toEqual([expect.objectContaining({ name: "acme-agent" })]);
    const simulated = (await s.call("acme-operator", "POST", "/v1/simulate", {})).body;
    expect(simulated.summary.runs).toBe(1);
  });

  it("continue from a cursor within the tenant", async () => {
    for (let i = 0; i < 3; i++)
      for (const tenant of ["acme", "globex"])
        await s.call(`${tenant}-agent`, "POST", "/v1/runs", { run_id: `${tenant}-${i}`, permissions: [] });
    const first = (await s.call("acme-auditor", "GET", "/v1/runs?limit=2")).body;
    const next = (await s.call("acme-auditor", "GET", `/v1/runs?limit=2&cursor=${first.next_cursor}`)).body;
    expect([...first.runs, ...next.runs]).toEqual(["acme-0", "acme-1", "acme-2", "acme-run"]);
    expect(next.next_cursor).toBeUndefined();
  });
});

describe("a plan", () => {
  it("of another tenant is decided by nobody there, and not disclosed", async () => {
    verifies("beyond.plan.tenant");
    const { id } = (
      await s.call("globex-agent", "POST", "/v1/runs/globex-run/plans", {
        reason: "r",
        calls: [{ tool: "mail.send", args: { n: 9 } }],
      })
    ).body;
    const tried = async (key: string, verb: string) => {
      const { status, body } = await s.call(key, "POST", `/v1/plans/${id}/${verb}`, {});
      return [status, body];
    };
    for (const key of ["acme-approver", "acme-admin"])
      for (const verb of ["approve", "deny"])
        expect(await tried(key, verb)).toEqual([404, { error: `unknown plan ${id}` }]);
    expect((await tried("globex-approver", "deny"))[0]).toBe(200);
    expect(await tried("acme-admin", "deny")).toEqual([404, { error: `unknown plan ${id}` }]);
  });
});

describe("a bound admin", () => {
  it("halts and lifts within its tenant", async () => {
    verifies("beyond.tenants.halts");
    const made = await s.call("acme-admin", "POST", "/v1/halt", { reason: "stop" });
    expect(made.body.scope.tenant).toBe("acme");
    expect((await s.call("acme-admin", "POST", "/v1/halt", { tenant: "globex", reason: "x" })).status).toBe(
      403,
    );
    const ask = { tool: "crm.get", args: { n: 0 }, reason: "r" };
    const acme = await s.call("acme-agent", "POST", "/v1/runs/acme-run/intents", ask);
    const globex = await s.call("globex-agent", "POST", "/v1/runs/globex-run/intents", ask);
    expect([acme.body.decision, globex.body.decision]).toEqual(["block", "allow"]);
    const other = (await s.call("globex-admin", "GET", "/v1/halts")).body.halts[0].id;
    expect((await s.call("acme-admin", "POST", "/v1/resume", { id: other })).status).toBe(404);
    const { lifted } = (await s.call("acme-admin", "POST", "/v1/resume", {})).body;
    expect(lifted).not.toContain(other);
    expect((await s.call("globex-admin", "GET", "/v1/halts")).body.halts).toHaveLength(1);
  });

  it("holds within its tenant", async () => {
    verifies("beyond.tenants.holds");
    const [hold] = (await s.call("globex-admin", "GET", "/v1/holds")).body.holds;
    expect(hold.scope.tenant).toBe("globex");
    expect((await s.call("acme-admin", "DELETE", `/v1/holds/${hold.id}`)).status).toBe(404);
    const reason = "for the court of acme";
    expect((await s.call("acme-admin", "POST", "/v1/holds", { tenant: "globex", reason })).status).toBe(403);
    const hold_run = (run_id: string) => s.call("acme-admin", "POST", "/v1/holds", { run_id, reason });
    for (const run_id of ["globex-run", "no-run"])
      expect(await hold_run(run_id)).toMatchObject({ status: 404, body: { error: `unknown run ${run_id}` } });
    expect((await hold_run("acme-run")).status).toBe(201);
  });

  it("sees and makes bound keys of its tenant only", async () => {
    verifies("beyond.tenants.keys", "beyond.tenants.key-bound");
    const { keys } = (await s.call("acme-admin", "GET", "/v1/keys")).body;
    expect(new Set(keys.map((key: { tenant: string }) => key.tenant))).toEqual(new Set(["acme"]));
    const made = await s.call("acme-admin", "POST", "/v1/keys", { name: "acme-new", role: "auditor" });
    expect(made.body).toMatchObject({ tenant: "acme", tenant_only: true });
    const all = (await s.call("admin", "GET", "/v1/keys")).body.keys;
    const of = (name: string) => all.find((key: { name: string }) => key.name === name);
    for (const name of ["admin", "globex-admin"]) {
      const headers = { "if-match": `"${of(name).fingerprint}"` };
      const path = `/v1/keys/${of(name).index}`;
      expect((await s.call("acme-admin", "PATCH", path, { disabled: true }, headers)).status).toBe(404);
      expect((await s.call("acme-admin", "DELETE", path, undefined, headers)).status).toBe(404);
    }
    const own = made.body;
    expect(own.index).not.toBe(of("acme-new").index);
    const listed = (await s.call("acme-admin", "GET", "/v1/keys")).body.keys;
    expect(listed.at(-1)).toMatchObject({ name: "acme-new", index: own.index });
    expect((await s.call("acme-admin", "PATCH", `/v1/keys/${of("acme-new").index}`, {})).status).toBe(404);
    const headers = { "if-match": `"${own.fingerprint}"` };
    for (const wider of [{ tenant_only: false }, { tenant: "globex" }, { tenant: null }])
      expect((await s.call("acme-admin", "PATCH", `/v1/keys/${own.index}`, wider, headers)).status).toBe(403);
    const stale = { "if-match": `"${of("acme-admin").fingerprint}"` };
    const path = `/v1/keys/${own.index}`;
    expect((await s.call("acme-admin", "DELETE", path, undefined, stale)).status).toBe(409);
    expect((await s.call("acme-admin", "PATCH", path, { disabled: true })).body).toMatchObject({
      ...{ name: "acme-new", index: own.index, disabled: true },
    });
    expect((await s.call("acme-admin", "DELETE", path)).body).toMatchObject({ name: "acme-new" });
    expect((await s.call("acme-admin", "DELETE", path)).status).toBe(404);
    for (const wrong of [{ tenant_only: true }, { tenant_only: true, tenant: "ac*" }])
      expect(
        (await s.call("admin", "POST", "/v1/keys", { name: "x", role: "auditor", ...wrong })).status,
      ).toBe(400);
  });

  it("is not the admin that must stay", async () => {
    const admin = (await s.call("admin", "GET", "/v1/keys")).body.keys.find(
      (key: { name: string }) => key.name === "admin",
    );
    const headers = { "if-match": `"${admin.fingerprint}"` };
    expect((await s.call("admin", "DELETE", `/v1/keys/${admin.index}`, undefined, headers)).status).toBe(409);
  });
});

it("a run's bundle shows no record of another", async () => {
  verifies("beyond.tenants.bundle");
  const { status, text } = await s.call("acme-auditor", "GET", "/v1/runs/acme-run/bundle");
  expect(status).toBe(200);
  expect(text).not.toContain("globex");
  expect(JSON.parse(text)).toMatchObject({ kind: "run", run_id: "acme-run" });
});

it("a bound delegator delegates what holds within its tenant", async () => {
  const until = new Date(s.env.now() + 3_600_000).toISOString();
  await s.call("acme-approver", "POST", "/v1/delegations", {
    to: "auditor",
    expires_at: until,
    reason: "away",
  });
  expect((await s.call("auditor", "POST", `/v1/approvals/${requests["globex"]}/approve`, {})).status).toBe(
    403,
  );
  expect((await s.call("auditor", "POST", `/v1/approvals/${requests["acme"]}/approve`, {})).status).toBe(200);
});

describe("a token", () => {
  it("is bound by a group that is mapped to a tenant", async () => {
    verifies("beyond.tenants.group-bound");
    const issuer = await localIssuer({ now: () => Date.parse("2026-06-15T12:00:00Z") } as never);
    try {
      const t = await testServer({
        keys: ["acme", "globex"].map((tenant) => ({
          ...{ name: `${tenant}-key`, role: "approver", tenant, tenant_only: true },
        })),
        config: `oidc: {issuer: "${issuer.url}", audience: svc, role_map: {bots: agent, watchers: auditor, deciders: approver}, tenant_map: {at-acme: acme, at-globex: globex}}\n`,
      });
      const bot = await issuer.token({ sub: "bot", groups: ["bots", "at-acme"] });
      await t.call(bot, "POST", "/v1/runs", { run_id: "r", permissions: [] });
      expect((await t.call(bot, "GET", "/v1/runs/r")).body.tenant).toBe("acme");
      const seen = async (...groups: string[]) =>
        (
          await t.call(
            await issuer.token({ sub: "ann", groups: ["watchers", ...groups] }),
            "GET",
            "/v1/runs/r",
          )
        ).status;
      expect(await seen("at-acme")).toBe(200);
      expect(await seen("at-globex")).toBe(404);
      expect(await seen()).toBe(200);
      expect(await seen("at-acme", "at-globex")).toBe(403);
      // A name means the key that has it, and otherwise a token. Neither discloses another tenant's key.
      const lender = await issuer.token({ sub: "lea", groups: ["deciders", "at-acme"] });
      const expires_at = new Date(t.env.now() + 3_600_000).toISOString();
      const lentTo = async (to: string) =>
        (await t.call(lender, "POST", "/v1/delegations", { to, expires_at, reason: "away for a while" })).body
          .to_principal.kind;
      expect([await lentTo("acme-key"), await lentTo("globex-key"), await lentTo("no-key")]).toEqual([
        ...["key", "oidc", "oidc"],
      ]);
    } finally {
      await issuer.close();
    }
  });
});

it("grants and delegations stay within the tenant of who gives them", async () => {
  const expires_at = new Date(s.env.now() + 3_600_000).toISOString();
  const grant = {
    match: { tool: "mail.send", actor: "globex-agent" },
    rules: ["mails"],
    max_uses: 1,
    irreversible: true,
    expires_at,
    reason: "r",
  };
  const made = await s.call("globex-admin", "POST", "/v1/grants", grant);
  expect(made.body.match.tenant).toBe("globex");
  const other = { ...grant, match: { ...grant.match, tenant: "acme" } };
  for (const path of ["/v1/grants", "/v1/grants/preview"])
    expect(await s.call("globex-admin", "POST", path, other)).toMatchObject({
      status: 400,
      body: {
        error: expect.stringContaining("bound to the tenant globex, and cannot grant for another tenant"),
      },
    });
  expect((await s.call("acme-admin", "GET", "/v1/grants")).body.grants).toEqual([]);
  expect((await s.call("acme-admin", "DELETE", `/v1/grants/${made.body.id}`)).status).toBe(404);
  const [lent] = (await s.call("globex-admin", "GET", "/v1/delegations")).body.delegations;
  expect((await s.call("acme-admin", "DELETE", `/v1/delegations/${lent.id}`)).status).toBe(404);
});

describe("a containment by a bound admin", () => {
  const ended = async (job: string) => {
    await until(
      async () => (await s.app.core.store.get("containments", job))?.state === "done",
      "the containment",
    );
    return (await s.call("acme-auditor", "GET", `/v1/contain/${job}`)).body.job.report;
  };
  const contain = (key: string, body: object) =>
    s.call(key, "POST", "/v1/contain", { reason: "it went astray", ...body });
  const roamer = async () =>
    (await s.call("admin", "GET", "/v1/keys")).body.keys.find(
      ({ name }: { name: string }) => name === "acme-roamer",
    );

  it("does not see or disable a key that is not bound to its tenant, also when it resumes", async () => {
    verifies("beyond.tenants.contain");
    const dry = await contain("acme-admin", { actor: "acme-*" });
    expect(dry.status).toBe(200);
    expect(dry.text).not.toContain("acme-roamer");
    expect(dry.text).not.toContain((await roamer()).fingerprint);
    expect(dry.body.keys.disabled).toEqual([expect.objectContaining({ name: "acme-agent" })]);
    await s.call("acme-roamer", "POST", "/v1/runs", { run_id: "roamed", permissions: [] });
    const begun = await contain("acme-admin", { actor: "acme-roamer", confirm: true });
    const { id } = begun.body.job;
    const none = { disabled: [], left: [], note: null };
    expect(await ended(id)).toMatchObject({ actors: ["acme-roamer"], keys: none });
    const { store } = s.app.core;
    const job = (await store.get("containments", id))!;
    const abandoned = { ...job, state: "running" as const, keys: null, report: null };
    await store.transact({ run: (tx) => tx.put("containments", id, abandoned) });
    expect((await contain("admin", { actor: "acme-roamer", tenant: "acme", confirm: true })).status).toBe(
      409,
    );
    await resumeContainments(s.app, s.app.today);
    expect((await ended(id)).keys).toEqual(none);
    expect((await roamer()).disabled).toBe(false);
  });

  it("is not shown those that an admin of the whole service reached", async () => {
    verifies("beyond.tenants.contain");
    const whole = await contain("admin", { actor: "acme-roamer", tenant: "acme", confirm: true });
    const { keys } = await ended(whole.body.job.id);
    expect(keys).toMatchObject({ disabled: [], left: [] });
    expect((await roamer()).disabled).toBe(true);
    const { body } = await s.call("auditor", "GET", `/v1/contain/${whole.body.job.id}`);
    expect(body.job.report.keys.disabled).toEqual([expect.objectContaining({ name: "acme-roamer" })]);
  });
});

it("learns only that a hold beyond its tenant exists, and the result of another tenant's drill", async () => {
  verifies("beyond.tenants.parts");
  const run = { run_id: "acme-held", permissions: ["crm.read"], reason: "held" };
  await s.call("visitor", "POST", "/v1/runs", run);
  const wide = (await s.call("admin", "POST", "/v1/holds", { actor: "visitor", reason: "the court asks" }))
    .body;
  const planned = async (key: string) => {
    const { runs } = (await s.call(key, "GET", "/v1/retention/plan?days=1")).body;
    return runs.find(({ run_id }: { run_id: string }) => run_id === "acme-held");
  };
  expect(await planned("auditor")).toMatchObject({ hold_id: wide.id, decision: "HELD (the court asks)" });
  const decision = "HELD (by a hold that is not this tenant's)";
  expect(await planned("acme-auditor")).toMatchObject({ hold_id: null, decision });

  const drill = { manifest_hash: "m", at_ms: 1, passed: true, problem: null };
  await s.app.core.store.transact({
    run(tx) {
      for (const tenant of ["acme", "globex"])
        tx.put("drills", tenant, {
          ...drill,
          tool: tenant,
          run_id: `${tenant}-run`,
          by: `${tenant}-operator`,
        });
    },
  });
  const { drills } = (await s.call("acme-auditor", "GET", "/v1/drills")).body;
  expect(drills).toContainEqual({ ...drill, tool: "acme", run_id: "acme-run", by: "acme-operator" });
  expect(drills).toContainEqual({ ...drill, tool: "globex", run_id: null, by: null });
});
