/** Speculation: the ranking to the number, results given and made up, and plans that are none. */
import { describe, expect, it } from "vitest";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import type { SpeculatedCall } from "../../src/simulate/speculate.ts";
import { verifies } from "../support/verifies.ts";
import { type Capturing, capturing, everythingOf, RESTORED, speculated } from "./support.ts";

const call = (tool: string, args: JsonValue = {}, result?: JsonValue): SpeculatedCall =>
  result === undefined ? { tool, args } : { tool, args, result };

const RULES = `
rules:
  - {id: ask, match: {tool: pay.charge}, action: require_approval, reason: ask, approval: {groups: [finance], quorum: 3}}
  - {id: no, match: {tool: mail.send}, when: [{path: $args.to, op: eq, value: all}], action: deny, reason: not to all}
`;

async function one(s: Capturing, calls: SpeculatedCall[], policy?: string) {
  const { plans } = await speculated(s, [{ name: "p", calls }], policy);
  return plans[0]!;
}

describe("the ranking", () => {
  it("adds up as documented, each weight on its own", async () => {
    verifies(
      "ops.speculation.weight-blocked",
      "ops.speculation.weight-approval",
      "ops.speculation.weight-risk",
    );
    verifies("ops.speculation.weight-irreversible", "ops.speculation.weight-not-reversible");
    verifies("ops.speculation.risk-zero", "contract.readings.speculation-quorum");
    const s = await capturing();
    const policy = `version: 1${RULES}`;
    const rank = async (...calls: SpeculatedCall[]) => (await one(s, calls, policy)).rank;
    const charge = call("pay.charge", { amount: 1 }, { id: 1 });
    expect(await rank(call("crm.get"))).toBe(0);
    expect(await rank(charge)).toBe(10);
    expect(await rank(charge, charge)).toBe(20);
    expect(await rank(call("mail.send"))).toBe(50 + 25);
    expect(await rank(call("mail.send"), call("mail.send"))).toBe(100 + 25);
    expect(await rank(call("pay.charge", { amount: 1 }, {}))).toBe(10 + 25);
    expect(await rank(call("mail.send", { to: "all" }))).toBe(10_000);
    expect(await rank(charge, call("mail.send"), call("no.such"))).toBe(10_000 + 10 + 50 + 25);
  });

  it("adds the highest risk score once, and tells the total", async () => {
    verifies("ops.speculation.risk", "ops.speculation.irreversible-tools");
    const s = await capturing({ environment: "prod" });
    const plan = await one(
      s,
      [call("crm.get"), call("mail.send"), call("mail.send"), call("crm.open")],
      "version: 1\nrisk: {}",
    );
    expect(plan).toMatchObject({
      highest_risk: 90,
      total_risk: 35 + 90 + 90 + 30,
      irreversible_tools: ["mail.send"],
      irreversible_calls: 2,
      rank: 90 + 2 * 50 + 25,
    });
  });

  it("recommends the safest plan that can run to its end", async () => {
    verifies("ops.speculation.recommended", "ops.speculation.blocked-at");
    const s = await capturing();
    const plans = [
      { name: "refused", calls: [call("crm.get"), call("no.such"), call("crm.get")] },
      { name: "mail", calls: [call("mail.send")] },
      { name: "ask", calls: [call("pay.charge", { amount: 1 }, { id: 1 })] },
    ];
    const report = await speculated(s, plans, `version: 1${RULES}`);
    expect(report.recommended).toBe("ask");
    expect(report.plans.map(({ name, rank, recommended }) => [name, rank, recommended])).toEqual([
      ["ask", 10, true],
      ["mail", 75, false],
      ["refused", 10_000, false],
    ]);
    expect(report.plans[2]!.blocked_at).toEqual({
      call: 1,
      tool: "no.such",
      reasons: ["no manifest is registered for this tool"],
      by: ["no manifest is registered for this tool"],
    });
    expect(report.plans[2]!.notes).toEqual(["1 of its calls follow the blocked one and were not evaluated"]);
    const none = await speculated(s, plans.slice(0, 1));
    expect([none.recommended, none.plans[0]!.recommended]).toEqual([null, false]);
    const equal = await speculated(
      s,
      ["b", "a"].map((name) => ({ name, calls: [call("crm.get")] })),
    );
    expect(equal.recommended).toBe("b");
  });
});

describe("a result", () => {
  it("reports the approvals, and continues as if they were given", async () => {
    verifies("ops.speculation.approvals", "ops.speculation.notes");
    const s = await capturing();
    const calls = [call("pay.charge", { amount: 1 }, { id: 1 }), call("crm.get")];
    const plan = await one(s, calls, `version: 1${RULES}`);
    expect(plan.approvals).toEqual([
      {
        call: 0,
        tool: "pay.charge",
        groups: ["finance"],
        quorum: 3,
        reasons: ["ask", "approval required: an approver must approve this call"],
      },
    ]);
    expect(plan.blocked_at).toBeNull();
    expect(plan.notes).toEqual(["1 approval is assumed, so that the rest could be evaluated"]);
  });

  it("has the rollback plan, built from given results, and what it would leave", async () => {
    verifies("ops.speculation.fully-reversible", "ops.speculation.residue", "ops.speculate.given-result");
    verifies("ops.speculate.call");
    const s = await capturing();
    const plan = await one(s, [
      call("crm.open"),
      call("crm.create", { email: "a" }, { id: "c-1" }),
      call("crm.create", { email: "b" }, { id: "c-2" }),
    ]);
    expect(plan).toMatchObject({
      fully_reversible: true,
      residue: ["a welcome mail was sent"],
      notes: [],
      rank: 0,
    });
    expect(plan.rollback_plan.actions).toMatchObject([
      { step: 2, kind: "compensate", compensation_tool: "crm.delete", args: { id: "c-2" } },
      { step: 1, kind: "compensate", args: { id: "c-1" } },
      { step: 0, kind: "skip" },
    ]);
  });

  it("makes a result up from the manifest if none is given, and reports it", async () => {
    verifies("ops.speculate.synthesized-result");
    const manifests = `
- tool: t
  effect: compensable
  permission: p
  compensation: {tool: u, args: {id: $result.id, deep: '$result.list[1].name', more: $result.list, arg: $args.x}}
  verification: {tool: v, args: {at: '$result["any name"]'}, expect: {}}
- {tool: r, effect: read, permission: p}
- {tool: far, effect: compensable, permission: p, compensation: {tool: u, args: {id: '$result.list[900000000]'}}}
`;
    const s = await capturing({ manifests });
    const plan = await one(s, [call("t", { x: 5 }), call("r")]);
    expect(plan.notes).toEqual(["call 0 (t): its result is synthetic, from the manifest"]);
    expect(plan.rollback_plan.actions[1]).toMatchObject({
      args: {
        id: "<$result.id>",
        deep: "<$result.list[1].name>",
        more: [null, { name: "<$result.list[1].name>" }],
        arg: 5,
      },
    });
    const missing = await one(s, [call("t", {})]);
    expect(missing.notes).toContain(
      "call 0 (t): its undo needs $args.x, which is missing, so it cannot be undone",
    );
    expect(missing).toMatchObject({ fully_reversible: false, rank: 25 });
    expect((await one(s, [call("far")])).fully_reversible).toBe(false);
  });

  it("takes what a read before the call would show as there, and says that it was made up", async () => {
    verifies("beyond.before.sandbox");
    const s = await capturing({ manifests: RESTORED });
    const plan = await one(s, [call("doc.write", { id: "a", text: "new" })]);
    expect(plan.notes).toEqual(["call 0 (doc.write): the state before it is synthetic, from the manifest"]);
    expect(plan).toMatchObject({ fully_reversible: true, rank: 0 });
    expect(plan.rollback_plan.actions).toMatchObject([
      { kind: "compensate", compensation_tool: "doc.restore", args: { id: "a", text: "<$before.text>" } },
    ]);
    const touched = await one(s, [call("doc.touch", { id: "a" })]);
    expect(touched.rollback_plan.actions).toMatchObject([{ kind: "compensate", args: { id: "a" } }]);
  });

  it.each([["text"], [7], [null], [[1, 2]], [{ other: 1 }]])(
    "takes a result of another shape: %j",
    async (result) => {
      const s = await capturing();
      const plan = await one(s, [call("pay.charge", { amount: 1 }, result as JsonValue)]);
      expect(plan).toMatchObject({ fully_reversible: false, rank: 25 });
      expect(plan.notes).toEqual([
        "call 0 (pay.charge): its undo needs $result.id, which is missing, so it cannot be undone",
      ]);
    },
  );

  it("judges prerequisites, repeats and limits within the plan, and none of another plan", async () => {
    const s = await capturing();
    const create = (email: string) => call("crm.create", { email }, { id: 1 });
    expect((await one(s, [create("a")])).blocked_at!.reasons).toEqual([
      "prerequisite crm.open has not succeeded in this run",
    ]);
    const twice = await one(s, [call("crm.open"), create("a"), create("a")]);
    expect(twice.blocked_at).toMatchObject({ call: 2, reasons: [expect.stringContaining("idempotency")] });
    const limited = "version: 1\nlimits: [{id: two, max: 2, per: global, window: 1h}]";
    const plans = ["a", "b"].map((name) => ({ name, calls: [call("crm.get"), call("crm.get")] }));
    const report = await speculated(s, plans, limited);
    expect(report.plans.map(({ blocked_at }) => blocked_at)).toEqual([null, null]);
  });
});

describe("bad plans", () => {
  it("are refused, all problems at once", async () => {
    const s = await capturing();
    await expect(speculated(s, [])).rejects.toThrow("plans: the list is empty");
    const twice = [
      { name: "a", calls: [call("crm.get")] },
      { name: "a", calls: [] },
    ];
    await expect(speculated(s, twice)).rejects.toThrow(
      'plans[1].name: another plan is called "a" too; plans[1].calls: "a" has no calls',
    );
  });

  it("a hundred thousand calls are only many", async () => {
    const s = await capturing();
    const calls = Array.from({ length: 100_000 }, (_, n) => call("pay.charge", { amount: n }));
    const plan = await one(s, calls, "version: 1\nlimits: [{id: most, max: 3000, per: run, window: 1h}]");
    expect(plan).toMatchObject({
      calls: 100_000,
      blocked_at: { call: 3_000, by: ["limit most"] },
      rank: 10_000,
      fully_reversible: true,
    });
    expect(plan.rollback_plan.actions).toHaveLength(3_000);
    expect(plan.notes).toHaveLength(101);
    expect(plan.notes.at(-1)).toBe("2901 more notes are not listed");
  });

  it("leave the real ledger and runs as they are", async () => {
    const s = await capturing();
    await s.open("r");
    await s.call("r", "crm.get", {});
    await s.captured();
    const before = await everythingOf(s.app.core.store);
    await one(s, [call("crm.get"), call("mail.send"), call("no.such")]);
    expect(await everythingOf(s.app.core.store)).toBe(before);
  });
});
