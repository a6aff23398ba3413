/** A push whose force is not known counts as forced, wherever a condition reads it. */
import { describe, expect, it } from "vitest";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { loadPolicy } from "../../src/rules/policy/load.ts";
import { checkClaims } from "../../src/rules/policy/prove/claims.ts";
import { diffPolicies } from "../../src/rules/policy/prove/diff.ts";
import { runPolicyTests } from "../../src/rules/policy/tests/tests.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: git.push, effect: irreversible, permission: git}
- {tool: other.push, effect: irreversible, permission: git}
`;
const ruleOf = (op: string, value: unknown, action = "deny", tool = "git.push") =>
  `{id: ${op}-${value}-${action}, match: {tool: ${tool}}, when: [{path: $args.force, op: ${op}, value: ${JSON.stringify(value)}}], action: ${action}, reason: found}`;
const policyOf = (...rules: string[]) => `version: 1\nrules: [${rules.join(", ")}]\n`;
const compiled = (text: string) => compilePolicy(loadPolicy(text, "p.yaml"));

/** Whether the rule applies, by a test of the policy itself. */
function applies(op: string, value: unknown, args: object, { action = "deny", tool = "git.push" } = {}) {
  const tests = `tests: [{name: t, input: {tool: ${tool}, args: ${JSON.stringify(args)}}, expect: ${action}, rule: ${op}-${value}-${action}}]\n`;
  const policy = compiled(policyOf(ruleOf(op, value, action, tool)) + tests);
  return runPolicyTests(policy, { manifestFor: () => null, now_ms: 0 })[0]!.ok;
}

describe("force: unknown", () => {
  it("is read as true by every operator", () => {
    verifies("beyond.git.unknown-force");
    const unknown = { force: "unknown" };
    for (const [op, value, expected] of [
      ["eq", true, true],
      ["eq", false, false],
      ["ne", true, false],
      ["ne", false, true],
      ["in", [true], true],
      ["in", [false], false],
      ["not_in", [true], false],
    ] as const)
      for (const action of ["deny", "allow"])
        expect([op, value, action, applies(op, value, unknown, { action })]).toEqual([
          op,
          value,
          action,
          expected,
        ]);
    expect(applies("eq", true, { force: false })).toBe(false);
    expect(applies("eq", true, {})).toBe(false);
    // Nothing else is read differently: not another text, argument or tool.
    for (const text of ["Unknown", "true-ish", "false"])
      expect(applies("ne", text, { force: text })).toBe(false);
    expect(applies("ne", "unknown", { delete: "unknown" })).toBe(false);
    expect(applies("eq", "unknown", unknown, { tool: "other.push" })).toBe(true);
    expect(applies("ne", "unknown", unknown, { tool: "other.push" })).toBe(false);
  });

  it("counts as true in decisions, impact, simulation, replay and grants", async () => {
    verifies("beyond.git.unknown-force");
    const policy = policyOf(
      ruleOf("eq", true, "require_approval"),
      ruleOf("eq", false, "deny").replace("found", "plain"),
    );
    const s = await testServer({ policy, manifests: MANIFESTS, config: "capture: {enabled: true}\n" });
    await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["git"] });
    const push = { tool: "git.push", args: { force: "unknown", refs: ["a"] }, reason: "r" };
    const ask = async () => (await s.call("agent", "POST", "/v1/runs/r/intents", push)).body;
    expect((await ask()).reasons).toEqual(["found", expect.stringMatching(/^approval/)]);
    const asked = encodeURIComponent(JSON.stringify(push.args));
    const impact = (await s.call("auditor", "GET", `/v1/impact?tool=git.push&args=${asked}`)).body;
    expect([impact.decision, impact.reasons]).toEqual([
      "needs_approval",
      ["found", expect.stringMatching(/^approval/)],
    ]);

    const grant = {
      match: { tool: "git.push", actor: "agent" },
      rules: ["eq-true-require_approval"],
      max_uses: 5,
      expires_at: new Date(s.env.now() + 3_600_000).toISOString(),
      reason: "a move",
      irreversible: true,
    };
    const isForced = (value: boolean) => [{ path: "$args.force", op: "eq", value }];
    await s.call("admin", "POST", "/v1/grants", { ...grant, when: isForced(false) });
    expect((await ask()).decision).toBe("block");
    await s.call("admin", "POST", "/v1/grants", { ...grant, when: isForced(true) });
    expect((await ask()).decision).toBe("allow");

    const simulated = (
      await s.call("operator", "POST", "/v1/simulate", { policy: policyOf(ruleOf("eq", true)) })
    ).body;
    expect(JSON.stringify(simulated)).toContain("found");
    expect(JSON.stringify(simulated)).not.toContain("could not compare");
    const change = { step: 0, path: "$args.refs", value: ["b"] };
    const { variant } = (await s.call("operator", "POST", "/v1/runs/r/replay", { changes: [change] })).body;
    expect(JSON.stringify(variant)).not.toContain("plain");
  });

  it("is one kind of call with true for claims and differences", () => {
    verifies("beyond.git.unknown-force");
    const labels = new Map();
    const proving = { labels, now_ms: 0, budget: { cells: 10_000, late: () => false }, share: 10_000 };
    const claim = (value: unknown) =>
      `claims: [{name: c, match: {tool: git.push}, when: [{path: $args.force, op: eq, value: ${value}}], at_least: deny}]\n`;
    const only = (value: unknown) => compiled(policyOf(ruleOf("eq", true)) + claim(value));
    expect(checkClaims(only(true), proving)).toMatchObject([{ result: "proved" }]);
    expect(checkClaims(only(false), proving)).toMatchObject([{ result: "counterexample" }]);
    const unforced = compiled(policyOf(ruleOf("eq", "unknown", "allow"), ruleOf("eq", true)));
    const found = diffPolicies(compiled(policyOf(ruleOf("eq", true))), unforced, proving);
    expect(JSON.stringify(found)).not.toContain('"force":"unknown"');
  });
});
