/** Quotas: a caller above one gets a time to come back, and leaves no trace on the ledger. */
import { beforeAll, describe, expect, it } from "vitest";
import { mountConsole } from "../../src/console/mount.ts";
import type { UnitOfWork } from "../../src/govern/port/store.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const POLICY =
  "version: 1\nrules:\n  - {id: m, match: {tool: mail.send}, action: require_approval, reason: a}\n";
const QUOTAS = `
quotas:
  - {match: {tenant: "acm*", actor: "*-fast"}, requests_per_second: 2, burst: 3}
  - {match: {tenant: acme}, open_approvals: 2}
  - {match: {actor: "acme-{asks,waits}"}, waiting: 1}
  - {match: {actor: local-console}, requests_per_second: 1, burst: 2}
`;
const agent = (name: string, tenant: string) => ({ name, tenant, role: "agent" });

let s: TestServer;
const store = new MemoryStore();
/** The shares that units were put under. */
const shares: (string | undefined)[] = [];

beforeAll(async () => {
  const transact = store.transact.bind(store);
  store.transact = <T>(unit: UnitOfWork<T>) => {
    shares.push(unit.share);
    return transact(unit);
  };
  s = await testServer({
    policy: POLICY,
    store,
    config: `${QUOTAS}console: open\n`,
    keys: [
      agent("one-fast", "acme"),
      agent("two-fast", "acme"),
      agent("far-fast", "globex"),
      agent("acme-asks", "acme"),
      agent("acme-waits", "acme"),
      agent("globex-asks", "globex"),
    ],
  });
  mountConsole(s.http, { app: s.app, auth: s.app.auth });
});

const recorded = async () => (await store.head()).records;

async function ask(key: string, n: number) {
  const run_id = `${key}-run`;
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["mail.send"] });
  return s.call(key, "POST", `/v1/runs/${run_id}/intents`, { tool: "mail.send", args: { n }, reason: "r" });
}

const requestIn = ({ body }: { body: { reasons: string[] } }) =>
  /apr_[0-9a-f-]{36}/.exec(body.reasons.join())![0];

describe("quotas", () => {
  it("answers 429 past the rate and the burst, for each actor that the globs fit", async () => {
    verifies("beyond.quotas.requests", "beyond.quotas.match");
    const open = (key: string, run_id: string) =>
      s.call(key, "POST", "/v1/runs", { run_id, permissions: [] });
    for (const n of [1, 2, 3]) expect((await open("one-fast", `f${n}`)).status).toBe(201);
    const before = await recorded();
    const refused = await open("one-fast", "f4");
    expect([refused.status, refused.headers["retry-after"], refused.body]).toEqual([
      429,
      "1",
      { error: "over the quota of 2 requests per second; try again in 1 s" },
    ]);
    expect(await store.get("runs", "f4")).toBeUndefined();
    expect(await recorded()).toBe(before);
    expect((await open("two-fast", "f4")).status).toBe(201);
    for (const n of [1, 2, 3, 4, 5]) expect((await open("far-fast", `g${n}`)).status).toBe(201);
    await s.env.advance(1_000);
    for (const n of [5, 6]) expect((await open("one-fast", `f${n}`)).status).toBe(201);
    expect((await open("one-fast", "f7")).status).toBe(429);
  });

  it("opens no more requests than the tenant may have, and more once one has ended", async () => {
    verifies("beyond.quotas.open-approvals");
    const first = requestIn(await ask("acme-asks", 1));
    const second = requestIn(await ask("acme-waits", 2));
    const before = await recorded();
    const [refused, ...others] = await Promise.all([3, 4, 5].map((n) => ask("acme-asks", n)));
    expect([refused!.status, refused!.headers["retry-after"], Object.keys(refused!.body)]).toEqual([
      429,
      "10",
      ["error"],
    ]);
    expect(others.map(({ status }) => status)).toEqual([429, 429]);
    expect(await recorded()).toBe(before);
    // A request that waits already is not another one, and another tenant has its own.
    expect(requestIn(await ask("acme-asks", 1))).toBe(first);
    expect((await ask("globex-asks", 3)).status).toBe(200);
    await s.call("approver", "POST", `/v1/approvals/${second}/deny`, {});
    expect((await ask("acme-asks", 3)).status).toBe(200);
    expect((await ask("acme-asks", 4)).status).toBe(429);
  });

  it("counts a plan that waits as one of them", async () => {
    verifies("beyond.plan.quota");
    const propose = (n: number) =>
      s.call("acme-asks", "POST", "/v1/runs/acme-asks-run/plans", {
        reason: "r",
        calls: [{ tool: "mail.send", args: { n } }],
      });
    expect((await propose(6)).status).toBe(429);
    const { approvals } = (await s.call("approver", "GET", "/v1/approvals?status=pending")).body;
    for (const { id, actor } of approvals)
      if (actor.startsWith("acme")) await s.call("approver", "POST", `/v1/approvals/${id}/deny`, {});
    const plans = [await propose(6), await propose(7)];
    expect(plans.map(({ status }) => status)).toEqual([201, 201]);
    expect((await ask("acme-asks", 8)).status).toBe(429);
    for (const { body } of plans) await s.call("approver", "POST", `/v1/plans/${body.id}/deny`, {});
    expect((await ask("acme-asks", 1)).status).toBe(200);
  });

  it("lets no more wait than may", async () => {
    verifies("beyond.quotas.waiting");
    const id = requestIn(await ask("acme-asks", 1));
    const wait = () => s.call("acme-asks", "GET", `/v1/approvals/${id}?wait=60`);
    const answers = [wait(), wait()];
    const refused = await Promise.race(answers);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, "1"]);
    expect((await s.call("acme-asks", "GET", `/v1/approvals/${id}`)).status).toBe(200);
    await s.call("approver", "POST", `/v1/approvals/${id}/approve`, {});
    const settled = (await Promise.all(answers)).map(({ status }) => status).sort();
    expect(settled).toEqual([200, 429]);
    expect((await wait()).status).toBe(200);
  });

  it("counts the pages of the console", async () => {
    verifies("beyond.quotas.console");
    const page = () => s.http.inject({ url: "/console/runs", headers: { host: "localhost" } });
    expect((await page()).statusCode).toBe(200);
    expect((await page()).statusCode).toBe(200);
    const refused = await page();
    expect([refused.statusCode, refused.headers["retry-after"]]).toEqual([429, "1"]);
    expect(refused.body).toContain("Too many requests");
  });

  it("puts what a tenant's agents ask for under that tenant's share of a batch", async () => {
    verifies("beyond.quotas.share");
    await s.call("far-fast", "POST", "/v1/runs", { run_id: "shares", permissions: ["crm.read"] });
    const decided = { tool: "crm.get", args: {}, reason: "r" };
    shares.length = 0;
    await s.call("far-fast", "POST", "/v1/runs/shares/intents", decided, { "idempotency-key": "k" });
    await s.call("far-fast", "POST", "/v1/runs/shares/steps/0/outcome", { status: "succeeded" });
    await until(() => shares.filter((share) => share === "globex").length >= 2, "both units");
  });
});
