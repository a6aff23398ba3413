/**
 * Decides, as a pure function, if a grant replaces the approval that a call needs. It does so only if its giver could
 * approve the call alone now, and only for approvals required by the rules it names.
 */
import { globMatches } from "../../kernel/text/glob.ts";
import { type MergedApproval, mergeTerms, needsMet } from "../../rules/policy/checks/approvals.ts";
import { sumAmounts } from "../../rules/policy/checks/decimal.ts";
import { combineFindings } from "../../rules/policy/combine.ts";
import type { CompiledPolicy, PolicyCall } from "../../rules/policy/compile.ts";
import type { PolicyFinding } from "../../rules/policy/finding.ts";
import type { DecidingAuthority } from "../approvals/authority.ts";
import { requestersOf } from "../roles.ts";
import { budgetAmount, conditionsHold, type GrantDoc, hasOnlyArgs, isGrantUsable } from "./grant.ts";

/** Grant with the current authority of its giver. */
export interface ResolvedGrant {
  doc: GrantDoc;
  /** True if its giver is an admin now. */
  admin: boolean;
  /** Authorities of its giver for this tool. */
  authorities: readonly DecidingAuthority[];
}

export interface GrantedCall {
  now: number;
  call: PolicyCall;
  policy: CompiledPolicy;
  /** Principal that opened the run. */
  principal: string;
}

/** One use of a grant. */
export interface GrantUse {
  id: string;
  /** Number of this use, and the maximum. */
  use: number;
  max_uses: number;
  spent: number;
}

/** First grant that covers the call, with its use. */
export function findCoveringGrant(
  grants: readonly ResolvedGrant[],
  asked: GrantedCall,
  findings: readonly PolicyFinding[],
): GrantUse | null {
  for (const grant of grants) {
    const use = useOf(grant, asked, findings);
    if (use !== null) return use;
  }
  return null;
}

function useOf(
  { doc, admin, authorities }: ResolvedGrant,
  asked: GrantedCall,
  findings: readonly PolicyFinding[],
): GrantUse | null {
  const { now, call, policy } = asked;
  if (!isGrantUsable(doc, now) || !matches(doc, call) || isOwn(doc, asked)) return null;
  // The calls of an unknown tool could be irreversible.
  if (call.effect === null || (call.effect === "irreversible" && !(doc.irreversible && admin))) return null;
  if (!hasOnlyArgs(doc, call.args) || !conditionsHold(doc.when, call.args)) return null;
  const amount = budgetAmount(doc, call.args);
  if (amount === null) return null;
  const spent = sumAmounts(doc.spent, amount);
  if (doc.budget !== null && spent > doc.budget.max) return null;
  const lifted = liftedTerms(doc, policy, findings);
  if (lifted === null) return null;
  const { needs, signed } = lifted;
  const { signature } = doc.internal;
  if (signed && signature?.payload.policy_hash !== policy.hash) return null;
  if (!authorities.some((authority) => needsMet(needs, [authority]))) return null;
  return { id: doc.id, use: doc.uses + 1, max_uses: doc.max_uses, spent };
}

function matches({ match }: GrantDoc, call: PolicyCall): boolean {
  const fits = (glob: string | null, value: string | null) => glob === null || globMatches(glob, value ?? "");
  return (
    globMatches(match.tool, call.tool) &&
    globMatches(match.actor, call.actor) &&
    fits(match.tenant, call.tenant) &&
    fits(match.environment, call.environment)
  );
}

/** Also compares names, which identify a person regardless of the kind of credential. */
function isOwn({ by, internal }: GrantDoc, { call, principal }: GrantedCall): boolean {
  return requestersOf(call).includes(by) || internal.giver.principal === principal;
}

/** Approval terms that the grant replaces; null if another finding also blocks the call or requires approval. */
function liftedTerms(
  { rules }: Pick<GrantDoc, "rules">,
  policy: Pick<CompiledPolicy, "approvals">,
  findings: readonly PolicyFinding[],
): MergedApproval | null {
  const lifts = ({ stage, action, rule }: PolicyFinding) =>
    stage === "rule" && action === "require_approval" && rule !== null && rules.includes(rule);
  const lifted = findings.filter(lifts);
  if (lifted.length === 0) return null;
  const rest = findings.filter((finding) => !lifts(finding));
  if (combineFindings(policy, rest).action !== "allow") return null;
  return mergeTerms(lifted.map(({ approval }) => approval ?? policy.approvals));
}
