/** The prover held against brute force: random policies over small domains, every call of which is tried. */
import { describe, expect, it } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import type { Json } from "../../../kernel/json.ts";
import type { PolicyCall } from "../call.ts";
import { compilePolicy, type Policy } from "../compile.ts";
import { evaluatePolicy } from "../evaluate.ts";
import { loadPolicy } from "../load.ts";
import { runPolicyTests } from "../tests.ts";
import { type ClaimResult, checkClaims } from "./claims.ts";
import { diffPolicies } from "./diff.ts";
import { NOBODY } from "./domain.ts";

/** So many times the usual number of policies: `SVC_PROVER_TIMES=1000`. */
const trials = (usual: number) => usual * Number(process.env["SVC_PROVER_TIMES"] ?? 1);

/** A small generator: the same seed makes the same policies. */
function random(seed: number) {
  let state = seed * 2654435761 + 1;
  const next = () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) / 2 ** 32;
  };
  const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)]!;
  const maybe = <T>(share: number, make: () => T): T | undefined => (next() < share ? make() : undefined);
  return { next, pick, maybe };
}
type Random = ReturnType<typeof random>;

const TOOLS = ["a.x", "a.y", "b", "ab"];
const ACTORS = ["u", "v", "uu"];
const ENVIRONMENTS = [null, "prod", "dev"];
const EFFECTS = [null, "read", "irreversible"];
const LABELS: string[][] = [[], ["s"], ["t"], ["s", "t"]];
const VALUES: (Json | undefined)[] = [
  undefined,
  null,
  true,
  -1,
  0,
  1,
  5,
  6,
  "",
  "a",
  "ab",
  "b",
  "abc",
  "5",
  ["a"],
  [1],
  ["a", "b"],
  [],
  { k: 1 },
  { k: "a" },
];
const AT = ["2026-06-15T12:00:00Z", "2026-06-15T20:00:00Z", "2026-06-20T12:00:00Z"].map((at) =>
  Date.parse(at),
);

const match = (r: Random) => ({
  tool: r.maybe(0.6, () => r.pick(["a.*", "a.x", "*b", "?", "{a.x,b}", "*"])),
  actor: r.maybe(0.3, () => r.pick(["u", "u*", "?", "{u,v}"])),
  environment: r.maybe(0.3, () => r.pick(["prod", "?*", "*", "d*"])),
  effect: r.maybe(0.2, () => r.pick(["read", "ir*", "*e*"])),
  source: r.maybe(0.2, () => r.pick(["s", "?", "*", "t"])),
});
const condition = (r: Random) => {
  const path = r.pick(["$args.n", "$args.n", "$args.m", "$args.n.k"]);
  const op = r.pick([
    "gt",
    "lte",
    "eq",
    "ne",
    "in",
    "not_in",
    "contains",
    "not_contains",
    "starts_with",
    "matches",
    "not_matches",
    "exists",
    "absent",
  ]);
  const value = {
    gt: () => r.pick([0, 1, 5]),
    lte: () => r.pick([0, 5]),
    eq: () => r.pick([5, "a", null, true, ["a"], { k: 1 }]),
    ne: () => r.pick([5, "ab"]),
    in: () => r.pick([[1, "a"], ["ab", "b"], [null]]),
    not_in: () =>
      r.pick([
        ["a", "b"],
        [0, 1],
      ]),
    contains: () => r.pick(["a", 1, "b"]),
    not_contains: () => r.pick(["b", "ab"]),
    starts_with: () => r.pick(["a", "ab"]),
    matches: () => r.pick(["^a", "b$", "^[a-c]+$", "a.?b", "(?i)A"]),
    not_matches: () => r.pick(["^ab?$", "c"]),
    exists: () => undefined,
    absent: () => undefined,
  }[op]!();
  return { path, op, value };
};
const many = <T>(r: Random, most: number, make: () => T): T[] =>
  Array.from({ length: Math.floor(r.next() * (most + 1)) }, make);

function policyOf(r: Random, claims: boolean): Policy {
  const rules = many(r, 4, () => ({
    match: match(r),
    when: many(r, 2, () => condition(r)),
    action: r.pick(["deny", "require_approval", "deny", "allow"]),
  }));
  const doc = {
    version: 1,
    rules: rules.map((rule, i) => ({ id: `r${i}`, ...rule })),
    windows: many(r, 1, () => ({
      id: "w",
      match: match(r),
      hours: "09:00-17:00",
      days: ["mon"],
      action: r.pick(["deny", "require_approval"]),
    })),
    budgets: many(r, 1, () => ({
      id: "b",
      match: match(r),
      path: "$args.n",
      max: 5,
      per: "run",
      window: "1h",
    })),
    limits: many(r, 1, () => ({ id: "l", match: match(r), max: r.pick([0, 2]), per: "run", window: "1h" })),
    risk: r.maybe(0.2, () => ({ require_approval_at: r.pick([50, 60]), deny_at: r.maybe(0.5, () => 75) })),
    claims: claims
      ? [
          {
            name: "c",
            match: match(r),
            when: many(r, 1, () => condition(r)),
            at_least: r.pick(["deny", "require_approval"]),
            unless: r.maybe(0.3, () => ({ actor: "u" })),
          },
        ]
      : [],
  };
  return compilePolicy(loadPolicy(JSON.stringify(doc), "p.yaml"));
}

function* calls(r: Random): Generator<{ call: PolicyCall; at_ms: number }> {
  for (const tool of TOOLS)
    for (const n of VALUES)
      for (const actor of ACTORS)
        for (const environment of ENVIRONMENTS) {
          const args: { [name: string]: Json } = {};
          if (n !== undefined) args["n"] = n;
          const m = r.pick(VALUES);
          if (m !== undefined) args["m"] = m;
          const call = {
            ...NOBODY,
            tool,
            actor,
            environment,
            args,
            effect: r.pick(EFFECTS),
            source: r.pick(LABELS),
          };
          yield { call, at_ms: r.pick(AT) };
        }
}

const until = (ms: number) => {
  const end = performance.now() + ms;
  return () => performance.now() > end;
};
const how = () => ({
  labels: new Map(),
  now_ms: AT[0]!,
  share: 2_000,
  budget: { cells: 4_000, late: until(2_000) },
});
const RANK = { allow: 0, require_approval: 1, deny: 2 };

/** Whether the claim speaks of a call, found by policies that have it as a rule. */
function claimed(policy: Policy): (call: PolicyCall, at_ms: number) => boolean {
  const { match: matched, when, unless } = policy.doc.claims![0]!;
  const says = (rule: object) => {
    const doc = { version: 1, rules: [{ id: "x", action: "deny", ...rule }] };
    const made = compilePolicy(loadPolicy(JSON.stringify(doc), "c"));
    return (call: PolicyCall, at_ms: number) => evaluatePolicy(made, call, at_ms).action === "deny";
  };
  const [meant, excepted] = [says({ match: matched, when }), says({ match: unless })];
  return (call, at_ms) => meant(call, at_ms) && !(unless !== undefined && excepted(call, at_ms));
}

function held(policy: Policy, r: Random): boolean {
  const least = RANK[policy.doc.claims![0]!.at_least];
  const speaksOf = claimed(policy);
  for (const { call, at_ms } of calls(r))
    if (RANK[evaluatePolicy(policy, call, at_ms).action] < least && speaksOf(call, at_ms)) return false;
  return true;
}

function assertShown(policy: Policy, { counterexample }: ClaimResult): void {
  const { input, got } = counterexample!;
  const tested = compilePolicy({ ...policy.doc, tests: [{ name: "t", input, expect: got }] });
  expect(runPolicyTests(tested)[0], JSON.stringify(policy.doc)).toMatchObject({ ok: true });
  expect(RANK[got]).toBeLessThan(RANK[policy.doc.claims![0]!.at_least]);
}

describe("the prover and brute force agree", () => {
  it("about claims", () => {
    verifies("beyond.claim.never-wrong", "beyond.claim.counterexample-run");
    const seen = { proved: 0, counterexample: 0, incomplete: 0 };
    for (let seed = 0; seed < trials(40); seed++) {
      const r = random(seed);
      const policy = policyOf(r, true);
      const [result] = checkClaims(policy, how());
      seen[result!.result]++;
      if (result!.result === "counterexample") assertShown(policy, result!);
      if (result!.result === "proved") expect(held(policy, r), JSON.stringify(policy.doc)).toBe(true);
    }
    expect(seen.proved).toBeGreaterThan(0);
    expect(seen.counterexample).toBeGreaterThan(0);
  });

  it("about one argument, whatever its value is", () => {
    verifies("beyond.claim.never-wrong");
    const seen = { proved: 0, counterexample: 0, incomplete: 0 };
    for (let seed = 0; seed < trials(120); seed++) {
      const r = random(seed + 2_000_000);
      const conditions = (most: number) =>
        [condition(r), ...many(r, most, () => condition(r))].map((one) => ({ ...one, path: "$args.n" }));
      const rules = Array.from({ length: 2 }, (_, i) => ({
        id: `r${i}`,
        when: conditions(1),
        action: "deny",
      }));
      const claims = [{ name: "c", when: conditions(0), at_least: "deny" }];
      const policy = compilePolicy(loadPolicy(JSON.stringify({ version: 1, rules, claims }), "p.yaml"));
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
        const call: PolicyCall = { ...NOBODY, tool: "b", args: n === undefined ? {} : { n } };
        if (speaksOf(call, AT[0]!))
          expect(evaluatePolicy(policy, call, AT[0]!).action, JSON.stringify([policy.doc, n])).toBe("deny");
      }
    }
    expect(seen.proved).toBeGreaterThan(3);
    expect(seen.counterexample).toBeGreaterThan(3);
  });

  it("about differences", () => {
    verifies("beyond.diff.never-wrong", "beyond.diff.examples-run");
    for (let seed = 0; seed < trials(6); seed++) {
      const r = random(seed + 1_000_000);
      const [a, b] = [policyOf(r, false), policyOf(r, false)];
      const diff = diffPolicies(a, b, how());
      const known = new Set<string>();
      for (const direction of ["looser", "stricter", "other"] as const)
        for (const one of diff[direction]) {
          known.add(JSON.stringify([one.from, one.to, one.a.rules, one.b.rules]));
          if (direction !== "other" && one.from !== one.to)
            expect(RANK[one.to] < RANK[one.from] ? "looser" : "stricter").toBe(direction);
        }
      if (!diff.complete) continue;
      for (const { call, at_ms } of calls(r)) {
        const [was, is] = [evaluatePolicy(a, call, at_ms), evaluatePolicy(b, call, at_ms)];
        if (was.action === is.action) continue;
        const key = JSON.stringify([was.action, is.action, was.rules, is.rules]);
        expect(
          known.has(key),
          `seed ${seed}: ${JSON.stringify({ call, at_ms, key, a: a.doc, b: b.doc })}`,
        ).toBe(true);
      }
    }
  });
});
