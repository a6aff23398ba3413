/** Signatures of a request's decisions: which are required, and which approvals count with them. */
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import type { RunDoc } from "../runs/run.ts";
import { approvalDraft, isSignatureRequired } from "../signing/draft.ts";
import type { StoredSignature } from "../signing/payload.ts";
import { type CheckedSignature, passkeyRequired, useSignature } from "../signing/signature.ts";
import type { ApprovalDoc } from "./approval.ts";
import { withSignedApprovals } from "./count-approvals.ts";

interface SigningInput {
  signature?: CheckedSignature | undefined;
  /** Number of requests decided together. */
  group_of?: number | undefined;
  /** Reason of a break-glass. */
  reason?: string;
}

interface RequestInUnit {
  core: EngineCore;
  tx: StoreTx;
  run: RunDoc;
  approval: ApprovalDoc;
}

/** Uses the signature of an approval. Throws if one is required and missing; groups cannot be signed. */
export function useRequestSignature(
  { core, tx, run, approval }: RequestInUnit,
  principal: CallerPrincipal,
  { signature, group_of, reason }: SigningInput,
): StoredSignature | null {
  const required = isSignatureRequired(core, approval);
  if (required && (signature === undefined || group_of !== undefined)) throw passkeyRequired();
  if (signature === undefined) return null;
  const values = tx.get("approval_values", approval.id);
  const decision = { by: principal.name, values, ...(reason === undefined ? {} : { reason }) };
  return useSignature(core, tx, principal, signature, (nonce) => ({
    ...approvalDraft(core, run, approval, decision),
    nonce,
  }));
}

/** The request with the approvals that can still count. */
export function countableApprovals(core: EngineCore, approval: ApprovalDoc): ApprovalDoc {
  const { hash } = core.rules().policy;
  return isSignatureRequired(core, approval) ? withSignedApprovals(approval, hash) : approval;
}

/** The internal fields with one more signature. */
export function withSignature(
  internal: ApprovalDoc["internal"],
  signature: StoredSignature | null,
): ApprovalDoc["internal"] {
  return signature === null
    ? internal
    : { ...internal, signatures: [...(internal.signatures ?? []), signature] };
}
