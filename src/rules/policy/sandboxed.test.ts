/** Rules that do not apply inside `svc run`: where they are allowed, and what they never lift. */
import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { compilePolicy } from "./compile.ts";
import { evaluatePolicy } from "./evaluate.ts";
import { loadPolicy } from "./load.ts";
import { checkClaims } from "./prove/claims.ts";
import { NO_CALL } from "./prove/domain.ts";
import { liftedBySandbox } from "./rules.ts";
import { runPolicyTests } from "./tests/tests.ts";

const policyOf = (text: string) => compilePolicy(loadPolicy(`version: 1\n${text}`, "p.yaml"));
const ASKS = "{id: asks, match: {tool: sh}, action: require_approval, sandboxed: allow}";
const proving = { labels: new Map(), now_ms: 0, budget: { cells: 1_000, late: () => false } };
const inside = { ...NO_CALL, tool: "sh", sandboxed: "run_1" };
const outside = { ...NO_CALL, tool: "sh" };

it("is refused at any action but require_approval", () => {
  verifies("beyond.sandboxed.policy");
  for (const action of ["deny", "allow"])
    expect(() => policyOf(`rules: [{id: a, action: ${action}, sandboxed: allow}]`)).toThrow(ProblemsError);
  expect(() => policyOf("rules: [{id: a, action: require_approval, sandboxed: deny}]")).toThrow(
    ProblemsError,
  );
  expect(() => policyOf("limits: [{id: a, per: run, window: 1h, max: 1, sandboxed: allow}]")).toThrow(
    ProblemsError,
  );
});

it("lifts its own rule and no other", () => {
  verifies("beyond.sandboxed.policy");
  const policy = policyOf(`rules: [${ASKS}]`);
  expect(evaluatePolicy(policy, outside, 0).action).toBe("require_approval");
  expect(evaluatePolicy(policy, inside, 0).action).toBe("allow");
  expect([liftedBySandbox(policy, inside), liftedBySandbox(policy, outside)]).toEqual([["asks"], []]);
  for (const other of [
    "rules: [RULE, {id: b, match: {tool: sh}, action: require_approval}]",
    "rules: [RULE]\nrisk: {require_approval_at: 0}",
    "rules: [RULE]\nfreezes: [{id: f, from: 1960-01-01T00:00:00Z, to: 2100-01-01T00:00:00Z, action: require_approval}]",
    "rules: [RULE]\nlimits: [{id: l, per: run, window: 1h, max: 0, action: require_approval}]",
  ])
    expect(evaluatePolicy(policyOf(other.replace("RULE", ASKS)), inside, 0).action).toBe("require_approval");
});

it("refutes a claim that holds outside alone, with a call that the policy's tests can repeat", () => {
  verifies("beyond.sandboxed.policy");
  const claim = "claims: [{name: c, match: {tool: sh}, at_least: require_approval}]";
  const policy = policyOf(`rules: [${ASKS}]\n${claim}`);
  const [found] = checkClaims(policy, proving);
  expect(found).toMatchObject({ result: "counterexample", counterexample: { input: { sandboxed: true } } });
  const { input, got } = found!.counterexample!;
  const tested = compilePolicy({ ...policy.doc, tests: [{ name: "t", input, expect: got }] });
  expect(runPolicyTests(tested, { manifestFor: () => null, now_ms: 0 })).toMatchObject([{ ok: true }]);
  const held = policyOf(`rules: [${ASKS.replace(", sandboxed: allow", "")}]\n${claim}`);
  expect(checkClaims(held, proving)).toMatchObject([{ result: "proved" }]);
});
