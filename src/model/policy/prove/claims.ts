/**
 * Claims: statements of a policy about all calls. Limits, budgets and flows can only make an answer stricter by what
 * was counted before, so that a claim holds for every call if it holds for every first one; and so it is proved.
 */
import { globMatches } from "../../../kernel/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { combine } from "../combine.ts";
import { isTimed, type Policy } from "../compile.ts";
import { type Evaluation, evaluatePolicy } from "../evaluate.ts";
import type { RuleAction } from "../finding.ts";
import type { ClaimDoc } from "../schema.ts";
import {
  type Concrete,
  concrete,
  type ExampleInput,
  exampleOf,
  type ToolClass,
  toolClasses,
} from "./calls.ts";
import { Domain, type Literal } from "./domain.ts";
import { type ConditionDoc, type Entry, entriesOf } from "./entries.ts";
import { Undecidable } from "./machine.ts";
import { type Chosen, explore, holds, ordered, type SearchBudget } from "./search.ts";

const CLAIM_RESULTS = ["proved", "counterexample", "incomplete"] as const;

export interface ClaimResult {
  name: string;
  result: (typeof CLAIM_RESULTS)[number];
  at_least: "require_approval" | "deny";
  /** A call for which the claim does not hold, and what the decision function says to it. */
  counterexample?: { input: ExampleInput; got: RuleAction; rules: string[] };
  /** Why it could not be decided, and how far it was. */
  reason?: string;
}

interface Proving {
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
}

const RANK: Record<RuleAction, number> = { allow: 0, require_approval: 1, deny: 2 };

export function checkClaims(policy: Policy, proving: Proving): ClaimResult[] {
  return (policy.doc.claims ?? []).map((claim) => checkClaim(policy, claim, proving));
}

function checkClaim(policy: Policy, claim: ClaimDoc, { labels, now_ms, budget }: Proving): ClaimResult {
  const { name, at_least } = claim;
  const entries = entriesOf(policy).filter(({ section }) => section !== "flows");
  const globs = [...entries.map(({ match }) => match.tool), claim.match?.tool, claim.unless?.tool];
  let done = 0;
  let all = 0;
  let doubt: string | null = null;
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
        const input = exampleOf(found, isTimed(policy));
        return { name, at_least, result: "counterexample", counterexample: { input, got: action, rules } };
      }
      doubt ??= found?.doubt ?? null;
      done++;
    }
  } catch (error) {
    if (!(error instanceof Undecidable)) throw error;
    doubt = error.message;
  }
  if (doubt === null) return { name, at_least, result: "proved" };
  const covered = all === 0 ? "" : `; ${done} of ${all} classes of tools were gone through`;
  return { name, at_least, result: "incomplete", reason: `${doubt}${covered}` };
}

function judge(policy: Policy, { call, at_ms }: Concrete): Evaluation {
  return evaluatePolicy(policy, call, at_ms);
}

interface Part {
  entry: Entry;
  literals: Literal[];
}

interface Question {
  policy: Policy;
  entries: readonly Entry[];
  claim: ClaimDoc;
  now_ms: number;
}

function violation(
  { policy, entries, claim, now_ms }: Question,
  tools: ToolClass,
  budget: SearchBudget,
): Concrete | { doubt: string } | null {
  const concerned = concerning(tools.tool);
  if (!concerned(claim.match ?? {}) || (claim.unless && isOnlyTool(claim.unless) && concerned(claim.unless)))
    return null;
  const domain = new Domain([policy], tools.labels);
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
    ({ entry }) => entry.section === "rules" && RANK[entry.action] >= RANK[claim.at_least],
  );
  const cut = (chosen: Chosen) =>
    holds(claimed, chosen) === false ||
    (unless !== null && holds(unless, chosen) === true) ||
    enough.some(({ literals }) => holds(literals, chosen) === true);
  let answer: Concrete | { doubt: string } | null = null;
  explore(
    ordered(domain.variables, [...claimed, ...enough.flatMap(({ literals }) => literals)]),
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

/** The call, if it gets less than is claimed; content checks may hold it back only because of the values tried. */
function tryCall(
  policy: Policy,
  tools: ToolClass,
  chosen: Chosen,
  at_least: "require_approval" | "deny",
): Concrete | { doubt: string } | null {
  let doubt: string | null = null;
  for (const pick of [0, 1, 2]) {
    const one = concrete(tools, chosen, pick);
    const { action, findings } = judge(policy, one);
    if (RANK[action] < RANK[at_least]) return one;
    const others = findings.filter(({ stage }) => stage !== "content");
    if (others.length === findings.length || RANK[combine(policy, others).action] >= RANK[at_least])
      return null;
    if (!one.alone) doubt = "a content check speaks on every value that was tried";
  }
  return doubt === null ? null : { doubt };
}

export function concerning(tool: string): (match: Entry["match"]) => boolean {
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

function isOnlyTool(match: Entry["match"]): boolean {
  return Object.keys(match).every((field) => field === "tool");
}
