/**
 * Checks claims, which are statements of a policy about all calls. Limits, budgets and flows can only make a decision
 * stricter after earlier calls, so a claim holds for every call if it holds for every first call. That is the proof.
 */
import { globMatches } from "../../../kernel/text/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { combineFindings } from "../combine.ts";
import { type CompiledPolicy, isTimed } from "../compile.ts";
import { evaluatePolicy, type PolicyEvaluation } from "../evaluate.ts";
import type { RuleAction } from "../finding.ts";
import type { ClaimDoc } from "../schema.ts";
import { UndecidableError } from "./automata/machine.ts";
import {
  type ConcreteCall,
  type ExampleInput,
  type ToolClass,
  toConcreteCall,
  toExampleInput,
  toolClasses,
} from "./calls.ts";
import { CallDomain, type TestLiteral } from "./domain.ts";
import { type ConditionDoc, entriesOf, type ProverEntry } from "./entries.ts";
import {
  type ChosenAtoms,
  evaluateConjunction,
  exploreProduct,
  orderVariables,
  type SearchBudget,
} from "./search.ts";

const CLAIM_RESULTS = ["proved", "counterexample", "incomplete"] as const;

export interface ClaimResult {
  name: string;
  result: (typeof CLAIM_RESULTS)[number];
  at_least: "require_approval" | "deny";
  /** A call that violates the claim, with the decision of the decision function. */
  counterexample?: { input: ExampleInput; got: RuleAction; rules: string[] };
  /** Why the search ended without a result, and how far it came. */
  reason?: string;
}

interface Proving {
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
}

const RANK: Record<RuleAction, number> = { allow: 0, require_approval: 1, deny: 2 };

export function checkClaims(policy: CompiledPolicy, proving: Proving): ClaimResult[] {
  return (policy.doc.claims ?? []).map((claim) => checkClaim(policy, claim, proving));
}

function checkClaim(
  policy: CompiledPolicy,
  claim: ClaimDoc,
  { labels, now_ms, budget }: Proving,
): ClaimResult {
  const { name, at_least } = claim;
  const entries = entriesOf(policy).filter(({ section }) => section !== "flows");
  const globs = [...entries.map(({ match }) => match.tool), claim.match?.tool, claim.unless?.tool];
  let done = 0;
  let all = 0;
  let undecided: string | null = null;
  try {
    const classes = toolClasses(
      globs.filter((glob) => glob !== undefined),
      labels,
    );
    all = classes.length;
    for (const tools of classes) {
      const found = violation({ policy, entries, claim, now_ms }, tools, budget);
      if (found !== null && "call" in found) {
        const { action, rules } = judge(policy, found);
        const input = toExampleInput(found, isTimed(policy));
        return { name, at_least, result: "counterexample", counterexample: { input, got: action, rules } };
      }
      undecided ??= found?.undecided ?? null;
      done++;
    }
  } catch (error) {
    if (!(error instanceof UndecidableError)) throw error;
    undecided = error.message;
  }
  if (undecided === null) return { name, at_least, result: "proved" };
  const covered = all === 0 ? "" : `; ${done} of ${all} classes of tools were checked`;
  return { name, at_least, result: "incomplete", reason: `${undecided}${covered}` };
}

function judge(policy: CompiledPolicy, { call, at_ms }: ConcreteCall): PolicyEvaluation {
  return evaluatePolicy(policy, call, at_ms);
}

interface Part {
  entry: ProverEntry;
  literals: TestLiteral[];
}

interface Question {
  policy: CompiledPolicy;
  entries: readonly ProverEntry[];
  claim: ClaimDoc;
  now_ms: number;
}

function violation(
  { policy, entries, claim, now_ms }: Question,
  tools: ToolClass,
  budget: SearchBudget,
): ConcreteCall | { undecided: string } | null {
  const concerned = matchesTool(tools.tool);
  if (!concerned(claim.match ?? {}) || (claim.unless && isOnlyTool(claim.unless) && concerned(claim.unless)))
    return null;
  const domain = new CallDomain([policy], tools.labels);
  const when = (claim.when ?? []) as readonly ConditionDoc[];
  const claimed = domain.literals({ match: claim.match ?? {}, when });
  const unless =
    claim.unless !== undefined && concerned(claim.unless)
      ? domain.literals({ match: claim.unless, when: [] })
      : null;
  const parts = entries
    .filter(({ match }) => concerned(match))
    .map((entry): Part => ({ entry, literals: domain.addEntry(policy, entry) }));
  domain.close(now_ms);
  const enough = parts.filter(
    ({ entry }) =>
      entry.section === "rules" && !entry.passes_sandboxed && RANK[entry.action] >= RANK[claim.at_least],
  );
  const cut = (chosen: ChosenAtoms) =>
    evaluateConjunction(claimed, chosen) === false ||
    (unless !== null && evaluateConjunction(unless, chosen) === true) ||
    enough.some(({ literals }) => evaluateConjunction(literals, chosen) === true);
  let answer: ConcreteCall | { undecided: string } | null = null;
  exploreProduct(
    orderVariables(domain.variables, [...claimed, ...enough.flatMap(({ literals }) => literals)]),
    cut,
    (chosen) => {
      const found = tryCall(policy, tools, chosen, claim.at_least);
      if (found !== null && (answer === null || "call" in found)) answer = found;
      return found !== null && "call" in found;
    },
    budget,
  );
  return answer;
}

/**
 * Returns the call if its decision is weaker than claimed. A content check can block it only because of the values
 * tried.
 */
function tryCall(
  policy: CompiledPolicy,
  tools: ToolClass,
  chosen: ChosenAtoms,
  at_least: "require_approval" | "deny",
): ConcreteCall | { undecided: string } | null {
  let undecided: string | null = null;
  for (const pick of [0, 1, 2]) {
    const plain = toConcreteCall(tools, chosen, pick);
    const confined = { ...plain, call: { ...plain.call, sandboxed: "claim" } };
    // A sandbox lifts rules and adds none, so the call from inside is the weakest one.
    const one = RANK[judge(policy, plain).action] < RANK[at_least] ? plain : confined;
    const { action, findings } = judge(policy, one);
    if (RANK[action] < RANK[at_least]) return one;
    const others = findings.filter(({ stage }) => stage !== "content");
    if (others.length === findings.length || RANK[combineFindings(policy, others).action] >= RANK[at_least])
      return null;
    if (!one.alone) undecided = "a content check matches every value that was tried";
  }
  return undecided === null ? null : { undecided };
}

export function matchesTool(tool: string): (match: ProverEntry["match"]) => boolean {
  const known = new Map<string, boolean>();
  return ({ tool: glob }) => {
    if (glob === undefined) return true;
    let answer = known.get(glob);
    if (answer === undefined) {
      answer = globMatches(glob, tool);
      known.set(glob, answer);
    }
    return answer;
  };
}

function isOnlyTool(match: ProverEntry["match"]): boolean {
  return Object.keys(match).every((field) => field === "tool");
}
