/** Giving a grant and taking it back. No person gives more than they could decide alone. */
import { conflict, forbidden, invalid, notFound, type SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Delegation } from "../../model/approval.ts";
import type { GrantDoc, GrantMatch, GrantTerms } from "../../model/grant.ts";
import { needsMet } from "../../model/policy/approvals.ts";
import type { Policy } from "../../model/policy/compile.ts";
import { hasRole, keptOf, type Principal, type Today } from "../../model/roles.ts";
import type { Unit } from "../../port/store.ts";
import { type Authority, authoritiesFor } from "../approvals/authority.ts";
import type { Core } from "../core.ts";
import { enterGrant, removeGrant, roomFor } from "./index-of.ts";

export interface GiveInput extends GrantTerms {
  reason: string;
  expires_ms: number;
}

export interface Giver {
  principal: Principal;
  at_the_data: boolean;
  /** Those to the giver's name, ended ones included. */
  delegations: readonly Delegation[];
  today: Today;
}

type GrantResult = { grant: GrantDoc; records: LedgerRecord[] };

/** Finds whatever giving it would be refused for, and gives nothing. */
export function checkGivingUnit(core: Core, giver: Giver, input: GiveInput): Unit<void> {
  const { match, created_ms } = grantOf(core, giver, input);
  return { run: (tx) => void roomFor(tx, match, created_ms) };
}

function grantOf(core: Core, giver: Giver, input: GiveInput): GrantDoc {
  const now = core.env.now();
  const { principal } = giver;
  if (input.expires_ms <= now) throw invalid("expires_at: is in the past");
  if (input.expires_ms > now + LIMITS.grant_days * 86_400_000)
    throw invalid(`expires_at: a grant lasts at most ${LIMITS.grant_days} days`);
  assertMayGive(core, giver, input);
  return {
    id: `grt_${core.env.uuid()}`,
    ...termsOf(input),
    reason: core.redact(input.reason),
    by: principal.name,
    created_ms: now,
    expires_ms: input.expires_ms,
    uses: 0,
    spent: 0,
    revoked_ms: null,
    internal: {
      giver: keptOf(principal),
      at_the_data: giver.at_the_data,
      delegations: giver.delegations.map(({ id }) => id),
    },
  };
}

export function giveUnit(core: Core, giver: Giver, input: GiveInput): Unit<GrantResult> {
  const grant = grantOf(core, giver, input);
  return {
    run(tx) {
      enterGrant(tx, grant, grant.created_ms);
      tx.put("grants", grant.id, grant);
      const record = tx.append({
        event: "granted",
        actor: grant.by,
        ts_ms: grant.created_ms,
        detail: described(grant),
        reason: grant.reason,
      });
      return { grant, records: [record] };
    },
  };
}

function termsOf({ match, rules, when, args_only, max_uses, budget, irreversible }: GrantTerms): GrantTerms {
  return { match, rules, when, ...(args_only && { args_only }), max_uses, budget, irreversible };
}

/** For the ledger: what it covers, without the values of its conditions and of its budget, which come from calls. */
function described({ id, match, rules, max_uses, when, args_only, budget, irreversible }: GrantDoc): string {
  const where = (["tenant", "environment"] as const).flatMap((field) =>
    match[field] === null ? [] : [match[field] === "" ? `no ${field}` : `${field} ${match[field]}`],
  );
  return [
    `${id}: ${match.tool} by ${match.actor}`,
    ...where,
    `rules ${rules.join(", ")}`,
    `at most ${max_uses}`,
    ...(when.length === 0 ? [] : [`where ${when.map(({ path, op }) => `${path} ${op}`).join(", ")}`]),
    ...(args_only === undefined ? [] : ["no other arguments"]),
    ...(budget === null ? [] : [`${budget.path} within a budget`]),
    ...(irreversible ? ["irreversible calls too"] : []),
  ].join("; ");
}

/** What the giver could not decide alone now is refused when it is given, and not only when it would be used. */
export function assertMayGive(core: Core, giver: Giver, input: GrantTerms): void {
  const { principal } = giver;
  const { policy } = core.rules();
  const problems: string[] = [];
  if (input.irreversible && !hasRole(principal, "admin"))
    problems.push("irreversible: only an admin may grant calls that nothing can take back");
  if (input.match.actor === principal.name)
    problems.push("match.actor: a grant never covers its giver's own runs");
  const facts = {
    four_eyes: policy.approvals.four_eyes,
    now: core.env.now(),
    delegations: giver.delegations,
    today: giver.today,
  };
  const authorities = authoritiesFor({ tool: null, ...actorOf(input.match) }, principal, facts);
  for (const id of input.rules) {
    const problem = ruleProblem(policy, id, authorities);
    if (problem !== null) problems.push(`rules: ${problem}`);
  }
  if (problems.length > 0) throw invalid(problems.join("; "));
}

function ruleProblem(policy: Policy, id: string, authorities: readonly Authority[]): string | null {
  const rule = policy.rules.all().find((one) => one.id === id);
  if (rule === undefined) return `the policy has no rule ${JSON.stringify(id)}`;
  if (rule.action !== "require_approval") return `rule ${id} does not ask for approval`;
  const { groups, quorum } = rule.approval;
  if (quorum > 1) return `rule ${id} asks for ${quorum} approvals, and a grant is one person's`;
  if (authorities.some((authority) => needsMet([{ groups, quorum }], [authority]))) return null;
  return `rule ${id} is decided by members of ${groups.join(" or ")}`;
}

/** Its giver takes it back; so may an admin. */
export function revokeGrantUnit(core: Core, principal: Principal, id: string): Unit<GrantResult> {
  return {
    needs: [["grants", id]],
    run(tx) {
      const found = tx.get("grants", id);
      if (found === undefined) throw unknownGrant(id);
      const own = found.internal.giver.principal === principal.id;
      if (!own && !hasRole(principal, "admin"))
        throw forbidden("only its giver or an admin may revoke a grant", "giver_only");
      if (found.revoked_ms !== null) throw conflict("grant_revoked", `grant ${id} was already revoked`);
      const now = core.env.now();
      const grant: GrantDoc = { ...found, revoked_ms: now };
      tx.put("grants", id, grant);
      removeGrant(tx, grant);
      const { tool, actor } = grant.match;
      const used = `${grant.uses} of ${grant.max_uses} used`;
      const record = tx.append({
        event: "grant_revoked",
        actor: principal.name,
        ts_ms: now,
        detail: `${id}: ${tool} by ${actor}; ${used}`,
      });
      return { grant, records: [record] };
    },
  };
}

const actorOf = ({ actor, tenant }: GrantMatch) => ({ actor, tenant });

export const unknownGrant = (id: string): SvcError => notFound(`unknown grant ${id}`, "unknown_grant");
