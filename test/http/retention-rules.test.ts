/** How long runs are kept and what deletion takes: every match field, every hold scope, and nothing on its own. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { startReceiver } from "../golden/notify/support/receivers.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const DAY = 86_400_000;
const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: crm.pii, effect: read, permission: p, risk: {data_class: pii}}
- {tool: mail.send, effect: irreversible, permission: p}
`;
const KEYS = [
  { name: "acme-bot", role: "agent", tenant: "acme" },
  { name: "acme-pii", role: "agent", tenant: "acme" },
];
const rules = (list: string) =>
  `version: 1\nretention: {default_days: 10, rules: [${list}]}\nrules: [{id: ask, match: {tool: mail.send}, action: require_approval, reason: ask}]\n`;

async function run(s: TestServer, key: string, tool = "crm.get"): Promise<string> {
  const { run_id } = (await s.call(key, "POST", "/v1/runs", { permissions: ["p"] })).body;
  await s.call(key, "POST", `/v1/runs/${run_id}/intents`, {
    tool,
    args: { to: "canary-value" },
    reason: "r",
  });
  return run_id;
}
const plan = async (
  s: TestServer,
  query = "",
): Promise<Record<string, { keep_days: number; decision: string }>> => {
  const { runs } = (await s.call("auditor", "GET", `/v1/retention/plan${query}`)).body;
  return Object.fromEntries(runs.map((one: { run_id: string }) => [one.run_id, one]));
};
const apply = async (s: TestServer, body: object = {}) =>
  (await s.call("admin", "POST", "/v1/retention/apply", body)).body;
const hold = (s: TestServer, body: object) => s.call("admin", "POST", "/v1/holds", body);

describe("a rule", () => {
  it("matches by tool, tenant, environment and data class, and all that it names must hold", async () => {
    verifies(
      "ops.retention.match-tool",
      "ops.retention.match-tenant",
      "ops.retention.match-environment",
      "ops.retention.match-data-class",
      "ops.retention.match-all",
      "ops.retention.longest-wins",
      "ops.retention-route.plan",
    );
    const keep = async (list: string, environment = "prod") => {
      const s = await testServer({
        manifests: MANIFESTS,
        keys: KEYS,
        policy: rules(list),
        config: `environment: ${environment}\n`,
      });
      const ids = [await run(s, "agent"), await run(s, "acme-bot"), await run(s, "acme-pii", "crm.pii")];
      const planned = await plan(s);
      expect((await s.call("agent", "GET", "/v1/retention/plan")).status).toBe(403);
      return ids.map((id) => planned[id]!.keep_days);
    };
    expect(await keep("")).toEqual([10, 10, 10]);
    expect(await keep('{match: {tool: "*.pii"}, days: 40}')).toEqual([10, 10, 40]);
    expect(await keep("{match: {tenant: ac*}, days: 40}")).toEqual([10, 40, 40]);
    expect(await keep("{match: {environment: prod}, days: 40}")).toEqual([40, 40, 40]);
    expect(await keep("{match: {environment: prod}, days: 40}", "staging")).toEqual([10, 10, 10]);
    expect(await keep("{match: {data_class: pii}, days: 40}")).toEqual([10, 10, 40]);
    expect(
      await keep("{match: {tenant: acme, data_class: pii, environment: prod, tool: crm.pii}, days: 40}"),
    ).toEqual([10, 10, 40]);
    expect(await keep("{match: {tenant: other, data_class: pii}, days: 40}")).toEqual([10, 10, 10]);
    expect(
      await keep(
        "{match: {tenant: acme}, days: 20}, {match: {data_class: pii}, days: 40}, {match: {tool: crm.*}, days: 5}",
      ),
    ).toEqual([10, 20, 40]);
  });

  it("and the default give way to the days of one call", async () => {
    verifies("contract.readings.retention-days", "ops.retention-plan.days");
    const s = await testServer({
      manifests: MANIFESTS,
      keys: KEYS,
      policy: rules("{match: {tenant: acme}, days: 40}"),
    });
    const ids = [await run(s, "agent"), await run(s, "acme-bot")];
    await s.env.advance(5 * DAY);
    const planned = await plan(s, "?days=5");
    expect(ids.map((id) => [planned[id]!.keep_days, planned[id]!.decision])).toEqual([
      [5, "due"],
      [5, "due"],
    ]);
    expect((await plan(s))[ids[1]!]).toMatchObject({ keep_days: 40, decision: "keep" });
    expect((await apply(s, { days: 5 })).deleted.sort()).toEqual([...ids].sort());
    for (const days of [0, -1, 1.5, "5"])
      expect((await s.call("admin", "POST", "/v1/retention/apply", { days })).status).toBe(400);
  });
});

describe("a legal hold", () => {
  it("names a run, a tenant, an actor or a tool, and covers what matches all of it", async () => {
    verifies(
      "ops.hold.scope-run",
      "ops.hold.scope-tenant",
      "ops.hold.all-fields",
      "ops.limit.hold-reason",
      "contract.event.holds-not-on-ledger",
      "ops.retention.hold-not-on-ledger",
    );
    const s = await testServer({ manifests: MANIFESTS, keys: KEYS, policy: rules("") });
    const [plain, acme, pii] = [
      await run(s, "agent"),
      await run(s, "acme-bot"),
      await run(s, "acme-pii", "crm.pii"),
    ];
    await s.env.advance(11 * DAY);
    const before = await s.app.core.store.head();
    const held = async () =>
      Object.entries(await plan(s))
        .flatMap(([id, { decision }]) => (decision.startsWith("HELD") ? [id] : []))
        .sort();
    const under = async (scope: object) => {
      const { status, body } = await hold(s, { ...scope, reason: "12345" });
      expect(status).toBe(201);
      expect(body).toMatchObject({ by: "admin", created_ms: s.env.now(), released_by: null });
      const covered = await held();
      await s.call("admin", "DELETE", `/v1/holds/${body.id}`);
      return covered;
    };
    expect(await under({ run_id: plain })).toEqual([plain]);
    expect(await under({ tenant: "acme" })).toEqual([acme, pii].sort());
    expect(await under({ actor: "acme-bot" })).toEqual([acme]);
    expect(await under({ tool: "crm.pii" })).toEqual([pii]);
    expect(await under({ tool: "crm.*" })).toEqual([]);
    expect(await under({ tenant: "acme", tool: "crm.get" })).toEqual([acme]);
    expect(await under({ tenant: "acme", actor: "agent" })).toEqual([]);
    expect(await held()).toEqual([]);
    expect((await hold(s, { run_id: plain, reason: "1234" })).status).toBe(400);
    expect(await s.app.core.store.head()).toEqual(before);
  });
});

describe("deletion", () => {
  it("takes the run's state, its salt and its requests, tells people, and happens only when asked for", async () => {
    verifies(
      "ops.retention.deletes-approvals",
      "ops.retention.purged-notification",
      "ops.retention.only-when-asked",
      "contract.values.salt-deleted",
    );
    const hook = await startReceiver();
    onTestFinished(hook.close);
    const s = await testServer({
      manifests: MANIFESTS,
      policy: rules(""),
      config: `notifications: {channels: [{name: ops, type: webhook, url: "${hook.url()}", events: [retention_purged]}]}\n`,
    });
    const id = await run(s, "agent", "mail.send");
    const { store } = s.app.core;
    const { salt } = (await store.get("runs", id))!;
    expect(await store.count("approvals")).toBe(1);
    await s.env.advance(400 * DAY);
    expect(await store.get("runs", id)).toBeDefined();
    expect((await apply(s)).deleted).toEqual([id]);
    for (const table of ["runs", "steps", "approvals", "approval_slots", "run_tools", "payloads"] as const) {
      expect([table, await store.count(table)]).toEqual([table, 0]);
    }
    expect((await store.records({ limit: 100 })).join("\n")).not.toContain(salt);
    await until(() => hook.received.length > 0, "the notification");
    expect(JSON.parse(hook.received[0]!.body)).toMatchObject({ event: "retention_purged", runs: [id] });
  });

  it("takes captured calls along, and a hold does not make them last", async () => {
    verifies(
      "ops.retention.deletes-captures",
      "ops.capture-state.purge-retention",
      "ops.retention.hold-not-for-captures",
    );
    const s = await testServer({
      manifests: MANIFESTS,
      policy: rules(""),
      config: "capture: {enabled: true, ttl: 90d}\n",
    });
    const id = await run(s, "agent");
    const { store } = s.app.core;
    await until(async () => (await store.count("captures")) > 0, "the captured call");
    const [row] = await store.list("captures", { owner: id, limit: 1 });
    const expires = (row!.doc as unknown as { expires_ms: number }).expires_ms;
    await hold(s, { run_id: id, reason: "lawsuit" });
    const [after] = await store.list("captures", { owner: id, limit: 1 });
    expect((after!.doc as unknown as { expires_ms: number }).expires_ms).toBe(expires);
    expect(expires).toBe(s.env.now() + 90 * DAY);
    await s.env.advance(11 * DAY);
    expect((await apply(s)).kept).toHaveLength(1);
    const { holds } = (await s.call("auditor", "GET", "/v1/holds")).body;
    await s.call("admin", "DELETE", `/v1/holds/${holds[0].id}`);
    expect((await apply(s)).deleted).toEqual([id]);
    expect(await store.count("captures")).toBe(0);
  });

  it("archives only below the configured root", async () => {
    verifies("contract.http.archive-root");
    const root = tempDir("root");
    const key = join(root, "sign.key");
    writeFileSync(key, newKeyPair().private_pem, { mode: 0o600 });
    mkdirSync(join(root, "in"));
    const s = await testServer({
      manifests: MANIFESTS,
      policy: rules(""),
      config: `signing_key: ${key}\narchive_root: ${join(root, "in")}\n`,
    });
    const id = await run(s, "agent");
    await s.env.advance(11 * DAY);
    for (const archive_dir of [root, tempDir("elsewhere"), join(root, "in", "..")]) {
      expect((await s.call("admin", "POST", "/v1/retention/apply", { archive_dir })).status).toBe(400);
    }
    const inside = join(root, "in", "2026");
    mkdirSync(inside);
    expect(await apply(s, { archive_dir: inside })).toMatchObject({
      deleted: [id],
      archived: [join(inside, `${id}.json`)],
    });
  });
});

let off: TestServer;
beforeAll(async () => {
  off = await testServer();
});
describe("without a retention section", () => {
  it("nothing is ever deleted", async () => {
    verifies("ops.retention.off-without-section");
    const opened = await off.call("agent", "POST", "/v1/runs", { run_id: "kept", permissions: [] });
    expect(opened.status).toBe(201);
    await off.env.advance(4_000 * DAY);
    expect((await off.call("admin", "POST", "/v1/retention/apply", { days: 1 })).status).toBe(404);
    expect((await off.call("agent", "GET", "/v1/runs/kept")).status).toBe(200);
  });
});
