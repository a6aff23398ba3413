/** Checks whether a principal can decide a request, and by which authority. */

import { forbiddenError, type SvcError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { isInForce } from "../expiry.ts";
import {
  type CallerPrincipal,
  hasRole,
  type ResolvePrincipal,
  ROLE_MESSAGES,
  requestersOf,
  type StoredPrincipal,
  seesTenant,
} from "../roles.ts";
import { type ApprovalDoc, recipientOf, type StoredDelegation } from "./approval.ts";

export interface DecidingAuthority {
  /** Principal whose delegated authority is used; null for the decider's own authority. */
  for: string | null;
  groups: readonly string[];
  /** Delegator as stored when delegating. */
  lender?: StoredPrincipal | undefined;
  /** Delegation that grants the authority. */
  delegation?: string | undefined;
}

export interface AuthorityFacts {
  four_eyes: boolean;
  now: number;
  /** Delegations to a principal of this name, including ended ones. */
  delegations: readonly StoredDelegation[];
  /** Resolves delegators to their current authority. Without it, delegations grant nothing. */
  today: ResolvePrincipal | undefined;
  /** Delegations count only if their delegators signed them. */
  signed?: boolean;
}

/**
 * Throws under four eyes if the decider has the name of the run's actor or of a principal that acts for it. Compares names,
 * because a token can share its name with a key.
 */
export function assertNotOwnRequest(
  run: { actor: string; acting?: readonly string[] | undefined },
  deciding: { name: string },
  four_eyes: boolean,
): void {
  if (four_eyes && requestersOf(run).includes(deciding.name))
    throw forbiddenError("you cannot decide your own request", "own_request");
}

/** Authorities by which the principal can decide, its own first; an error if there are none. */
export function authoritiesOver(
  approval: ApprovalDoc,
  principal: CallerPrincipal,
  facts: AuthorityFacts,
): DecidingAuthority[] | SvcError {
  const wanted = approval.approvers.groups;
  const inGroups = ({ groups }: DecidingAuthority) =>
    wanted.length === 0 || groups.some((group) => wanted.includes(group));
  const found = authoritiesFor(approval, principal, facts).filter(inGroups);
  if (found.length > 0) return found;
  if (!hasRole(principal, "approver")) return forbiddenError(ROLE_MESSAGES.approver, "role_required");
  return forbiddenError(`this request is for members of ${wanted.join(" or ")}`, "group_required");
}

interface AskedCall {
  tool: string | null;
  actor: string;
  acting?: readonly string[] | undefined;
  tenant: string | null;
}

/** Authorities of the principal for this tool, regardless of groups. `tool` is null for any tool. */
export function authoritiesFor(
  { tool, tenant, ...who }: AskedCall,
  principal: CallerPrincipal,
  facts: AuthorityFacts,
): DecidingAuthority[] {
  const found: DecidingAuthority[] = [];
  if (hasRole(principal, "approver") && seesTenant(principal, tenant))
    found.push({ for: null, groups: principal.groups });
  for (const delegation of facts.delegations) {
    if (recipientOf(delegation) !== principal.id) continue;
    if (facts.signed === true && delegation.signature === undefined) continue;
    const lender = facts.today?.(delegation.authority) ?? null;
    if (lender !== null && !seesTenant(lender, tenant)) continue;
    const groups = delegatedGroups(delegation, facts);
    if (groups === null || (tool !== null && !globMatches(delegation.tools, tool))) continue;
    // A delegate cannot decide the delegator's own request, since the delegator cannot either.
    if (facts.four_eyes && requestersOf(who).includes(delegation.from)) continue;
    found.push({ for: delegation.from, groups, lender: delegation.authority, delegation: delegation.id });
  }
  return found;
}

/** Groups that a delegation grants now: those at creation that its delegator still has. */
export function delegatedGroups(
  delegation: StoredDelegation,
  { now, today }: Pick<AuthorityFacts, "now" | "today">,
): string[] | null {
  if (!isInForce(delegation, now)) return null;
  const lender = today?.(delegation.authority) ?? null;
  if (lender === null || !hasRole(lender, "approver")) return null;
  return delegation.authority.groups.filter((group) => lender.groups.includes(group));
}
