/** Gives and revokes grants. A grant never exceeds the calls that its giver could approve alone. */

import {
  conflictError,
  forbiddenError,
  invalidError,
  notFoundError,
  type SvcError,
} from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { needsMet } from "../../rules/policy/checks/approvals.ts";
import type { CompiledPolicy } from "../../rules/policy/compile.ts";
import type { StoredDelegation } from "../approvals/approval.ts";
import { authoritiesFor, type DecidingAuthority } from "../approvals/authority.ts";
import type { EngineCore } from "../core.ts";
import { assertExpiryWithin } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { type CallerPrincipal, hasRole, type ResolvePrincipal, toStoredPrincipal } from "../roles.ts";
import { grantDraft } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import { type CheckedSignature, passkeyRequired, useSignature } from "../signing/signature.ts";
import type { GrantDoc, GrantMatch, GrantTerms } from "./grant.ts";
import { addGrantToIndex, grantBuckets, removeGrantFromIndex } from "./grant-index.ts";

export interface GrantInput extends GrantTerms {
  reason: string;
  expires_ms: number;
  signature?: CheckedSignature | undefined;
}

export interface GrantGiver {
  principal: CallerPrincipal;
  at_the_data: boolean;
  /** Delegations to the giver's name, including ended ones. */
  delegations: readonly StoredDelegation[];
  today: ResolvePrincipal;
}

type GrantResult = { grant: GrantDoc; records: LedgerRecord[] };

/** Checks everything that giving the grant would check, without giving it. */
export function checkGrantUnit(core: EngineCore, giver: GrantGiver, input: GrantInput): UnitOfWork<void> {
  const { match, created_ms } = grantOf(core, giver, input);
  return { run: (tx) => void grantBuckets(tx, match, created_ms) };
}

function grantOf(core: EngineCore, giver: GrantGiver, input: GrantInput): GrantDoc {
  const now = core.env.now();
  const { principal } = giver;
  assertExpiryWithin(input, now, SERVICE_LIMITS.grant_days, "grant");
  assertCanGrant(core, giver, input);
  return {
    id: input.signature?.payload.id ?? `grt_${core.env.uuid()}`,
    ...termsOf(input),
    reason: core.redact(input.reason),
    by: principal.name,
    created_ms: now,
    expires_ms: input.expires_ms,
    uses: 0,
    spent: 0,
    revoked_ms: null,
    internal: {
      giver: toStoredPrincipal(principal),
      at_the_data: giver.at_the_data,
      delegations: giver.delegations.map(({ id }) => id),
    },
  };
}

export function giveGrantUnit(
  core: EngineCore,
  giver: GrantGiver,
  input: GrantInput,
): UnitOfWork<GrantResult> {
  const grant = grantOf(core, giver, input);
  return {
    run(tx) {
      const signature = signatureOf(core, tx, giver.principal, grant, input);
      addGrantToIndex(tx, grant, grant.created_ms);
      const internal = signature === null ? grant.internal : { ...grant.internal, signature };
      tx.put("grants", grant.id, { ...grant, internal });
      const record = tx.append({
        event: "granted",
        actor: grant.by,
        ts_ms: grant.created_ms,
        detail: signedDetail(described(grant), signature),
        reason: grant.reason,
      });
      return { grant, records: [record] };
    },
  };
}

/** Uses the signature. Throws if a named rule requires one and it is missing. */
function signatureOf(
  core: EngineCore,
  tx: StoreTx,
  principal: CallerPrincipal,
  grant: GrantDoc,
  { signature }: GrantInput,
): StoredSignature | null {
  if (signature === undefined) {
    if (isSignedGrant(core, grant)) throw passkeyRequired();
    return null;
  }
  const { id, by, expires_ms } = grant;
  return useSignature(core, tx, principal, signature, (nonce) => ({
    ...grantDraft(core, { id, by, expires_ms }, grant),
    nonce,
  }));
}

/** Whether a rule that the grant replaces counts only signed decisions. */
function isSignedGrant(core: EngineCore, { rules }: Pick<GrantTerms, "rules">): boolean {
  const named = core
    .rules()
    .policy.rules.all()
    .filter(({ id }) => rules.includes(id));
  return named.some(({ approval }) => approval.signed === true);
}

function termsOf({ match, rules, when, args_only, max_uses, budget, irreversible }: GrantTerms): GrantTerms {
  return { match, rules, when, ...(args_only && { args_only }), max_uses, budget, irreversible };
}

/** Describes the grant for the ledger, without the values of its conditions and budget, which come from calls. */
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

/** Throws if the giver could not approve such calls alone now. Checked when giving and again at each use. */
export function assertCanGrant(core: EngineCore, giver: GrantGiver, input: GrantTerms): void {
  const { principal } = giver;
  const { policy } = core.rules();
  const problems: string[] = [];
  if (input.irreversible && !hasRole(principal, "admin"))
    problems.push("irreversible: only an admin can grant irreversible calls");
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
  if (problems.length > 0) throw invalidError(problems.join("; "));
}

function ruleProblem(
  policy: CompiledPolicy,
  id: string,
  authorities: readonly DecidingAuthority[],
): string | null {
  const rule = policy.rules.all().find((one) => one.id === id);
  if (rule === undefined) return `the policy has no rule ${JSON.stringify(id)}`;
  if (rule.action !== "require_approval") return `rule ${id} does not require approval`;
  const { groups, quorum } = rule.approval;
  if (quorum > 1) return `rule ${id} asks for ${quorum} approvals, and a grant is one person's`;
  if (authorities.some((authority) => needsMet([{ groups, quorum }], [authority]))) return null;
  return `rule ${id} is decided by members of ${groups.join(" or ")}`;
}

/** Revokes a grant, as its giver or as an admin. */
export function revokeGrantUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
): UnitOfWork<GrantResult> {
  return {
    needs: [["grants", id]],
    run(tx) {
      const found = tx.get("grants", id);
      if (found === undefined) throw unknownGrant(id);
      const own = found.internal.giver.principal === principal.id;
      if (!own && !hasRole(principal, "admin"))
        throw forbiddenError("only its giver or an admin can revoke a grant", "giver_only");
      if (found.revoked_ms !== null) throw conflictError("grant_revoked", `grant ${id} was already revoked`);
      const now = core.env.now();
      const grant: GrantDoc = { ...found, revoked_ms: now };
      tx.put("grants", id, grant);
      removeGrantFromIndex(tx, grant);
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

export const unknownGrant = (id: string): SvcError => notFoundError(`unknown grant ${id}`, "unknown_grant");
