/** Delegations: an approver lends its authority for a while; what was lent cannot be lent on. */
import { conflict, forbidden, invalid, notFound, type SvcError } from "../../kernel/errors.ts";
import { compileGlob } from "../../kernel/glob.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Delegation } from "../../model/approval.ts";
import { hasRole, keptOf, keyId, type Principal, ROLE_MESSAGES } from "../../model/roles.ts";
import type { Unit } from "../../port/store.ts";
import type { Core } from "../core.ts";

interface DelegateInput {
  to: string;
  /** The principal that is meant by the name; by default the key of that name. */
  to_id?: string | undefined;
  tools: string;
  reason: string;
  expires_ms: number;
}

type DelegationResult = { delegation: Delegation; records: LedgerRecord[] };

export function delegateUnit(core: Core, principal: Principal, input: DelegateInput): Unit<DelegationResult> {
  // Its own role, not a borrowed one: so there are no chains.
  if (!hasRole(principal, "approver")) throw forbidden(ROLE_MESSAGES.approver, "role_required");
  const now = core.env.now();
  if (input.expires_ms <= now) throw invalid("expires_at: is in the past");
  if (input.expires_ms > now + LIMITS.delegation_days * 86_400_000) {
    throw invalid(`expires_at: a delegation lasts at most ${LIMITS.delegation_days} days`);
  }
  if (input.to === principal.name) throw invalid("to: you cannot delegate to yourself");
  compileGlob(input.tools);
  const delegation: Delegation = {
    id: `dlg_${core.env.uuid()}`,
    from: principal.name,
    to: input.to,
    to_id: input.to_id ?? keyId(input.to),
    tools: input.tools,
    reason: core.redact(input.reason),
    created_ms: now,
    expires_ms: input.expires_ms,
    revoked_ms: null,
    authority: keptOf(principal),
  };
  return {
    run(tx) {
      tx.put("delegations", delegation.id, delegation);
      const detail = `${delegation.id}: ${delegation.tools} to ${delegation.to}`;
      const record = tx.append({
        event: "delegated",
        actor: principal.name,
        ts_ms: now,
        detail,
        reason: delegation.reason,
      });
      return { delegation, records: [record] };
    },
  };
}

/** The lender takes it back; so may an admin. */
export function revokeUnit(core: Core, principal: Principal, id: string): Unit<DelegationResult> {
  return {
    needs: [["delegations", id]],
    run(tx) {
      const found = tx.get("delegations", id);
      if (found === undefined) throw unknownDelegation(id);
      if (found.authority.principal !== principal.id && !hasRole(principal, "admin")) {
        throw forbidden("only the lender or an admin may revoke a delegation", "giver_only");
      }
      if (found.revoked_ms !== null)
        throw conflict("delegation_revoked", `delegation ${id} was already revoked`);
      const delegation: Delegation = { ...found, revoked_ms: core.env.now() };
      tx.put("delegations", id, delegation);
      const detail = `${id}: ${found.tools} to ${found.to}`;
      const record = tx.append({
        event: "delegation_revoked",
        actor: principal.name,
        ts_ms: core.env.now(),
        detail,
      });
      return { delegation, records: [record] };
    },
  };
}

export const unknownDelegation = (id: string): SvcError =>
  notFound(`unknown delegation ${id}`, "unknown_delegation");
