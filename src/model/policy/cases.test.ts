/** Runs the decision cases of test/cases/policy: a policy, a call, and what must come out of it. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Json } from "../../kernel/json.ts";
import { compilePolicy } from "./compile.ts";
import { loadPolicy } from "./load.ts";
import type { PolicyTestDoc } from "./schema.ts";
import { evaluateTest } from "./tests.ts";

interface Case {
  name: string;
  policy: Json;
  call: Omit<PolicyTestDoc["input"], "at" | "repeat">;
  at?: string;
  repeat?: number;
  expect: {
    action: string;
    reasons?: string[];
    rules?: string[];
    warnings?: string[];
    approval?: Json;
    risk_score?: number;
    factors?: Json;
  };
}

const folder = new URL("../../../test/cases/policy/", import.meta.url);
/** These two have a shape, and a test, of their own. */
const OTHERS = new Set(["ops.yaml", "refused.yaml"]);
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && !OTHERS.has(name));

describe.each(files)("%s", (file) => {
  const cases = parse(readFileSync(new URL(file, folder), "utf8")) as Case[];

  it.each(cases)("$name", ({ policy, call, at, repeat, expect: want }) => {
    const compiled = compilePolicy(loadPolicy(JSON.stringify(policy), "policy.yaml"));
    const input = {
      ...call,
      ...(at === undefined ? {} : { at }),
      ...(repeat === undefined ? {} : { repeat }),
    };
    const got = evaluateTest(compiled, { name: "case", input, expect: "allow" }, null);
    const { risk_score, factors, ...combined } = want;
    expect(got).toMatchObject(combined);
    if (risk_score !== undefined) expect(got.risk.score).toBe(risk_score);
    if (factors !== undefined) expect(got.risk.factors).toEqual(factors);
    expect(got.reasons.length === 0).toBe(got.action === "allow");
    expect(got.approval === null).toBe(got.action !== "require_approval");
  });
});
