/** Runs the tests in a policy. A test without `at` runs at the current time, and counters start empty for each test. */
import { tryTimestamp } from "../../../kernel/duration.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { labelTexts, type ToolLabels } from "../../manifest/labels.ts";
import { argsForPolicy, type PolicyCall } from "../call.ts";
import type { CounterDoc } from "../checks/counters.ts";
import type { CompiledPolicy } from "../compile.ts";
import { evaluatePolicy, type PolicyEvaluation } from "../evaluate.ts";
import type { PolicyTestDoc } from "../schema.ts";
import { EarlierValues } from "./earlier-values.ts";

export interface PolicyTestResult {
  name: string;
  ok: boolean;
  /** `deny`, or `deny by big-refunds` if the test names a rule. */
  expected: string;
  got: string;
  rule?: string;
}

/** Context of a test: the labels of its tools, and its time. */
export interface TestSetting {
  manifestFor: (tool: string) => ToolLabels | null;
  /** Time of every call without `at`. */
  now_ms: number;
}

export function runPolicyTests(policy: CompiledPolicy, setting: TestSetting): PolicyTestResult[] {
  return (policy.doc.tests ?? []).map((test) => runTest(policy, test, setting));
}

function runTest(policy: CompiledPolicy, test: PolicyTestDoc, setting: TestSetting): PolicyTestResult {
  const { action, rules } = evaluateTest(policy, test, setting);
  const { name, expect, rule } = test;
  if (rule === undefined) {
    const ok = action === expect;
    // Rules first, because an author who fixes the test looks for them.
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

/** Decides the test's call, or the last of its repetitions, after the earlier calls. */
export function evaluateTest(
  policy: CompiledPolicy,
  { input }: PolicyTestDoc,
  { manifestFor, now_ms }: TestSetting,
): PolicyEvaluation {
  const counters = new Map<string, CounterDoc>();
  const values = new EarlierValues(policy, input.given ?? []);
  let step = 0;
  const judge = (one: TestCall) => {
    const at_ms = timeOf(one.at ?? input.at) ?? now_ms;
    const call = testedCall(input, one, manifestFor(one.tool), step);
    return { call, at_ms, found: evaluatePolicy(policy, values.factsOf(call, at_ms), at_ms, counters) };
  };
  const accept = (one: TestCall, result: JsonValue | undefined) => {
    const { call, at_ms, found } = judge(one);
    for (const { key, doc } of found.charges) counters.set(key, doc);
    values.add({ call, at_ms, result, declared: call.effect !== null });
    step++;
  };
  for (const earlier of input.earlier ?? []) accept(earlier, earlier.result as JsonValue | undefined);
  // The repeated call itself returns nothing.
  for (let n = 1; n < (input.repeat ?? 1); n++) accept(input, null);
  return judge(input).found;
}

type TestInput = PolicyTestDoc["input"];
type TestCall = Omit<NonNullable<TestInput["earlier"]>[number], "result">;

/** Labels of a tool in the form of a test's input. */
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

/**
 * True if the result depends on the time: a window or freeze applies to the call, or earlier calls have their own
 * times.
 */
export function dependsOnTime(policy: CompiledPolicy, input: TestInput, labels: ToolLabels | null): boolean {
  if ((input.earlier ?? []).some(({ at }) => at !== undefined)) return true;
  return [labels, null].some((known) => {
    const call = testedCall(input, input, known, 0);
    return policy.windows.matching(call).length + policy.freezes.matching(call).length > 0;
  });
}

function testedCall(run: TestInput, call: TestCall, labels: ToolLabels | null, step: number): PolicyCall {
  return {
    tool: call.tool,
    args: argsForPolicy(call.tool, (call.args ?? {}) as JsonValue),
    actor: run.actor ?? "policy-test",
    acting: run.acting ?? [],
    tenant: run.tenant ?? null,
    environment: run.environment ?? null,
    effect: call.effect ?? labels?.effect ?? null,
    data_class: call.data_class ?? labels?.data_class ?? null,
    blast_radius: call.blast_radius ?? labels?.blast_radius ?? null,
    source: call.source === undefined ? (labels?.source ?? []) : labelTexts(call.source),
    sink: call.sink === undefined ? (labels?.sink ?? []) : labelTexts(call.sink),
    ...(run.sandboxed === true ? { sandboxed: "policy-test" } : {}),
    run_id: "policy-test",
    step,
  };
}
