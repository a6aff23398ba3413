/** Containing an agent over HTTP: the forecast, the job, its order on the ledger, and what it leaves. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyBundle } from "../../src/evidence/bundles/verify-bundle.ts";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
- tool: thing.lease
  effect: compensable
  permission: p
  compensation: {tool: thing.unlease, args: {}, requires_approval: true}
- {tool: thing.send, effect: irreversible, permission: p}
- {tool: thing.pay, effect: compensable, permission: p, compensation: {tool: thing.unpay, args: {}}}
`;
const POLICY = `
version: 1
rules:
  - {id: pay, match: {tool: thing.pay}, action: require_approval, approval: {groups: [finance]}}
`;
const folder = tempDir("contain");
const pair = newKeyPair();
writeFileSync(join(folder, "key.pem"), pair.private_pem, { mode: 0o600 });

let s: TestServer;
beforeAll(async () => {
  s = await server(
    `rollback: {compensator_cmd: "${undoesAll()}"}\nsigning_key: ${join(folder, "key.pem")}\n`,
  );
});

const server = (config: string) =>
  testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config,
    keys: [
      { name: "bot", role: "agent" },
      { name: "bot-too", role: "agent" },
      { name: "robot", roles: ["agent", "approver"] },
      { name: "quiet", role: "agent" },
      { name: "lessee", role: "agent" },
      { name: "unsure", role: "agent" },
      { name: "lender", role: "approver" },
      { name: "giver", roles: ["agent", "approver"], groups: ["finance"] },
      { name: "fin", role: "approver", groups: ["finance"] },
      { name: "acme-1", role: "agent", tenant: "acme" },
      { name: "acme-2", role: "agent", tenant: "other" },
    ],
  });

async function step(on: TestServer, key: string, run: string, tool: string, n: number): Promise<void> {
  await on.call(key, "POST", `/v1/runs/${run}/intents`, { tool, args: {}, reason: "r" });
  await on.call(key, "POST", `/v1/runs/${run}/steps/${n}/outcome`, {
    status: "succeeded",
    result: { id: n },
  });
}
const openRun = (on: TestServer, key: string, run_id: string) =>
  on.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"] });
const contain = (on: TestServer, body: object, key = "admin") => on.call(key, "POST", "/v1/contain", body);
async function ended(on: TestServer, body: object) {
  const started = await contain(on, { confirm: true, ...body });
  expect([started.status, started.body]).toEqual([202, { job: expect.anything() }]);
  const { id } = started.body.job;
  const look = async () => (await on.call("auditor", "GET", `/v1/contain/${id}`)).body.job;
  await until(async () => (await look()).state !== "running", "the containment to end");
  return look();
}
async function trail(
  on: TestServer,
): Promise<{ event: string; run_id?: string; step?: number; detail?: string; actor: string }[]> {
  return (await on.app.core.store.records({ limit: 10_000 })).map((line) => JSON.parse(line));
}

describe("the request", () => {
  it("is refused where it cannot be meant", async () => {
    verifies("beyond.contain.bad-input", "beyond.contain.nobody", "beyond.contain.several");
    const reason = "it went mad";
    for (const [body, says] of [
      [{ actor: "bot" }, "reason"],
      [{ actor: "", reason }, "actor"],
      [{ actor: "bot", reason: "" }, "reason"],
      [{ actor: "bot", reason: "  " }, "reason"],
      [{ actor: "bo{t", reason }, "glob"],
      [{ actor: "bot", reason, since: "soon" }, "since"],
      [{ actor: "bot", reason, since: "2199-01-01" }, "since: is in the future"],
      [{ actor: "bot", reason, expect_actors: 0 }, "expect_actors"],
      [{ actor: "bot", reason, force: true }, "force"],
      [
        { actor: "bot*", reason, confirm: true },
        'expect_actors: "bot*" matches 2 actors (bot, bot-too); send expect_actors: 2',
      ],
    ] as const) {
      const answer = await contain(s, body);
      expect([body, answer.status]).toEqual([body, 400]);
      expect(answer.body.error).toContain(says);
    }
    const none = await contain(s, { actor: "nobody-ever", reason, confirm: true });
    expect([none.status, none.body.error]).toEqual([
      404,
      'no actor matches "nobody-ever": no run and no agent\'s key has such a name',
    ]);
    const wrong = await contain(s, { actor: "bot*", reason, confirm: true, expect_actors: 3 });
    expect([wrong.status, wrong.body.error]).toEqual([409, expect.stringContaining("nothing was done")]);
    expect((await trail(s)).map(({ event }) => event)).not.toContain("halted");
    expect((await s.call("auditor", "GET", "/v1/contain/ctn_none")).status).toBe(404);
  });

  it("is an admin's", async () => {
    for (const key of ["auditor", "approver", "operator"])
      expect((await contain(s, { actor: "bot", reason: "r", confirm: true }, key)).status).toBe(403);
  });
});

describe("a containment", () => {
  it("says beforehand what it does, and then does that, in its order", async () => {
    verifies(
      "beyond.contain.route",
      "beyond.contain.job",
      "beyond.contain.halt-first",
      "beyond.contain.keys",
      "beyond.contain.requests",
      "beyond.contain.delegations",
      "beyond.contain.grants",
      "beyond.contain.order",
      "beyond.contain.ledger-order",
      "beyond.contain.bundles",
      "beyond.contain.report",
      "beyond.contain.by-hand",
    );
    await openRun(s, "robot", "a");
    await openRun(s, "robot", "b");
    await step(s, "robot", "a", "thing.make", 0);
    await step(s, "robot", "b", "thing.make", 0);
    await step(s, "robot", "a", "thing.send", 1);
    await step(s, "robot", "b", "thing.make", 1);
    await step(s, "robot", "a", "thing.make", 2);
    await s.call("robot", "POST", "/v1/runs/b/intents", { tool: "thing.make", args: {}, reason: "r" });
    await s.call("robot", "POST", "/v1/runs/b/intents", { tool: "thing.pay", args: {}, reason: "r" });
    await s.call("lender", "POST", "/v1/delegations", {
      to: "robot",
      expires_at: "2026-06-16T00:00:00Z",
      reason: "r",
    });
    await s.call("robot", "POST", "/v1/delegations", {
      to: "quiet",
      expires_at: "2026-06-16T00:00:00Z",
      reason: "r",
    });
    const grant = (actor: string) =>
      s.call("fin", "POST", "/v1/grants", {
        match: { tool: "thing.pay", actor },
        rules: ["pay"],
        max_uses: 1,
        expires_at: "2026-06-16T00:00:00Z",
        reason: "r",
      });
    const proposed = await s.call("robot", "POST", "/v1/runs/b/plans", {
      reason: "two more",
      calls: [{ tool: "thing.pay", args: { n: 2 }, reason: "r" }],
    });
    const { id: granted } = (await grant("robot")).body;
    const { id: wide } = (await grant("robo*")).body;
    await grant("quiet");
    await s.call("admin", "POST", "/v1/keys", { name: "robot", role: "agent", max_permissions: ["*"] });

    const before = await trail(s);
    const told = await contain(s, { actor: "robot", reason: "it went mad" });
    expect(told.status).toBe(200);
    expect(await trail(s)).toEqual(before);
    expect(told.body).toMatchObject({
      dry_run: true,
      actors: ["robot"],
      halt: { id: null, was_there: false },
      keys: {
        disabled: [{ name: "robot" }],
        left: [{ name: "robot", why: expect.stringContaining("approver") }],
      },
      requests: { denied: [expect.stringMatching(/^apr_/)], approved: [] },
      revoked: { plans: [proposed.body.id], grants: [granted] },
      wider: [{ kind: "grant", id: wide, covers: "actor robo*" }],
      rollback: "yes",
      runs: [
        {
          run_id: "b",
          undone: [
            { step: 1, tool: "thing.make" },
            { step: 0, tool: "thing.make" },
          ],
          cannot: [],
          unknown: [{ step: 2, tool: "thing.make", why: expect.stringContaining("svc resolve") }],
        },
        {
          run_id: "a",
          undone: [
            { step: 2, tool: "thing.make" },
            { step: 0, tool: "thing.make" },
          ],
          cannot: [{ step: 1, tool: "thing.send", why: "cannot be undone" }],
          unknown: [],
        },
      ],
      undone: 4,
      left: 2,
      complete: false,
    });
    expect(told.body.revoked.delegations).toHaveLength(2);

    const started = await contain(s, { actor: "robot", reason: "it went mad", confirm: true });
    expect(started.status).toBe(202);
    const blocked = await s.call("robot", "POST", "/v1/runs/a/intents", {
      tool: "thing.make",
      args: {},
      reason: "r",
    });
    expect(blocked.body).toMatchObject({
      decision: "block",
      reasons: [expect.stringContaining("it went mad")],
    });
    const job = await ended(s, { actor: "robot", reason: "it went mad" });
    expect(job).toMatchObject({ id: started.body.job.id, state: "done", by: "admin", error: null });
    const { report } = job;
    for (const field of [
      "actors",
      "keys",
      "requests",
      "revoked",
      "wider",
      "rollback",
      "undone",
      "left",
      "complete",
    ])
      expect([field, report[field]]).toEqual([field, told.body[field]]);
    expect(report.runs.map(({ bundle: _, ...run }: { bundle: string }) => run)).toEqual(
      told.body.runs.map(({ bundle: _, ...run }: { bundle: string }) => run),
    );

    const since = (await trail(s)).slice(before.length);
    const events = since.filter(({ event }) => event !== "blocked");
    expect(events.map(({ event, run_id, step }) => [event, run_id ?? null, step ?? null])).toEqual([
      ["halted", null, null],
      ["key_changed", null, null],
      ["denied", "b", null],
      ["approval_expired", "b", null],
      ["delegation_revoked", null, null],
      ["delegation_revoked", null, null],
      ["grant_revoked", null, null],
      ...[
        ["a", 2],
        ["b", 1],
        ["b", 0],
        ["a", 0],
      ].flatMap(([run, n]) => [
        ["compensating", run, n],
        ["compensated", run, n],
      ]),
      ["contained", null, null],
    ]);
    expect(events.at(-1)).toMatchObject({
      actor: "admin",
      reason: "it went mad",
      detail: `${job.id}: actor robot: 2 runs, 4 steps undone, 2 left`,
    });
    for (const { run_id, bundle } of report.runs) {
      expect(JSON.parse(readFileSync(bundle, "utf8")).run_id).toBe(run_id);
      expect(await verifyBundle(bundle, new Map([[pair.key_id, s.app.signing!]]))).toMatchObject({
        ok: true,
      });
    }
    const { keys } = (await s.call("admin", "GET", "/v1/keys")).body;
    const robots = keys.filter(({ name }: { name: string }) => name === "robot");
    expect(robots.map(({ disabled }: { disabled: boolean }) => disabled)).toEqual([false, true]);
    expect((await s.call("auditor", "GET", "/v1/halts")).body.halts).toEqual([
      expect.objectContaining({
        id: report.halt.id,
        scope: { actor: "robot", tool: null, tenant: null, environment: null },
      }),
    ]);
  });

  it("asked for again does nothing twice", async () => {
    verifies("beyond.contain.again");
    const before = await trail(s);
    const again = await ended(s, { actor: "robot", reason: "it went mad" });
    expect(again.state).toBe("done");
    expect(await trail(s)).toEqual(before);
    const told = await contain(s, { actor: "robot", reason: "still" });
    expect(told.body).toMatchObject({ halt: { was_there: true }, keys: { disabled: [] }, undone: 0 });
  });

  it("revokes the grants that the contained agent gave", async () => {
    verifies("beyond.contain.grants");
    const given = await s.call("giver", "POST", "/v1/grants", {
      match: { tool: "thing.pay", actor: "acme-*" },
      rules: ["pay"],
      max_uses: 1,
      expires_at: "2026-06-16T00:00:00Z",
      reason: "r",
    });
    const told = await contain(s, { actor: "giver", reason: "r" });
    expect(told.body.revoked.grants).toEqual([given.body.id]);
    expect((await ended(s, { actor: "giver", reason: "r" })).report.revoked.grants).toEqual([given.body.id]);
    expect((await contain(s, { actor: "giver", reason: "r" })).body.revoked.grants).toEqual([]);
  });

  it("run again continues with an undo that was approved since", async () => {
    verifies("beyond.contain.again");
    await openRun(s, "lessee", "leased");
    await step(s, "lessee", "leased", "thing.lease", 0);
    const first = await ended(s, { actor: "lessee", reason: "r" });
    expect(first.report.runs).toMatchObject([{ undone: [], cannot: [{ step: 0 }] }]);
    const { approvals } = (await s.call("approver", "GET", "/v1/approvals?status=pending")).body;
    const asked = approvals.find(({ run_id }: { run_id: string }) => run_id === "leased");
    expect((await s.call("approver", "POST", `/v1/approvals/${asked.id}/approve`, {})).status).toBe(200);
    const told = await contain(s, { actor: "lessee", reason: "r" });
    expect(told.body.runs).toMatchObject([{ undone: [{ step: 0, tool: "thing.lease" }], cannot: [] }]);
    const again = await ended(s, { actor: "lessee", reason: "r" });
    expect(again.id).not.toBe(first.id);
    expect(again.report).toMatchObject({ undone: 1, left: 0, complete: true });
    const before = await trail(s);
    expect((await ended(s, { actor: "lessee", reason: "r" })).id).toBe(again.id);
    expect(await trail(s)).toEqual(before);
  });

  it("run again reports its leftovers again, once a person has settled them", async () => {
    verifies("beyond.contain.settled");
    await openRun(s, "unsure", "doubtful");
    await s.call("unsure", "POST", "/v1/runs/doubtful/intents", {
      tool: "thing.send",
      args: {},
      reason: "r",
    });
    const first = await ended(s, { actor: "unsure", reason: "r" });
    expect(first.report).toMatchObject({ left: 1, runs: [{ unknown: [{ step: 0 }] }] });
    expect((await ended(s, { actor: "unsure", reason: "r" })).id).toBe(first.id);
    const said = { status: "failed", note: "never sent" };
    expect((await s.call("operator", "POST", "/v1/runs/doubtful/steps/0/resolve", said)).status).toBe(200);
    const again = await ended(s, { actor: "unsure", reason: "r" });
    expect(again.report).toMatchObject({ left: 0, complete: true, runs: [{ unknown: [] }] });
    expect((await ended(s, { actor: "unsure", reason: "r" })).id).toBe(again.id);
  });

  it("undoes only calls since then", async () => {
    verifies("beyond.contain.since");
    await openRun(s, "quiet", "old");
    await step(s, "quiet", "old", "thing.make", 0);
    s.env.setNow(s.env.now() + 3_600_000);
    await step(s, "quiet", "old", "thing.make", 1);
    await openRun(s, "quiet", "new");
    const job = await ended(s, { actor: "quiet", reason: "r", since: "30m" });
    expect(job.report.runs).toMatchObject([
      { run_id: "new", undone: [] },
      { run_id: "old", undone: [{ step: 1 }], cannot: [] },
    ]);
    const { steps } = (await s.call("auditor", "GET", "/v1/runs/old")).body;
    expect(steps.map(({ status }: { status: string }) => status)).toEqual(["succeeded", "compensated"]);
  });

  it("keeps to the tenant", async () => {
    verifies("beyond.contain.several");
    const told = await contain(s, { actor: "acme-*", tenant: "acme", reason: "r" });
    expect(told.body).toMatchObject({ actors: ["acme-1"], keys: { disabled: [{ name: "acme-1" }] } });
    await ended(s, { actor: "acme-*", tenant: "acme", reason: "r" });
    expect((await s.call("acme-1", "GET", "/v1/runs")).status).toBe(401);
    expect((await s.call("acme-2", "GET", "/v1/runs")).status).toBe(200);
  });

  it("with several actors takes all of them", async () => {
    const job = await ended(s, { actor: "bot*", reason: "r", expect_actors: 2 });
    expect(job.report).toMatchObject({ actors: ["bot", "bot-too"], complete: true });
    expect((await s.call("bot", "GET", "/v1/runs")).status).toBe(401);
  });
});

describe("where nothing can be undone", () => {
  it("does the rest, and names each leftover with the reason", async () => {
    verifies("beyond.contain.no-rollback", "beyond.contain.bundles");
    const bare = await server("");
    await openRun(bare, "bot", "r");
    await step(bare, "bot", "r", "thing.make", 0);
    const job = await ended(bare, { actor: "bot", reason: "r" });
    expect(job.report).toMatchObject({
      rollback: "no_compensator",
      keys: { disabled: [{ name: "bot" }] },
      runs: [
        { cannot: [{ step: 0, why: expect.stringContaining("no compensator is configured") }], bundle: null },
      ],
      bundles: { folder: null, note: expect.stringContaining("no signing key is configured") },
      complete: false,
    });
    await openRun(s, "agent2", "kept");
    await step(s, "agent2", "kept", "thing.make", 0);
    const kept = await ended(s, { actor: "agent2", reason: "r", no_rollback: true });
    expect(kept.report.runs).toMatchObject([{ cannot: [{ why: "not undone: no rollback was requested" }] }]);
  });
});
