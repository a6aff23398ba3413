/** Runs test/cases/policy/ops.yaml, which must hold every kind of case for every operator of the table. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { policyCall } from "../../../../test/support/policy-call.ts";
import { verifies } from "../../../../test/support/verifies.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import { checkRules } from "../rules.ts";
import { COMPARISON_OPS, OP_NAMES } from "./table.ts";

interface Group {
  operand?: JsonValue;
  match?: JsonValue[];
  no_match?: JsonValue[];
  uncompared?: JsonValue[];
  bad_operands?: JsonValue[];
}

const file = new URL("../../../../test/cases/policy/ops.yaml", import.meta.url);
const cases = parse(readFileSync(file, "utf8")) as Record<string, Group[]>;

/** `absent` in the cases means that the operand is missing. */
function policyText(op: string, operand: JsonValue | undefined, action: "deny" | "allow"): string {
  const condition =
    operand === "absent" || operand === undefined
      ? { path: "$args.x", op }
      : { path: "$args.x", op, value: operand };
  return JSON.stringify({ version: 1, rules: [{ id: "r", when: [condition], action }] });
}

function decide(op: string, operand: JsonValue | undefined, action: "deny" | "allow", args: JsonValue) {
  const call = policyCall({ args });
  return checkRules(compilePolicy(loadPolicy(policyText(op, operand, action), "policy.yaml")), call);
}

describe.each(OP_NAMES)("op %s", (op) => {
  const groups = cases[op] ?? [];

  it("has match, no-match and bad-operand cases", () => {
    const has = (field: keyof Group) =>
      groups.some((group) => (group[field] as JsonValue[] | undefined)?.length);
    if (op !== "absent") expect(has("match")).toBe(true);
    if (op !== "exists") expect(has("no_match")).toBe(true);
    if (op !== "exists" && op !== "absent") expect(has("uncompared")).toBe(true);
    expect(has("bad_operands")).toBe(true);
  });

  for (const { operand, match = [], no_match = [], uncompared = [], bad_operands = [] } of groups) {
    const shown = JSON.stringify(operand);
    it.each(match.map((x) => [JSON.stringify(x), x]))(`${shown} holds for %s`, (_, x) => {
      verifies(
        "contract.policy.op-eq-ne",
        "contract.policy.op-order",
        "contract.policy.op-in",
        "contract.policy.op-contains",
        "contract.policy.op-affixes",
        "contract.policy.op-matches",
        "contract.policy.op-exists",
        "core.policy.op-gt",
        "core.policy.op-matches",
      );
      expect(decide(op, operand, "deny", { x } as JsonValue)).toMatchObject([
        { action: "deny", reason: "rule r denies this call", rule: "r" },
      ]);
      expect(decide(op, operand, "allow", { x } as JsonValue)).toMatchObject([{ action: "allow" }]);
    });
    it.each(no_match.map((x) => [JSON.stringify(x), x]))(`${shown} does not hold for %s`, (_, x) => {
      expect(decide(op, operand, "deny", { x } as JsonValue)).toEqual([]);
      expect(decide(op, operand, "allow", { x } as JsonValue)).toEqual([]);
    });
    it.each(uncompared.map((x) => [JSON.stringify(x), x]))(`${shown} cannot be compared with %s`, (_, x) => {
      verifies(
        "contract.policy.incomparable-restricts",
        "contract.policy.incomparable-no-allow",
        "contract.policy.incomparable-no-exception",
      );
      const [finding, ...more] = decide(op, operand, "deny", { x } as JsonValue);
      expect(more).toEqual([]);
      expect(finding).toMatchObject({
        action: "deny",
        reason: "rule r denies this call; could not compare $args.x",
      });
      expect(decide(op, operand, "allow", { x } as JsonValue)).toEqual([]);
    });
    it.each(bad_operands.map((x) => [JSON.stringify(x), x]))("refuses the operand %s", (_, x) => {
      verifies("contract.policy.regex-subset");
      expect(() => loadPolicy(policyText(op, x as JsonValue, "deny"), "policy.yaml")).toThrow(
        /^policy\.yaml:1:\d+: rules\[0\]\.when\[0\]\.value: .*\(op /,
      );
    });
    if (operand === undefined) continue;
    it(`${shown} on a missing path is ${op === "absent"}`, () => {
      verifies("contract.policy.missing-path");
      for (const args of [{}, { y: 1 }, [], null, "text", 5] as JsonValue[]) {
        expect(decide(op, operand, "deny", args)).toHaveLength(op === "absent" ? 1 : 0);
      }
    });
  }
});

it("has no cases for operators that do not exist", () => {
  expect(Object.keys(cases).sort()).toEqual(Object.keys(COMPARISON_OPS).sort());
});
