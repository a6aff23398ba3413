/**
 * Runs the tests that a policy carries. A test without `at` is judged at the current time, as a call made now would
 * be; counters start empty for each.
 */
import { tryTimestamp } from "../../kernel/duration.ts";
import type { Json } from "../../kernel/json.ts";
import { labelTexts, type ToolLabels } from "../manifest/labels.ts";
import type { PolicyCall } from "./call.ts";
import type { Policy } from "./compile.ts";
import type { CounterDoc } from "./counters.ts";
import { type Evaluation, evaluatePolicy } from "./evaluate.ts";
import type { PolicyTestDoc } from "./schema.ts";

export interface PolicyTestResult {
  name: string;
  ok: boolean;
  /** `deny`, or `deny by big-refunds` where the test names a rule. */
  expected: string;
  got: string;
  rule?: string;
}

/** The surroundings of a test: what the manifests say of its tools, and when it is run. */
export interface TestSetting {
  manifestFor: (tool: string) => ToolLabels | null;
  /** The time of every call for which the test names none. */
  now_ms: number;
}

export function runPolicyTests(policy: Policy, setting: TestSetting): PolicyTestResult[] {
  return (policy.doc.tests ?? []).map((test) => runTest(policy, test, setting));
}

function runTest(policy: Policy, test: PolicyTestDoc, setting: TestSetting): PolicyTestResult {
  const { action, rules } = evaluateTest(policy, test, setting);
  const { name, expect, rule } = test;
  if (rule === undefined) {
    const ok = action === expect;
    // Whoever has to mend it looks for the rules first.
    const by = ok || rules.length === 0 ? "" : ` by ${rules.join(", ")}`;
    return { name, ok, expected: expect, got: `${action}${by}` };
  }
  return {
    name,
    ok: action === expect && rules.includes(rule),
    expected: `${expect} by ${rule}`,
    got: rules.length === 0 ? action : `${action} by ${rules.includes(rule) ? rule : rules.join(", ")}`,
    rule,
  };
}

/** The decision on the test's call, or on the last of its repetitions, after the earlier ones. */
export function evaluateTest(
  policy: Policy,
  { input }: PolicyTestDoc,
  { manifestFor, now_ms }: TestSetting,
): Evaluation {
  const counters = new Map<string, CounterDoc>();
  let step = 0;
  const judge = (one: TestCall): Evaluation => {
    const call = testedCall(input, one, manifestFor(one.tool), step);
    return evaluatePolicy(policy, call, timeOf(one.at ?? input.at) ?? now_ms, counters);
  };
  const accept = ({ charges }: Evaluation) => {
    for (const { key, doc } of charges) counters.set(key, doc);
    step++;
  };
  for (const earlier of input.earlier ?? []) accept(judge(earlier));
  for (let n = 1; n < (input.repeat ?? 1); n++) accept(judge(input));
  return judge(input);
}

type TestInput = PolicyTestDoc["input"];
type TestCall = NonNullable<TestInput["earlier"]>[number];

/** A tool's labels as the input of a test says them. */
export function labelInput(labels: ToolLabels): Partial<TestInput> {
  const { effect, data_class, blast_radius, source, sink } = labels;
  const words = (list: readonly string[]) => (list.length === 1 ? list[0]! : [...list]);
  return {
    ...(effect === null ? {} : { effect: effect as "read" }),
    ...(data_class === null ? {} : { data_class }),
    ...(blast_radius === null ? {} : { blast_radius: blast_radius as "none" }),
    ...(source.length === 0 ? {} : { source: words(source) }),
    ...(sink.length === 0 ? {} : { sink: words(sink) }),
  };
}

function timeOf(at: string | undefined): number | undefined {
  return at === undefined ? undefined : tryTimestamp(at);
}

/** Whether the clock has a say in the answer: a window or a freeze concerns the call, or earlier calls have their own times. */
export function restsOnTime(policy: Policy, input: TestInput, labels: ToolLabels | null): boolean {
  if ((input.earlier ?? []).some(({ at }) => at !== undefined)) return true;
  return [labels, null].some((known) => {
    const call = testedCall(input, input, known, 0);
    return policy.windows.matching(call).length + policy.freezes.matching(call).length > 0;
  });
}

function testedCall(run: TestInput, call: TestCall, labels: ToolLabels | null, step: number): PolicyCall {
  return {
    tool: call.tool,
    args: (call.args ?? {}) as Json,
    actor: run.actor ?? "policy-test",
    tenant: run.tenant ?? null,
    environment: run.environment ?? null,
    effect: call.effect ?? labels?.effect ?? null,
    data_class: call.data_class ?? labels?.data_class ?? null,
    blast_radius: call.blast_radius ?? labels?.blast_radius ?? null,
    source: call.source === undefined ? (labels?.source ?? []) : labelTexts(call.source),
    sink: call.sink === undefined ? (labels?.sink ?? []) : labelTexts(call.sink),
    run_id: "policy-test",
    step,
  };
}
