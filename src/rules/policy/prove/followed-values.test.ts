/** Claims and comparisons of policies whose flows look at values: whether a call carries one is free. */
import { describe, expect, it } from "vitest";
import { verifies } from "../../../../test/support/verifies.ts";
import { NO_LABELS, type ToolLabels } from "../../manifest/labels.ts";
import { type CompiledPolicy, compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { runPolicyTests } from "../tests/tests.ts";
import { checkClaims } from "./claims.ts";
import { diffPolicies } from "./diff.ts";

const labels = new Map<string, ToolLabels>([
  ["mail.read", { ...NO_LABELS, effect: "read", source: ["mail"] }],
  ["mail.send", { ...NO_LABELS, effect: "irreversible", sink: ["internet"] }],
]);
const policy = (body: string): CompiledPolicy => compilePolicy(loadPolicy(`version: 1\n${body}`, "p"));
const flow = (more: string) =>
  `flows: [{id: f, after: {source: mail}, then: {sink: internet}, action: require_approval${more}}]\n`;
const budget = () => ({ cells: 4_000, late: () => false });
const claims = (one: CompiledPolicy) => checkClaims(one, { labels, now_ms: 0, budget: budget() });
const diff = (a: string, b: string) =>
  diffPolicies(policy(a), policy(b), { labels, now_ms: 0, share: 2_000, budget: budget() });

const CARRIES = flow(", carries: true");
const WHEN = flow(", when: [{path: $args.to, op: ne, value: $after.args.to}]");

describe("a claim", () => {
  it.each([CARRIES, WHEN, flow(", carries: true, within: 24h")])("does not hold by %s", (flows) => {
    verifies("beyond.value.claims");
    const claimed = policy(
      `${flows}claims: [{name: c, match: {tool: mail.send}, at_least: require_approval}]\n`,
    );
    const [result] = claims(claimed);
    expect(result).toMatchObject({ result: "counterexample", counterexample: { got: "allow" } });
    const { input, got } = result!.counterexample!;
    const tested = compilePolicy({ ...claimed.doc, tests: [{ name: "t", input, expect: got }] });
    const manifestFor = (tool: string) => labels.get(tool) ?? null;
    expect(runPolicyTests(tested, { manifestFor, now_ms: 0 })).toMatchObject([{ ok: true }]);
  });

  it("holds next to such a flow by a rule", () => {
    verifies("beyond.value.claims");
    const rule = "rules: [{id: r, match: {tool: mail.send}, action: deny}]\n";
    const claim = "claims: [{name: c, match: {tool: mail.send}, at_least: deny}]\n";
    expect(claims(policy(CARRIES + rule + claim))).toMatchObject([{ result: "proved" }]);
  });
});

describe("a comparison", () => {
  it("says that `carries` makes a flow looser, and not stricter", () => {
    verifies("beyond.value.diff");
    const found = diff(flow(""), CARRIES);
    expect(found).toMatchObject({
      looser: [{ from: "require_approval", to: "allow", counted: ["flow f was set off"] }],
      stricter: [],
      other: [],
    });
    expect(diff(CARRIES, flow(""))).toMatchObject({ looser: [], stricter: [{ to: "require_approval" }] });
  });

  it("says that a new flow is stricter for calls that carry a value alone", () => {
    verifies("beyond.value.diff");
    const found = diff("", CARRIES);
    expect(found).toMatchObject({ looser: [], complete: true });
    expect(found.stricter).toMatchObject([
      {
        from: "allow",
        to: "require_approval",
        counted: ["flow f: the call carries a value from an earlier call"],
        b: { reasons: ["flow f: restricted; an argument carries a value of an earlier result"] },
      },
    ]);
    expect(diff("", WHEN).stricter).toMatchObject([
      { counted: ["flow f: the call compares with an earlier call"] },
    ]);
  });

  it("sees a shorter duration, another action and another maximum", () => {
    verifies("beyond.value.diff");
    const within = (hours: number) => flow(`, carries: true, within: ${hours}h`);
    expect(diff(within(24), within(1))).toMatchObject({
      looser: [{ counted: ["flow f: the call carries a value from an earlier call 3600s before"] }],
      stricter: [],
    });
    expect(diff(CARRIES, CARRIES.replace("require_approval", "deny"))).toMatchObject({
      looser: [],
      stricter: [{ from: "require_approval", to: "deny" }],
    });
    const max = diff(CARRIES, `${CARRIES}carries: {max: 10}\n`);
    expect(max).toMatchObject({ complete: false, looser: [], stricter: [] });
    expect(max.covered.reasons.join()).toContain("carries.max differs");
    expect(diff(CARRIES, CARRIES)).toMatchObject({ complete: true, looser: [], stricter: [] });
  });

  it("does not call a new id of a flow that counts nothing a change", () => {
    verifies("beyond.value.diff");
    const other = diff(CARRIES, CARRIES.replace("id: f", "id: g"));
    expect(other).toMatchObject({ complete: true, looser: [], stricter: [] });
  });
});
