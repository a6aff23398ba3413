/**
 * One call tried on a policy, as a person types it: what each entry says of it, and the test that would hold the
 * answer. It is judged as the policy's own tests are, so that a test that is kept says the same tomorrow.
 */

import { tryTimestamp } from "../../kernel/duration.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/glob.ts";
import type { Json } from "../../kernel/json.ts";
import type { ToolLabels } from "../manifest/labels.ts";
import { schemaProblems, showPath } from "../problems.ts";
import { parseYaml } from "../yaml.ts";
import { effectiveFindings } from "./combine.ts";
import type { Policy } from "./compile.ts";
import type { Evaluation } from "./evaluate.ts";
import type { Finding } from "./finding.ts";
import type { RiskResult } from "./risk.ts";
import { type PolicyTestDoc, policyTestInput } from "./schema.ts";
import { evaluateTest, labelInput, restsOnTime } from "./tests.ts";

/** The fields of the form, each as typed; an empty one was left out. */
export interface TypedCall {
  tool: string;
  /** JSON or YAML. */
  args: string;
  actor: string;
  at: string;
  tenant: string;
  environment: string;
  /** A list of calls, JSON or YAML. */
  earlier: string;
  repeat: string;
}

export interface Spoken extends Pick<Finding, "stage" | "action" | "rule" | "reason"> {
  /** An explicit allow takes it away. */
  lifted: boolean;
}

export interface Trial extends Pick<Evaluation, "action" | "rules" | "reasons" | "hints"> {
  /** Everything that said something, in the order in which a call is judged. */
  spoke: Spoken[];
  risk: Pick<RiskResult, "score" | "factors">;
  /** Whether a manifest declares the tool. */
  declared: boolean;
  /** The arguments that entries about this tool read. */
  reads: string[];
  test: PolicyTestDoc;
}

type Labels = ReadonlyMap<string, ToolLabels>;

/** A call without a time is made now. */
export function tryCall(policy: Policy, typed: TypedCall, labels: Labels, now_ms: number): Trial {
  const input = inputOf(typed);
  const found = evaluateTest(
    policy,
    { name: "trial", input, expect: "allow" },
    { manifestFor: (tool) => labels.get(tool) ?? null, now_ms },
  );
  const standing = new Set(effectiveFindings(found.findings));
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
      lifted: !standing.has(finding),
    })),
    risk: { score: risk.score, factors: risk.factors },
    declared: labels.has(input.tool),
    reads: readsOf(policy, input.tool),
    test: testOf(policy, { at: new Date(now_ms).toISOString(), ...input }, found, labels),
  };
}

function inputOf(typed: TypedCall): PolicyTestDoc["input"] {
  const { args, earlier, repeat, ...words } = typed;
  const value: Record<string, Json> = {};
  for (const [name, text] of Object.entries(words)) if (text !== "") value[name] = text;
  if (args.trim() !== "") value["args"] = parseYaml(args, "arguments").value;
  if (earlier.trim() !== "") value["earlier"] = parseYaml(earlier, "earlier calls").value;
  if (repeat !== "") value["repeat"] = Number(repeat);
  const { data, problems } = schemaProblems(policyTestInput, value);
  if (problems.length > 0)
    throw new ProblemsError(problems.map(({ path, message }) => `${showPath(path)}: ${message}`));
  return data as PolicyTestDoc["input"];
}

/** The test that holds this answer. The time and the tool's labels are in it only where the answer rests on them. */
function testOf(
  policy: Policy,
  input: PolicyTestDoc["input"],
  { action, rules }: Evaluation,
  labels: Labels,
): PolicyTestDoc {
  const known = labels.get(input.tool);
  const { at, ...timeless } = input;
  const shown = restsOnTime(policy, input, known ?? null) ? input : timeless;
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

const MOST_READS = 30;

function readsOf({ doc }: Policy, tool: string): string[] {
  const about = ({ match }: { match?: { tool?: string | undefined } | undefined }) =>
    match?.tool === undefined || globMatches(match.tool, tool);
  const paths = [
    ...(doc.rules ?? []).filter(about).flatMap(({ when }) => (when ?? []).map(({ path }) => path)),
    ...(doc.budgets ?? []).filter(about).map(({ path }) => path),
  ];
  return [...new Set(paths)].slice(0, MOST_READS);
}
