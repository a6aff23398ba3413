/**
 * Evaluates one call that a user types in: the findings of each entry, and a test that preserves the result. Evaluates
 * like the policy's own tests, so that a saved test keeps its result.
 */
import { tryTimestamp } from "../../../kernel/duration.ts";
import { ProblemsError } from "../../../kernel/errors.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { globMatches } from "../../../kernel/text/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { schemaProblems, showPath } from "../../schema-problems.ts";
import { parseYaml } from "../../yaml.ts";
import type { RiskResult } from "../checks/risk.ts";
import { effectiveFindings } from "../combine.ts";
import type { CompiledPolicy } from "../compile.ts";
import type { PolicyEvaluation } from "../evaluate.ts";
import type { PolicyFinding } from "../finding.ts";
import { type PolicyTestDoc, policyTestInput } from "../schema.ts";
import { dependsOnTime, evaluateTest, labelInput } from "./tests.ts";

/** Fields of the form as typed; an empty field is omitted. */
export interface TypedCall {
  tool: string;
  /** JSON or YAML. */
  args: string;
  actor: string;
  at: string;
  tenant: string;
  environment: string;
  /** List of calls, as JSON or YAML. */
  earlier: string;
  repeat: string;
}

export interface TrialFinding extends Pick<PolicyFinding, "stage" | "action" | "rule" | "reason"> {
  /** An explicit allow overrides it. */
  lifted: boolean;
}

export interface PolicyTrial extends Pick<PolicyEvaluation, "action" | "rules" | "reasons" | "hints"> {
  /** All findings, in evaluation order. */
  spoke: TrialFinding[];
  risk: Pick<RiskResult, "score" | "factors">;
  /** True if a manifest declares the tool. */
  declared: boolean;
  /** Arguments that entries for this tool read. */
  reads: string[];
  test: PolicyTestDoc;
}

type Labels = ReadonlyMap<string, ToolLabels>;

/** Evaluates the call, at the current time unless the user gives one. */
export function tryCall(
  policy: CompiledPolicy,
  typed: TypedCall,
  labels: Labels,
  now_ms: number,
): PolicyTrial {
  const input = inputOf(typed);
  const found = evaluateTest(
    policy,
    { name: "trial", input, expect: "allow" },
    { manifestFor: (tool) => labels.get(tool) ?? null, now_ms },
  );
  const effective = new Set(effectiveFindings(found.findings));
  const { action, rules, reasons, hints, risk } = found;
  return {
    action,
    rules,
    reasons,
    hints,
    spoke: found.findings.map((finding) => ({
      stage: finding.stage,
      action: finding.action,
      rule: finding.rule,
      reason: finding.reason,
      lifted: !effective.has(finding),
    })),
    risk: { score: risk.score, factors: risk.factors },
    declared: labels.has(input.tool),
    reads: readsOf(policy, input.tool),
    test: testOf(policy, { at: new Date(now_ms).toISOString(), ...input }, found, labels),
  };
}

function inputOf(typed: TypedCall): PolicyTestDoc["input"] {
  const { args, earlier, repeat, ...words } = typed;
  const value: Record<string, JsonValue> = {};
  for (const [name, text] of Object.entries(words)) if (text !== "") value[name] = text;
  if (args.trim() !== "") value["args"] = parseYaml(args, "arguments").value;
  if (earlier.trim() !== "") value["earlier"] = parseYaml(earlier, "earlier calls").value;
  if (repeat !== "") value["repeat"] = Number(repeat);
  const { data, problems } = schemaProblems(policyTestInput, value);
  if (problems.length > 0)
    throw new ProblemsError(problems.map(({ path, message }) => `${showPath(path)}: ${message}`));
  return data as PolicyTestDoc["input"];
}

/** Test that preserves this result. It contains the time and the tool's labels only if the result depends on them. */
function testOf(
  policy: CompiledPolicy,
  input: PolicyTestDoc["input"],
  { action, rules }: PolicyEvaluation,
  labels: Labels,
): PolicyTestDoc {
  const known = labels.get(input.tool);
  const { at, ...timeless } = input;
  const shown = dependsOnTime(policy, input, known ?? null) ? input : timeless;
  const now_ms = tryTimestamp(at!)!;
  const labelled = known === undefined ? {} : labelInput(known);
  const setting = { manifestFor: () => null, now_ms };
  const holds = (said: PolicyTestDoc["input"]) => {
    const got = evaluateTest(policy, { name: "trial", input: said, expect: "allow" }, setting);
    return got.action === action && String(got.rules) === String(rules);
  };
  const said = holds(shown) ? shown : { ...shown, ...labelled, ...shown };
  const names = new Set((policy.doc.tests ?? []).map(({ name }) => name));
  const base = `${input.tool}: ${action.replace("_", " ")}`;
  let name = base;
  for (let n = 2; names.has(name); n++) name = `${base} (${n})`;
  const rule = rules[0];
  return { name, input: said, expect: action, ...(rule === undefined ? {} : { rule }) };
}

const MAX_LISTED_READS = 30;

function readsOf({ doc }: CompiledPolicy, tool: string): string[] {
  const about = ({ match }: { match?: { tool?: string | undefined } | undefined }) =>
    match?.tool === undefined || globMatches(match.tool, tool);
  const paths = [
    ...(doc.rules ?? []).filter(about).flatMap(({ when }) => (when ?? []).map(({ path }) => path)),
    ...(doc.budgets ?? []).filter(about).map(({ path }) => path),
  ];
  return [...new Set(paths)].slice(0, MAX_LISTED_READS);
}
