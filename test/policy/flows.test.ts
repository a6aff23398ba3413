/** Flows and hints as an agent meets them: over HTTP, in the sandboxes, and over several servers on one store. */
import { beforeAll, describe, expect, it } from "vitest";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { runPolicyTests } from "../../src/rules/policy/tests/tests.ts";
import { filesPlace, type MakePlace, postgresPlace, sqlitePlace } from "../contract/place.ts";
import { type Answer, type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.read, effect: read, permission: p, risk: {source: [customers, crm]}}
- {tool: wiki.read, effect: read, permission: p}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: internet}}
- {tool: note.add, effect: idempotent, permission: p, risk: {sink: inside}}
- {tool: pay.out, effect: irreversible, permission: p}
- {tool: vault.open, effect: read, permission: p}
`;
const POLICY = `version: 1
rules:
  - {id: vault, match: {tool: vault.open}, action: deny, reason: closed, hint: ask the vault's keeper}
  - {id: long-mail, match: {tool: mail.send}, when: [{path: $args.n, op: gt, value: 5}], action: deny, reason: too long, hint: send less at once}
flows:
  - {id: exfil, after: {source: customers}, then: {sink: internet}, within: run, reason: customer data stays here, hint: write a note instead}
  - {id: pay-after-read, after: {tool: "*.read"}, then: {tool: pay.out}, within: 1h, action: require_approval, approval: {groups: [finance]}}
limits:
  - {id: mails, match: {tool: mail.send}, max: 0, per: run, window: 1h, action: require_approval, hint: wait}
`;

let n = 0;
async function opened(s: TestServer, key = "agent", mode = "enforce"): Promise<string> {
  const run_id = `f${n++}`;
  expect((await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"], mode })).status).toBe(201);
  return run_id;
}
const ask = (s: TestServer, run: string, tool: string, args: unknown = {}, key = "agent"): Promise<Answer> =>
  s.call(key, "POST", `/v1/runs/${run}/intents`, { tool, args, reason: "why" });

const FOLLOWS = "customer data stays here; follows step 1 (crm.read) of this run";

describe("flows over HTTP", () => {
  let s: TestServer;
  beforeAll(async () => {
    s = await testServer({
      manifests: MANIFESTS,
      policy: POLICY,
      config: "capture: {enabled: true}\n",
      keys: [{ name: "acme-bot", role: "agent", tenant: "acme" }],
    });
  });

  it("restrict a call after another one, name its step, and stand between rules and limits", async () => {
    verifies(
      "beyond.flow.restricts-after",
      "beyond.flow.order",
      "beyond.flow.names-step",
      "beyond.flow.labels",
      "beyond.hint.decision",
      "beyond.hint.absent",
    );
    const run = await opened(s);
    const before = (await ask(s, run, "mail.send", { n: 9 })).body;
    expect(before.reasons).toHaveLength(2);
    expect((await ask(s, run, "wiki.read")).body).toEqual({ decision: "allow", step: 0 });
    expect((await ask(s, run, "crm.read")).body).toEqual({ decision: "allow", step: 1 });
    expect((await ask(s, run, "crm.read")).body).toEqual({ decision: "allow", step: 2 });
    expect((await ask(s, run, "note.add")).body).toEqual({ decision: "allow", step: 3 });
    expect((await ask(s, run, "mail.send", { n: 9 })).body).toEqual({
      decision: "block",
      reasons: ["too long", FOLLOWS, "limit mails: 0 calls per run in 1h are used up"],
      hints: ["send less at once", "write a note instead", "wait"],
    });
    const unknown = (await ask(s, run, "no.such")).body;
    expect(Object.keys(unknown)).toEqual(["decision", "reasons"]);
    const other = await opened(s);
    expect((await ask(s, other, "mail.send")).body.reasons[0]).not.toContain("customer data");
  });

  it("are triggered by calls that would have been blocked, and not by blocked ones", async () => {
    verifies("beyond.flow.would-block-counts");
    const strict = await testServer({
      manifests: MANIFESTS,
      policy: `version: 1
rules: [{id: no, match: {tool: crm.read}, action: deny, reason: no}]
flows: [{id: exfil, after: {tool: crm.read}, then: {tool: note.add}}]`,
    });
    const run = await opened(strict);
    expect((await ask(strict, run, "crm.read")).body.decision).toBe("block");
    expect((await ask(strict, run, "note.add")).body).toEqual({ decision: "allow", step: 0 });
    const observed = await opened(strict, "agent", "observe");
    expect((await ask(strict, observed, "crm.read")).body.decision).toBe("would_block");
    expect((await ask(strict, observed, "note.add")).body).toEqual({
      decision: "would_block",
      step: 1,
      reasons: ["flow exfil: restricted; follows step 0 (crm.read) of this run"],
    });
  });

  it("over a time look at all runs of the actor and tenant, ask for approval, and end", async () => {
    verifies("beyond.flow.within-duration", "beyond.flow.approval");
    const first = await opened(s, "agent2");
    await ask(s, first, "wiki.read", {}, "agent2");
    const second = await opened(s, "agent2");
    const waiting = (await ask(s, second, "pay.out", {}, "agent2")).body;
    expect(waiting.reasons[0]).toBe(
      `flow pay-after-read: restricted; follows step 0 (wiki.read) of run ${first}`,
    );
    const [request] = (await s.call("auditor", "GET", "/v1/approvals?status=pending")).body.approvals.filter(
      ({ run_id }: { run_id: string }) => run_id === second,
    );
    expect(request).toMatchObject({ rule: "pay-after-read", approvers: { groups: ["finance"], quorum: 1 } });
    const acme = await opened(s, "acme-bot");
    expect((await ask(s, acme, "pay.out", {}, "acme-bot")).body).toEqual({ decision: "allow", step: 0 });
    s.env.setNow(s.env.now() + 3_600_001);
    const later = await opened(s, "agent2");
    expect((await ask(s, later, "pay.out", {}, "agent2")).body).toEqual({ decision: "allow", step: 0 });
  });

  it("are followed by simulation, replay, preview and speculation", async () => {
    verifies("beyond.flow.sandboxes");
    const run = await opened(s);
    await ask(s, run, "crm.read");
    await ask(s, run, "note.add");
    await s.app.capture!.drain(60_000);
    const stricter =
      "version: 1\nflows: [{id: notes, after: {source: crm}, then: {sink: inside}, action: deny, hint: keep it}]";
    const simulated = (await s.call("operator", "POST", "/v1/simulate", { policy: stricter, run_id: run }))
      .body;
    expect(simulated.newly_blocked).toMatchObject([
      { tool: "note.add", new: { by: ["flow notes"], decision: "block" } },
    ]);
    const replay = (
      await s.call("operator", "POST", `/v1/runs/${run}/replay`, { policy: stricter, changes: [] })
    ).body;
    expect(replay.variant.map(({ decision }: { decision: string }) => decision)).toEqual(["allow", "block"]);
    const plans = [{ name: "p", calls: ["crm.read", "note.add"].map((tool) => ({ tool, args: {} })) }];
    const speculated = (await s.call("auditor", "POST", "/v1/speculate", { plans, policy: stricter })).body;
    expect(speculated.plans[0].blocked_at).toMatchObject({ call: 1, by: ["flow notes"], hints: ["keep it"] });
    const preview = (await s.call("auditor", "GET", "/v1/impact?tool=mail.send")).body;
    expect(preview.warnings).toContain("flow exfil: denied after a call that triggers it in the same run");
    const vault = (await s.call("auditor", "GET", "/v1/impact?tool=vault.open")).body;
    expect(vault).toMatchObject({ decision: "block", hints: ["ask the vault's keeper"] });
  });
});

const PLACES: Record<string, MakePlace> = { files: filesPlace, sqlite: sqlitePlace, postgres: postgresPlace };

describe.each(Object.keys(PLACES))("on the %s store", (name) => {
  it("a flow that one process set off holds in another", async () => {
    verifies("beyond.flow.stores");
    const place = await PLACES[name]!();
    const options = { manifests: MANIFESTS, policy: POLICY };
    const [one, two] = [
      await testServer({ ...options, store: await place.open() }),
      await testServer({ ...options, store: await place.open() }),
    ];
    const run = await opened(one);
    await ask(one, run, "wiki.read");
    await ask(one, run, "crm.read");
    expect((await ask(two, run, "mail.send")).body.reasons[0]).toBe(FOLLOWS);
    const elsewhere = await opened(two);
    expect((await ask(two, elsewhere, "pay.out")).body.reasons[0]).toContain(
      `step 1 (crm.read) of run ${run}`,
    );
  });
});

describe("a policy with flows", () => {
  it("tests them with earlier calls", () => {
    verifies("beyond.flow.tested");
    const text = `version: 1
flows: [{id: exfil, after: {source: customers}, then: {tool: mail.send}}]
tests:
  - {name: alone, input: {tool: mail.send}, expect: allow}
  - {name: after, input: {tool: mail.send, earlier: [{tool: crm.read, source: customers}]}, expect: deny, rule: exfil}
`;
    const results = runPolicyTests(compilePolicy(loadPolicy(text, "p.yaml")), {
      manifestFor: () => null,
      now_ms: 0,
    });
    expect(results.map(({ ok }) => ok)).toEqual([true, true]);
  });

  it.each([
    ["{id: f, after: {tol: x}, then: {}}", "p.yaml:2:25: flows[0].after.tol: unknown key"],
    ["{id: f, after: {}, then: {}, within: soon}", '"soon" is not a duration'],
    ["{id: f, after: {effect: wriet}, then: {}}", "flows[0].after.effect: matches none of"],
    ["{id: f, then: {}}", "flows[0].after"],
    ["{id: f, after: {}, then: {}, action: allow}", "flows[0].action"],
    ["{id: f, after: {}, then: {}, approval: {quorum: 2}}", "only with action require_approval"],
  ])("is refused: %s", (flow, problem) => {
    verifies("beyond.flow.checked");
    expect(() => loadPolicy(`version: 1\nflows: [${flow}]\n`, "p.yaml")).toThrow(problem);
  });
});
