/** Delegations: an approver delegates their authority for a limited time. A delegate cannot delegate further. */

import {
  conflictError,
  forbiddenError,
  invalidError,
  notFoundError,
  type SvcError,
} from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { compileGlob } from "../../kernel/text/glob.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { EngineCore } from "../core.ts";
import { assertExpiryWithin } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { type CallerPrincipal, hasRole, keyId, ROLE_MESSAGES, toStoredPrincipal } from "../roles.ts";
import { anySignatureRequired, delegationDraft } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import { type CheckedSignature, passkeyRequired, useSignature } from "../signing/signature.ts";
import { recipientOf, type StoredDelegation } from "./approval.ts";

interface DelegateInput {
  to: string;
  /** Id of the recipient; by default the key with the given name. */
  to_id?: string | undefined;
  tools: string;
  reason: string;
  expires_ms: number;
  signature?: CheckedSignature | undefined;
}

type DelegationResult = { delegation: StoredDelegation; records: LedgerRecord[] };

export function delegateUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  input: DelegateInput,
): UnitOfWork<DelegationResult> {
  // Requires the principal's own role, which prevents chains of delegations.
  if (!hasRole(principal, "approver")) throw forbiddenError(ROLE_MESSAGES.approver, "role_required");
  const now = core.env.now();
  assertExpiryWithin(input, now, SERVICE_LIMITS.delegation_days, "delegation");
  if (input.to === principal.name) throw invalidError("to: you cannot delegate to yourself");
  compileGlob(input.tools);
  const delegation: StoredDelegation = {
    id: input.signature?.payload.id ?? `dlg_${core.env.uuid()}`,
    from: principal.name,
    to: input.to,
    to_id: input.to_id ?? keyId(input.to),
    tools: input.tools,
    reason: core.redact(input.reason),
    created_ms: now,
    expires_ms: input.expires_ms,
    revoked_ms: null,
    authority: toStoredPrincipal(principal),
  };
  return {
    run(tx) {
      const signature = signatureOf(core, tx, principal, delegation, input.signature);
      tx.put("delegations", delegation.id, {
        ...delegation,
        ...(signature === null ? {} : { signature }),
      });
      const detail = signedDetail(`${delegation.id}: ${delegation.tools} to ${delegation.to}`, signature);
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

/** Uses the signature. Throws if any approval has to be signed and the delegation is not. */
function signatureOf(
  core: EngineCore,
  tx: StoreTx,
  principal: CallerPrincipal,
  delegation: StoredDelegation,
  given: CheckedSignature | undefined,
): StoredSignature | null {
  if (given === undefined) {
    if (anySignatureRequired(core)) throw passkeyRequired();
    return null;
  }
  const { id, tools, reason, expires_ms } = delegation;
  const terms = { to_id: recipientOf(delegation), tools, reason };
  return useSignature(core, tx, principal, given, (nonce) => ({
    ...delegationDraft(core, { id, by: principal.name, expires_ms }, terms),
    nonce,
  }));
}

/** Revokes a delegation, as its delegator or as an admin. */
export function revokeUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
): UnitOfWork<DelegationResult> {
  return {
    needs: [["delegations", id]],
    run(tx) {
      const found = tx.get("delegations", id);
      if (found === undefined) throw unknownDelegation(id);
      if (found.authority.principal !== principal.id && !hasRole(principal, "admin")) {
        throw forbiddenError("only the delegator or an admin can revoke a delegation", "giver_only");
      }
      if (found.revoked_ms !== null)
        throw conflictError("delegation_revoked", `delegation ${id} was already revoked`);
      const delegation: StoredDelegation = { ...found, revoked_ms: core.env.now() };
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
  notFoundError(`unknown delegation ${id}`, "unknown_delegation");
