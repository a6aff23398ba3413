/** Runs the decision cases of test/cases/policy: a policy, a call, and what must come out of it. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { verifies } from "../../../../test/support/verifies.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { compilePolicy } from "../compile.ts";
import { loadPolicy } from "../load.ts";
import type { PolicyTestDoc } from "../schema.ts";
import { evaluateTest } from "./tests.ts";

interface Case {
  name: string;
  policy: JsonValue;
  call: Omit<PolicyTestDoc["input"], "at" | "repeat">;
  at?: string;
  repeat?: number;
  expect: {
    action: string;
    reasons?: string[];
    rules?: string[];
    warnings?: string[];
    approval?: JsonValue;
    risk_score?: number;
    factors?: JsonValue;
  };
}

const setting = { manifestFor: () => null, now_ms: 0 };
const folder = new URL("../../../../test/cases/policy/", import.meta.url);
/** These two have a separate shape and test. */
const OTHERS = new Set(["ops.yaml", "refused.yaml"]);
const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && !OTHERS.has(name));

describe.each(files)("%s", (file) => {
  const cases = parse(readFileSync(new URL(file, folder), "utf8")) as Case[];

  it.each(cases)("$name", ({ policy, call, at, repeat, expect: want }) => {
    verifies(
      "contract.policy.match-tool",
      "contract.policy.match-actor",
      "contract.policy.match-tenant",
      "contract.policy.match-environment",
      "contract.policy.match-effect",
      "contract.policy.match-data-class",
      "contract.policy.match-globs",
      "contract.policy.match-missing-field",
      "contract.policy.actions",
      "contract.policy.rule-approval",
      "contract.policy.when-all",
      "contract.policy.content-settings",
      "contract.policy.content-secrets",
      "contract.policy.content-pii",
      "contract.policy.content-injection",
      "contract.policy.content-max-bytes",
      "contract.policy.risk-weights",
      "contract.policy.risk-approval",
      "contract.policy.risk-deny",
      "contract.policy.risk-range",
      "contract.policy.limits",
      "contract.policy.budgets",
      "contract.policy.budget-warn-at",
      "contract.policy.per-values",
      "contract.policy.windows",
      "contract.policy.windows-tz",
      "contract.policy.freezes",
      "contract.policy.approval-defaults",
      "contract.combine.every-rule",
      "contract.combine.strictest",
      "contract.combine.allow-lifts-risk",
      "contract.combine.allow-lifts-window",
      "contract.combine.order-policy",
      "contract.policy-test.inputs",
      "contract.readings.rule-without-when",
      "core.policy.rule-id",
      "core.policy.rule-match-tool-glob",
      "core.policy.rule-when",
      "core.policy.rule-path-args",
      "core.policy.action-require-approval",
      "core.policy.rule-reason",
      "core.policy.content-secrets-deny",
      "core.policy.risk-enables-scoring",
      "core.reason.content",
    );
    const compiled = compilePolicy(loadPolicy(JSON.stringify(policy), "policy.yaml"));
    const input = {
      ...call,
      ...(at === undefined ? {} : { at }),
      ...(repeat === undefined ? {} : { repeat }),
    };
    const got = evaluateTest(compiled, { name: "case", input, expect: "allow" }, setting);
    const { risk_score, factors, ...combined } = want;
    expect(got).toMatchObject(combined);
    if (risk_score !== undefined) expect(got.risk.score).toBe(risk_score);
    if (factors !== undefined) expect(got.risk.factors).toEqual(factors);
    expect(got.reasons.length === 0).toBe(got.action === "allow");
    expect(got.approval === null).toBe(got.action !== "require_approval");
  });
});
