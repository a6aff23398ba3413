import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { policyCall } from "../../../test/support/policy-call.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { PolicyCall } from "./call.ts";
import { compilePolicy } from "./compile.ts";
import { checkRules } from "./rules.ts";
import type { PolicyDoc } from "./schema.ts";

const call = (args: JsonValue): PolicyCall => policyCall({ args });

const number = fc.constantFrom(-1.5, -0, 0, 1, 2, 3, 1e300);
const scalar = fc.oneof(number, fc.constantFrom("", "1", "a", "b"), fc.boolean());
const value: fc.Arbitrary<JsonValue> = fc.oneof(
  scalar,
  fc.constant(null),
  fc.array(scalar, { maxLength: 2 }),
);
const condition = fc.oneof(
  fc.record({ op: fc.constantFrom("gt", "gte", "lt", "lte"), value: number }),
  fc.record({ op: fc.constantFrom("eq", "ne"), value }),
  fc.record({
    op: fc.constantFrom("in", "not_in"),
    value: fc.array(fc.oneof(scalar, fc.constant(null)), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ op: fc.constantFrom("exists", "absent") }),
);
const rule = fc.record({
  match: fc.constantFrom({ tool: "t" }, { tool: "*" }, { tool: "{t,t*}" }, { tool: "t", actor: "b" }, {}),
  when: fc.array(fc.tuple(fc.constantFrom("$args.x", "$args.y", "$args.z.w"), condition), { maxLength: 3 }),
  action: fc.constantFrom("allow", "deny", "require_approval"),
});
const args = fc.record(
  { x: value, y: value, z: fc.oneof(value, fc.record({ w: value })) },
  { requiredKeys: [] },
);

const policyOf = (rules: object[]) => compilePolicy({ version: 1, rules } as unknown as PolicyDoc);

describe("rules found by their conditions", () => {
  it("are those that testing every rule separately finds, in the order of the policy", () => {
    fc.assert(
      fc.property(
        fc.array(rule, { minLength: 17, maxLength: 60 }),
        fc.array(args, { maxLength: 5 }),
        (given, calls) => {
          const rules = given.map(({ when, ...one }, i) => ({
            ...one,
            id: `r${i}`,
            when: when.map(([path, more]) => ({ path, ...more })),
          }));
          const all = policyOf(rules);
          const alone = rules.map((one) => policyOf([one]));
          for (const one of calls as JsonValue[])
            expect(checkRules(all, call(one))).toEqual(
              alone.flatMap((policy) => checkRules(policy, call(one))),
            );
        },
      ),
      { numRuns: 150 },
    );
  });

  it("are all there is to look at: thousands that the arguments do not reach are not tested", () => {
    const rules = Array.from({ length: 5_000 }, (_, i) => ({
      id: `r${i}`,
      match: { tool: "t" },
      when: [{ path: "$args.x", op: "gt", value: i * 10 }],
      action: "deny",
    }));
    const policy = policyOf(rules);
    let looks = 0;
    const watched = call({ x: 25 });
    Object.defineProperty(watched, "args", {
      get: () => {
        looks++;
        return { x: 25 };
      },
    });
    expect(checkRules(policy, watched).map((one) => one.rule)).toEqual(["r0", "r1", "r2"]);
    expect(looks).toBeLessThan(10);
  });
});
