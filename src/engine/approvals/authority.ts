/** Whether a principal may decide a request, and by whose authority. */
import { forbidden, type SvcError } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/glob.ts";
import { type ApprovalDoc, type Delegation, recipientOf } from "../../model/approval.ts";
import {
  hasRole,
  type KeptPrincipal,
  type Principal,
  ROLE_MESSAGES,
  seesTenant,
  type Today,
} from "../../model/roles.ts";

export interface Authority {
  /** The principal whose lent authority is used, or null for one's own. */
  for: string | null;
  groups: readonly string[];
  /** The lender as it was when it lent. */
  lender?: KeptPrincipal | undefined;
  /** The delegation that lends it. */
  delegation?: string | undefined;
}

export interface AuthorityFacts {
  four_eyes: boolean;
  now: number;
  /** Delegations to a principal of this name, ended ones included. */
  delegations: readonly Delegation[];
  /** The lenders as they are now; where they cannot be told, nothing is lent. */
  today: Today | undefined;
}

/** By name, as people are told apart wherever a person must not count: a token may share it with a key. */
export function assertNotOwn(run: { actor: string }, deciding: { name: string }, four_eyes: boolean): void {
  if (four_eyes && run.actor === deciding.name)
    throw forbidden("you cannot decide your own request", "own_request");
}

/** Each authority that the principal could decide by, its own first; an error where there is none. */
export function authoritiesOver(
  approval: ApprovalDoc,
  principal: Principal,
  facts: AuthorityFacts,
): Authority[] | SvcError {
  const wanted = approval.approvers.groups;
  const inGroups = ({ groups }: Authority) =>
    wanted.length === 0 || groups.some((group) => wanted.includes(group));
  const found = authoritiesFor(approval, principal, facts).filter(inGroups);
  if (found.length > 0) return found;
  if (!hasRole(principal, "approver")) return forbidden(ROLE_MESSAGES.approver, "role_required");
  return forbidden(`this request is for members of ${wanted.join(" or ")}`, "group_required");
}

/** What the principal could decide calls of this tool by, whatever groups are asked for; null: of some tool. */
export function authoritiesFor(
  { tool, actor, tenant }: { tool: string | null; actor: string; tenant: string | null },
  principal: Principal,
  facts: AuthorityFacts,
): Authority[] {
  const found: Authority[] = [];
  if (hasRole(principal, "approver") && seesTenant(principal, tenant))
    found.push({ for: null, groups: principal.groups });
  for (const delegation of facts.delegations) {
    if (recipientOf(delegation) !== principal.id) continue;
    const lender = facts.today?.(delegation.authority) ?? null;
    if (lender !== null && !seesTenant(lender, tenant)) continue;
    const groups = lentNow(delegation, facts);
    if (groups === null || (tool !== null && !globMatches(delegation.tools, tool))) continue;
    // Lent authority cannot do what its owner may not: decide the owner's own request.
    if (facts.four_eyes && delegation.from === actor) continue;
    found.push({ for: delegation.from, groups, lender: delegation.authority, delegation: delegation.id });
  }
  return found;
}

/** The groups that a delegation lends now: those it was lent with, as far as its lender still has them. */
export function lentNow(
  delegation: Delegation,
  { now, today }: Pick<AuthorityFacts, "now" | "today">,
): string[] | null {
  if (delegation.revoked_ms !== null || now >= delegation.expires_ms) return null;
  const lender = today?.(delegation.authority) ?? null;
  if (lender === null || !hasRole(lender, "approver")) return null;
  return delegation.authority.groups.filter((group) => lender.groups.includes(group));
}
