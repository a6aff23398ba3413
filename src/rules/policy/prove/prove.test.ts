/** Compares the prover with brute force: random policies over small domains, with every call evaluated. */
import { describe, expect, it } from "vitest";
import {
  AT,
  calls,
  compiled,
  condition,
  many,
  policyOf,
  type Random,
  random,
  VALUES,
} from "../../../../test/support/random-policies.ts";
import { heldTo, heldToPairs } from "../../../../test/support/told.ts";
import { verifies } from "../../../../test/support/verifies.ts";
import type { PolicyCall } from "../call.ts";
import { type CompiledPolicy, compilePolicy } from "../compile.ts";
import { evaluatePolicy } from "../evaluate.ts";
import { runPolicyTests } from "../tests/tests.ts";
import { type ClaimResult, checkClaims } from "./claims.ts";
import { NO_CALL } from "./domain.ts";

/** So many times the usual number of policies, `SVC_PROVER_TIMES=1000`, from another seed on, `SVC_PROVER_SEED=1000000`. */
const trials = (usual: number) => usual * Number(process.env["SVC_PROVER_TIMES"] ?? 1);
const randomly = (seed: number) => random(seed + Number(process.env["SVC_PROVER_SEED"] ?? 0));

const until = (ms: number) => {
  const end = performance.now() + ms;
  return () => performance.now() > end;
};
const how = (cells = 4_000) => ({
  labels: new Map(),
  now_ms: AT[0]!,
  share: cells / 2,
  budget: { cells, late: until(2_000) },
});
const RANK = { allow: 0, require_approval: 1, deny: 2 };

/** Whether the claim speaks of a call, found by policies that have it as a rule. */
function claimed(policy: CompiledPolicy): (call: PolicyCall, at_ms: number) => boolean {
  const { match: matched, when, unless } = policy.doc.claims![0]!;
  const says = (rule: object) => {
    const made = compiled({ version: 1, rules: [{ id: "x", action: "deny", ...rule }] });
    return (call: PolicyCall, at_ms: number) => evaluatePolicy(made, call, at_ms).action === "deny";
  };
  const [meant, excepted] = [says({ match: matched, when }), says({ match: unless })];
  return (call, at_ms) => meant(call, at_ms) && !(unless !== undefined && excepted(call, at_ms));
}

function held(policy: CompiledPolicy, r: Random): boolean {
  const least = RANK[policy.doc.claims![0]!.at_least];
  const speaksOf = claimed(policy);
  for (const { call, at_ms } of calls(r))
    if (RANK[evaluatePolicy(policy, call, at_ms).action] < least && speaksOf(call, at_ms)) return false;
  return true;
}

function assertShown(policy: CompiledPolicy, { counterexample }: ClaimResult): void {
  const { input, got } = counterexample!;
  const tested = compilePolicy({ ...policy.doc, tests: [{ name: "t", input, expect: got }] });
  expect(
    runPolicyTests(tested, { manifestFor: () => null, now_ms: 0 })[0],
    JSON.stringify(policy.doc),
  ).toMatchObject({ ok: true });
  expect(RANK[got]).toBeLessThan(RANK[policy.doc.claims![0]!.at_least]);
}

describe("the prover and brute force agree", () => {
  it(
    "about claims",
    () => {
      verifies("beyond.claim.never-wrong", "beyond.claim.counterexample-run");
      const seen = { proved: 0, counterexample: 0, incomplete: 0 };
      for (let seed = 0; seed < trials(40); seed++) {
        const r = randomly(seed);
        const policy = policyOf(r, true);
        const [result] = checkClaims(policy, how());
        seen[result!.result]++;
        if (result!.result === "counterexample") assertShown(policy, result!);
        if (result!.result === "proved") expect(held(policy, r), JSON.stringify(policy.doc)).toBe(true);
      }
      expect(seen.proved).toBeGreaterThan(0);
      expect(seen.counterexample).toBeGreaterThan(0);
    },
    trials(600_000),
  );

  it(
    "about one argument, with any value",
    () => {
      verifies("beyond.claim.never-wrong");
      const seen = { proved: 0, counterexample: 0, incomplete: 0 };
      for (let seed = 0; seed < trials(120); seed++) {
        const r = randomly(seed + 2_000_000);
        const conditions = (most: number) =>
          [condition(r), ...many(r, most, () => condition(r))].map((one) => ({ ...one, path: "$args.n" }));
        const rules = Array.from({ length: 2 }, (_, i) => ({
          id: `r${i}`,
          when: conditions(1),
          action: "deny",
        }));
        const claims = [{ name: "c", when: conditions(0), at_least: "deny" }];
        const policy = compiled({ version: 1, rules, claims });
        const [result] = checkClaims(policy, how());
        seen[result!.result]++;
        if (result!.result === "counterexample") assertShown(policy, result!);
        if (result!.result !== "proved") continue;
        const speaksOf = claimed(policy);
        for (const n of [
          ...VALUES,
          3,
          0.5,
          9,
          -7,
          "ba",
          "xab",
          "C",
          ["b"],
          ["x"],
          ["b", 1],
          [["a"]],
          { other: 1 },
        ]) {
          const call: PolicyCall = { ...NO_CALL, tool: "b", args: n === undefined ? {} : { n } };
          if (speaksOf(call, AT[0]!))
            expect(evaluatePolicy(policy, call, AT[0]!).action, JSON.stringify([policy.doc, n])).toBe("deny");
        }
      }
      expect(seen.proved).toBeGreaterThan(3);
      expect(seen.counterexample).toBeGreaterThan(3);
    },
    trials(600_000),
  );

  it(
    "about differences",
    () => {
      verifies("beyond.diff.never-wrong", "beyond.diff.examples-run");
      for (let seed = 0; seed < trials(3); seed++) {
        const r = randomly(seed + 1_000_000);
        const { untold } = heldTo(policyOf(r, false), policyOf(r, false), calls(r), 4_000);
        expect(untold).toBeNull();
      }
    },
    trials(600_000),
  );

  it(
    "about a policy and one that was made of it",
    () => {
      verifies("beyond.diff.never-wrong");
      const { disagreement, ...seen } = heldToPairs(3_000_000, 20);
      expect(disagreement).toBeNull();
      expect(seen.complete).toBeGreaterThan(seen.pairs / 2);
      expect(seen.decided_differently).toBeGreaterThan(0);
    },
    trials(600_000),
  );
});

type Asking = [path: string, op: string, value?: unknown];

describe("the prover leaves out no kind of value", () => {
  const conditions = (list: readonly Asking[]) => list.map(([path, op, value]) => ({ path, op, value }));
  const provedOf = (rules: readonly Asking[], claim: readonly Asking[]) => {
    const policy = compiled({
      version: 1,
      rules: rules.map((one, i) => ({ id: `r${i}`, when: conditions([one]), action: "deny" })),
      claims: [{ name: "c", when: conditions(claim), at_least: "deny" }],
    });
    const [result] = checkClaims(policy, how());
    if (result!.result === "counterexample") assertShown(policy, result!);
    return [result!.result, result!.counterexample?.input.args];
  };

  it.each<[string, Asking[], Asking[], unknown]>([
    [
      "an object with one member more",
      [
        ["$args.n", "eq", { k: 1 }],
        ["$args.n.k", "ne", 1],
      ],
      [["$args.n.k", "eq", 1]],
      { n: { k: 1, other: true } },
    ],
    [
      "a list with one element more",
      [
        ["$args.n", "eq", [1]],
        ["$args.n[0]", "ne", 1],
      ],
      [["$args.n[0]", "eq", 1]],
      { n: [1, 1] },
    ],
    [
      "a list, of which a name reads nothing",
      [
        ['$args.n["2"]', "eq", null],
        ["$args.n[2]", "ne", null],
      ],
      [["$args.n[2]", "eq", null]],
      { n: [0, 0, null] },
    ],
    [
      "a list that no condition names",
      [
        ["$args.n", "eq", [0, 0, 0]],
        ["$args.n", "eq", []],
      ],
      [
        ["$args.n", "ne", null],
        ["$args.n", "exists"],
      ],
      { n: [0, 0, 0, 0] },
    ],
    [
      "an object that no condition names",
      [["$args.n", "eq", { other: true }]],
      [
        ["$args.n", "ne", null],
        ["$args.n", "exists"],
      ],
      { n: { other_: true } },
    ],
    [
      "an argument without a name",
      [
        ['$args[""]', "gt", 1],
        ['$args[""]', "absent"],
      ],
      [['$args[""]', "exists"]],
      { "": 0 },
    ],
    [
      "an object without the member that is looked at",
      [
        ["$args.n", "eq", {}],
        ["$args.n", "eq", null],
        ["$args.n", "absent"],
        ["$args.n.other", "exists"],
      ],
      [],
      { n: { other_: true } },
    ],
    [
      "a list of objects that are not the one it is asked for",
      [
        ["$args.n", "contains", {}],
        ["$args.n", "contains", null],
        ["$args.n", "eq", []],
        ["$args.n", "eq", null],
        ["$args.n", "absent"],
      ],
      [],
      { n: [{ other: true }, { other: true }] },
    ],
    [
      "a list of nothing but null",
      [
        ["$args.n", "contains", {}],
        ["$args.n", "not_contains", null],
        ["$args.n", "eq", null],
        ["$args.n", "absent"],
      ],
      [],
      { n: [null, null] },
    ],
    [
      "a text that is a zero character",
      [
        ["$args.n", "ne", "\0"],
        ["$args.n", "absent"],
      ],
      [],
      { n: "\0" },
    ],
    [
      "a number between what two spellings of a member ask for",
      [["$args.n[0]", "gte", 1.5]],
      [
        ["$args.n[0]", "gt", 1],
        ['$args.n["0"]', "lt", 1.5],
      ],
      { n: { "0": 1.25 } },
    ],
    [
      "a letter of another shape",
      [["$args.n", "not_matches", "(?i)^θ$"]],
      [["$args.n", "matches", "^[^θΘϴ]$"]],
      { n: "ϑ" },
    ],
  ])("%s", (_, rules, claim, args) => {
    verifies("beyond.claim.never-wrong");
    expect(provedOf(rules, claim)).toEqual(["counterexample", args]);
  });

  it("or an approval where a denial is claimed", () => {
    verifies("beyond.claim.never-wrong");
    const policy = compiled({
      version: 1,
      rules: [{ id: "r", when: [{ path: "$args.n", op: "gte", value: 10 }], action: "require_approval" }],
      claims: [
        { name: "denied", when: [{ path: "$args.n", op: "gt", value: 20 }], at_least: "deny" },
        { name: "asked", when: [{ path: "$args.n", op: "gt", value: 20 }], at_least: "require_approval" },
      ],
    });
    const [denied, asked] = checkClaims(policy, how());
    expect(denied).toMatchObject({ result: "counterexample", counterexample: { got: "require_approval" } });
    expect(asked!.result).toBe("proved");
  });

  it("or a call of somebody's helper, or of its user alone", () => {
    verifies("beyond.acting.prover");
    const rules = [{ id: "r", match: { acting: "helper-*" }, action: "require_approval" }];
    const claims = [
      { name: "helpers ask", match: { acting: "helper-1" }, at_least: "require_approval" },
      { name: "somebody acts", match: { acting: "*" }, at_least: "require_approval" },
      { name: "everybody asks", at_least: "require_approval" },
    ];
    const policy = compiled({ version: 1, rules, claims });
    const [helpers, somebody, everybody] = checkClaims(policy, how());
    expect(helpers!.result).toBe("proved");
    for (const one of [somebody!, everybody!]) {
      expect(one.result).toBe("counterexample");
      assertShown(policy, one);
    }
    expect(somebody!.counterexample!.input.acting).toHaveLength(1);
    expect(everybody!.counterexample!.input.acting).toBeUndefined();
  });

  it("or a tool that is not declared among many that are", () => {
    const policy = compiled({
      version: 1,
      rules: [{ id: "r", match: { tool: "p?", effect: "read" }, action: "deny" }],
      claims: [{ name: "c", match: { tool: "p?" }, at_least: "deny" }],
    });
    const declared = [..."abcdefghijklmnopqrstuvwxyz0123456789_-."].map((char) => `p${char}`);
    const labels = new Map(declared.map((tool) => [tool, { ...NO_CALL, effect: "read" as const }]));
    const [result] = checkClaims(policy, { ...how(), labels });
    expect(declared).not.toContain(result!.counterexample?.input.tool);
    expect(result!.result).toBe("counterexample");
  });

  it("or an hour that is missing this week, or comes early", () => {
    const now_ms = Date.parse("2027-03-24T12:00:00Z");
    for (const hours of ["02:00-03:00", "03:00-03:30"]) {
      const policy = compiled({
        version: 1,
        windows: [{ id: "w", days: ["sun"], hours, tz: "Europe/Berlin" }],
        claims: [{ name: "c", at_least: "deny" }],
      });
      expect(checkClaims(policy, { ...how(), now_ms })[0]!.result, hours).toBe("counterexample");
    }
  });

  it("or a number that can be sent, and no other", () => {
    const all: Asking[] = [
      ["$args.n", "lte", Number.MAX_SAFE_INTEGER],
      ["$args.n", "eq", null],
      ["$args.n", "absent"],
    ];
    expect(provedOf(all, [])).toEqual(["proved", undefined]);
    const [first, ...rest] = all;
    expect(provedOf([["$args.n", "lt", Number.MAX_SAFE_INTEGER], ...rest], [])).toEqual([
      "counterexample",
      { n: first![2] },
    ]);
  });

  it("and says where it does not know them", () => {
    verifies("beyond.claim.never-wrong");
    const key = (end: string) => `AKIAIOSFODNN7EXAMP${end}`;
    const named = [key("AB"), key("AC"), key("AD"), "a sentence that is longer than those keys"];
    const secrets = compiled({
      version: 1,
      content: { secrets: "deny" },
      rules: [["not_in", named], ["eq", null], ["absent"]].map(([op, value], i) => ({
        id: `r${i}`,
        when: [{ path: "$args.n", op, value }],
        action: "deny",
      })),
      claims: [{ name: "c", at_least: "deny" }],
    });
    expect(checkClaims(secrets, how())[0]).toMatchObject({ result: "incomplete" });
    const two_ways: Asking[] = [
      ["$args[0]", "absent"],
      ['$args["0"]', "exists"],
    ];
    expect(provedOf(two_ways, [])[0]).toBe("incomplete");
    const labelled = Array.from({ length: 20 }, (_, i) => ({
      id: `r${i}`,
      match: { source: `l${i}` },
      action: "deny",
    }));
    const labels = compiled({ version: 1, rules: labelled, claims: [{ name: "c", at_least: "deny" }] });
    expect(checkClaims(labels, how())[0]!.reason).toContain("too many entries match labels of one kind");
    const whole: Asking = ["$args", "exists"];
    expect(provedOf([["$args.n", "absent"]], [whole])[0]).toBe("incomplete");
    expect(provedOf([["$args.n[2000]", "absent"]], [["$args.n", "exists"]])[0]).toBe("incomplete");
    expect(provedOf([whole], [])[0]).toBe("proved");
  });
});
