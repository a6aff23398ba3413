/**
 * Runs the tests that a policy carries. A test without `at` leaves freezes and windows out, so that its
 * result never depends on the day on which it is run; counters start empty for each.
 */
import { tryTimestamp } from "../../kernel/duration.ts";
import type { Json } from "../../kernel/json.ts";
import type { PolicyCall } from "./call.ts";
import type { Policy } from "./compile.ts";
import type { CounterDoc } from "./counters.ts";
import { type Evaluation, evaluatePolicy } from "./evaluate.ts";
import type { PolicyTestDoc } from "./schema.ts";

export interface ToolLabels {
  effect: string | null;
  data_class: string | null;
  blast_radius: string | null;
}

export interface PolicyTestResult {
  name: string;
  ok: boolean;
  /** `deny`, or `deny by big-refunds` where the test names a rule. */
  expected: string;
  got: string;
  rule?: string;
}

export function runPolicyTests(
  policy: Policy,
  manifestFor: (tool: string) => ToolLabels | null = () => null,
): PolicyTestResult[] {
  return (policy.doc.tests ?? []).map((test) => runTest(policy, test, manifestFor(test.input.tool)));
}

function runTest(policy: Policy, test: PolicyTestDoc, labels: ToolLabels | null): PolicyTestResult {
  const { action, rules } = evaluateTest(policy, test, labels);
  const { name, expect, rule } = test;
  if (rule === undefined) return { name, ok: action === expect, expected: expect, got: action };
  return {
    name,
    ok: action === expect && rules.includes(rule),
    expected: `${expect} by ${rule}`,
    got: rules.length === 0 ? action : `${action} by ${rules.includes(rule) ? rule : rules.join(", ")}`,
    rule,
  };
}

/** The decision on the test's call, or on the last of its repetitions. */
export function evaluateTest(
  policy: Policy,
  { input }: PolicyTestDoc,
  labels: ToolLabels | null,
): Evaluation {
  const call: PolicyCall = {
    tool: input.tool,
    args: (input.args ?? {}) as Json,
    actor: input.actor ?? "policy-test",
    tenant: input.tenant ?? null,
    environment: input.environment ?? null,
    effect: input.effect ?? labels?.effect ?? null,
    data_class: input.data_class ?? labels?.data_class ?? null,
    blast_radius: input.blast_radius ?? labels?.blast_radius ?? null,
    run_id: "policy-test",
  };
  const now_ms = input.at === undefined ? null : (tryTimestamp(input.at) ?? null);
  const counters = new Map<string, CounterDoc>();
  let evaluation = evaluatePolicy(policy, call, now_ms, counters);
  for (let n = 1; n < (input.repeat ?? 1); n++) {
    for (const { key, doc } of evaluation.charges) counters.set(key, doc);
    evaluation = evaluatePolicy(policy, call, now_ms, counters);
  }
  return evaluation;
}
