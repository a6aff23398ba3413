import { describe, expect, it } from "vitest";
import { policyCall } from "../../../../test/support/policy-call.ts";
import type { PolicyCall } from "../call.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { budgetUse, type CounterDoc, checkLimits, limitKeys } from "./limits.ts";

const HOUR = 3_600_000;
const policy = compilePolicy(
  loadPolicy(
    `version: 1
limits:
  - {id: rate, match: {tool: "mail.*"}, max: 2, per: actor, window: 1h}
  - {id: all, max: 100, per: global, window: 1d}
budgets:
  - {id: spend, match: {tool: "pay.*"}, path: $args.amount, max: 100, per: tenant, window: 1d, warn_at: 0.8}
`,
    "p.yaml",
  ),
);
const call = (fields: Partial<PolicyCall>): PolicyCall =>
  policyCall({ tool: "mail.send", actor: "bot", tenant: "acme", run_id: "run_1", ...fields });

function run(counters: Map<string, CounterDoc>, one: PolicyCall, now: number) {
  const { findings, charges } = checkLimits(policy, one, counters, now);
  for (const { key, doc } of charges) counters.set(key, doc);
  return findings.map((finding) => [finding.stage, finding.action, finding.rule]);
}

describe("counterKeys", () => {
  it("names exactly the counters that judging the call reads and writes", () => {
    expect(limitKeys(policy, call({}))).toEqual([
      { key: "limit:rate:actor:bot", kind: "limit", id: "rate" },
      { key: "limit:all:global:", kind: "limit", id: "all" },
    ]);
    const pay = call({ tool: "pay.out", args: { amount: 5 }, tenant: null });
    const keys = limitKeys(policy, pay).map((need) => need.key);
    expect(keys).toEqual(["limit:all:global:", "budget:spend:tenant:"]);
    expect(checkLimits(policy, pay, new Map(), 0).charges.map((charge) => charge.key)).toEqual(keys);
  });
});

describe("checkLimits", () => {
  it("counts per actor, and lets calls go again as the window slides", () => {
    const counters = new Map<string, CounterDoc>();
    expect(run(counters, call({}), 0)).toEqual([]);
    expect(run(counters, call({}), HOUR / 2)).toEqual([]);
    expect(checkLimits(policy, call({}), counters, HOUR - 1).findings).toHaveLength(1);
    expect(checkLimits(policy, call({ actor: "other" }), counters, HOUR - 1).findings).toEqual([]);
    expect(run(counters, call({}), HOUR)).toEqual([]);
    expect(checkLimits(policy, call({}), counters, HOUR + 1).findings).toHaveLength(1);
  });

  it("charges a call that it finds against too, since somebody may let it pass", () => {
    const { findings, charges } = checkLimits(
      policy,
      call({ tool: "pay.out", args: { amount: 500 } }),
      new Map(),
      0,
    );
    expect(findings).toHaveLength(1);
    expect(charges.map((charge) => charge.doc.buckets)).toEqual([[[0, 1]], [[0, 500]]]);
  });

  it("keeps amounts out of its reasons", () => {
    const { findings } = checkLimits(
      policy,
      call({ tool: "pay.out", args: { amount: 98765 } }),
      new Map(),
      0,
    );
    expect(findings.map((finding) => finding.reason).join()).not.toContain("98765");
  });
});

describe("budgetUse", () => {
  it("tells how far each budget is used, fullest first", () => {
    const counters = new Map<string, CounterDoc>();
    run(counters, call({ tool: "pay.out", args: { amount: 10.1 } }), 0);
    run(counters, call({ tool: "pay.out", args: { amount: 80 }, tenant: "b:c" }), 0);
    counters.set("budget:gone:tenant:acme", { buckets: [[0, 5]] });
    counters.set("budget:spend:actor:acme", { buckets: [[0, 5]] });
    expect(budgetUse(policy, counters, 1_000)).toEqual([
      { id: "spend", per: "tenant", value: "b:c", used: 80, max: 100, share: 0.8, near: true },
      { id: "spend", per: "tenant", value: "acme", used: 10.1, max: 100, share: 0.101, near: false },
    ]);
    expect(budgetUse(policy, counters, 25 * HOUR).map((use) => use.used)).toEqual([0, 0]);
  });
});
