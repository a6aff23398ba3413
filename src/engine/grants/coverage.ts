/**
 * Whether a grant stands in for the decision that a call needs: a pure function. It stands in only for what its
 * giver could have decided alone now, and lifts nothing but the need that the rules which it names have raised.
 */
import { globMatches } from "../../kernel/glob.ts";
import { amountOf, conditionsHold, type GrantDoc, hasOnlyArgs, isLive } from "../../model/grant.ts";
import { type ApprovalNeed, mergeTerms, needsMet } from "../../model/policy/approvals.ts";
import { combine } from "../../model/policy/combine.ts";
import type { Policy, PolicyCall } from "../../model/policy/compile.ts";
import { addUp } from "../../model/policy/decimal.ts";
import type { Finding } from "../../model/policy/finding.ts";
import type { Authority } from "../approvals/authority.ts";

/** A grant with what its giver may decide now. */
export interface GrantInHand {
  doc: GrantDoc;
  /** Whether its giver is an admin now. */
  admin: boolean;
  /** Each authority that its giver could decide calls of this tool by. */
  authorities: readonly Authority[];
}

export interface GrantedCall {
  now: number;
  call: PolicyCall;
  policy: Policy;
  /** Who opened the run. */
  principal: string;
}

/** One use of a grant. */
export interface GrantUse {
  id: string;
  /** The number of this use, and how many there are. */
  use: number;
  max_uses: number;
  spent: number;
}

/** The first of the grants that covers the call, as it would be used. */
export function coveringGrant(
  grants: readonly GrantInHand[],
  asked: GrantedCall,
  findings: readonly Finding[],
): GrantUse | null {
  for (const grant of grants) {
    const use = useOf(grant, asked, findings);
    if (use !== null) return use;
  }
  return null;
}

function useOf(
  { doc, admin, authorities }: GrantInHand,
  asked: GrantedCall,
  findings: readonly Finding[],
): GrantUse | null {
  const { now, call, policy } = asked;
  if (!isLive(doc, now) || !matches(doc, call) || isOwn(doc, asked)) return null;
  // Of a tool that nothing is known of it is not known either whether it can be taken back.
  if (call.effect === null || (call.effect === "irreversible" && !(doc.irreversible && admin))) return null;
  if (!hasOnlyArgs(doc, call.args) || !conditionsHold(doc.when, call.args)) return null;
  const amount = amountOf(doc, call.args);
  if (amount === null) return null;
  const spent = addUp(doc.spent, amount);
  if (doc.budget !== null && spent > doc.budget.max) return null;
  const needs = liftedNeeds(doc, policy, findings);
  if (needs === null || !authorities.some((authority) => needsMet(needs, [authority]))) return null;
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

/** By name as well: people are told apart by it, whatever kind of credential they come with. */
function isOwn({ by, internal }: GrantDoc, { call, principal }: GrantedCall): boolean {
  return by === call.actor || internal.giver.principal === principal;
}

/** What a person would have to satisfy in place of the grant; null where something else asks or refuses, too. */
function liftedNeeds(
  { rules }: Pick<GrantDoc, "rules">,
  policy: Pick<Policy, "approvals">,
  findings: readonly Finding[],
): ApprovalNeed[] | null {
  const lifts = ({ stage, action, rule }: Finding) =>
    stage === "rule" && action === "require_approval" && rule !== null && rules.includes(rule);
  const lifted = findings.filter(lifts);
  if (lifted.length === 0) return null;
  const rest = findings.filter((finding) => !lifts(finding));
  if (combine(policy, rest).action !== "allow") return null;
  return mergeTerms(lifted.map(({ approval }) => approval ?? policy.approvals)).needs;
}
