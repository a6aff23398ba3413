/** Whether a principal may decide a request, and by whose authority. */
import { forbidden, type SvcError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/glob.ts";
import type { ApprovalDoc, Delegation } from "../../model/approval.ts";
import { hasRole, type Principal, ROLE_MESSAGES } from "../../model/roles.ts";

export interface Authority {
  /** The principal whose lent authority is used, or null for one's own. */
  for: string | null;
  groups: readonly string[];
}

export interface AuthorityFacts {
  four_eyes: boolean;
  now: number;
  /** Delegations to the principal, ended ones included. */
  delegations: readonly Delegation[];
}

export function authorityOver(
  approval: ApprovalDoc,
  principal: Principal,
  facts: AuthorityFacts,
): Authority | SvcError {
  if (facts.four_eyes && approval.internal.principal === principal.id) {
    return forbidden("you cannot decide your own request");
  }
  const wanted = approval.approvers.groups;
  const inGroups = (groups: readonly string[]) =>
    wanted.length === 0 || groups.some((group) => wanted.includes(group));
  const own = hasRole(principal, "approver");
  if (own && inGroups(principal.groups)) return { for: null, groups: principal.groups };
  for (const delegation of facts.delegations) {
    if (!lends(delegation, approval, facts) || !inGroups(delegation.authority.groups)) continue;
    return { for: delegation.from, groups: delegation.authority.groups };
  }
  if (!own) return forbidden(ROLE_MESSAGES.approver);
  return forbidden(`this request is for members of ${wanted.join(" or ")}`);
}

function lends(delegation: Delegation, approval: ApprovalDoc, facts: AuthorityFacts): boolean {
  if (delegation.revoked_ms !== null || facts.now >= delegation.expires_ms) return false;
  // Lent authority cannot do what its owner may not: decide the owner's own request.
  if (facts.four_eyes && delegation.authority.principal === approval.internal.principal) return false;
  return globMatches(delegation.tools, approval.tool);
}
