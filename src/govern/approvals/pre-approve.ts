/** Approves a call before the agent makes it. The request starts approved, for exactly those arguments. */
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { needsMet } from "../../rules/policy/checks/approvals.ts";
import { evaluatePolicy } from "../../rules/policy/evaluate.ts";
import { visibleArgs } from "../cards/visible-values.ts";
import { ENGINE_ACTOR, type EngineCore } from "../core.ts";
import { coveredBy } from "../decide/approval-stage.ts";
import { policyCall, readCounters } from "../decide/load-facts.ts";
import { slotKey } from "../document-keys.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import { loadSealedRun } from "../runs/load-run.ts";
import type { RunDoc } from "../runs/run.ts";
import { callDraft } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import {
  type CheckedSignature,
  passkeyRequired,
  signedVoter,
  ttlOf,
  useSignature,
} from "../signing/signature.ts";
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "./approval.ts";
import { assertNotOwnRequest } from "./authority.ts";
import { toVoter } from "./count-approvals.ts";
import type { DecideResult } from "./decide-request.ts";
import { openApproval, settleApproval } from "./requests.ts";

interface PreApproveInput {
  tool: string;
  args: JsonValue;
  note: string | null;
  ttl_ms: number | null;
  signature?: CheckedSignature | undefined;
}

export function preApproveUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  run_id: string,
  input: PreApproveInput,
): UnitOfWork<DecideResult> {
  const id = input.signature?.payload.id ?? `apr_${core.env.uuid()}`;
  return {
    needs: [["runs", run_id]],
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      assertNotOwnRequest(run, principal, core.rules().policy.approvals.four_eyes);
      const now = core.env.now();
      const note = input.note === null ? null : core.redact(input.note);
      const args_hash = keyedHash(run.salt, input.args);
      const signature = signatureOf({ core, tx, run }, principal, { ...input, id, args_hash });
      const ttl_ms = ttlOf(input.signature, input.ttl_ms ?? core.rules().policy.approvals.ttl_ms, now);
      const closed = closeCovered(tx, run, {
        id,
        tool: input.tool,
        args_hash,
        groups: principal.groups,
        now,
      });
      const request = openApproval(tx, run, {
        id,
        now,
        args_hash,
        ...requestOf(core, { ...input, ttl_ms }, note),
      });
      const decided: ApprovalDoc = {
        ...request,
        votes: [{ by: principal.name, decision: "approve", note, at_ms: now, for: null }],
        decided_by: principal.name,
        decided_ms: now,
        note,
        internal: {
          ...request.internal,
          given_ahead: true,
          ...signedVoter(toVoter(principal, { for: null, groups: principal.groups }, core.today), signature),
        },
      };
      const { approval, record } = settleApproval(tx, run, decided, {
        status: "approved",
        by: principal.name,
        at_ms: now,
        detail: signedDetail(`pre-approved: ${note ?? ""}`.trimEnd(), signature),
      });
      tx.put("runs", run.run_id, run);
      return { approval, records: [...closed, record], refused: null };
    },
  };
}

/** Uses the signature. Throws if the policy requires one for such a call and it is missing. */
function signatureOf(
  { core, tx, run }: { core: EngineCore; tx: StoreTx; run: RunDoc },
  principal: CallerPrincipal,
  { tool, args, id, args_hash, signature }: PreApproveInput & { id: string; args_hash: string },
): StoredSignature | null {
  const { manifests, policy } = core.rules();
  const call = policyCall(run, tool, args, manifests.active(tool) ?? null);
  const { approval } = evaluatePolicy(policy, call, core.env.now(), readCounters(tx, policy, call));
  const required = policy.approvals.signed === true || approval?.signed === true;
  if (required && signature === undefined) throw passkeyRequired();
  if (signature === undefined) return null;
  return useSignature(core, tx, principal, signature, (nonce, { expires_ms = 0 }) => ({
    ...callDraft(core, run, { kind: "pre_approval", id, by: principal.name, tool, args_hash, expires_ms }),
    nonce,
  }));
}

/** Request with a quorum of one approver of any group, as if the agent had made the call. */
function requestOf(core: EngineCore, { tool, args, ttl_ms }: PreApproveInput, note: string | null) {
  const { manifests, policy } = core.rules();
  const { approvals } = policy;
  return {
    tool,
    args,
    reason: note ?? "pre-approved",
    kind: "call" as const,
    rule: null,
    step: null,
    risk_score: 0,
    spec: {
      groups: [],
      quorum: 1,
      ttl_ms: ttl_ms ?? approvals.ttl_ms,
      escalate_after_ms: null,
      escalate_to: [],
      needs: [{ groups: [], quorum: 1 }],
    },
    shown: approvals.show === "names" ? null : { args: visibleArgs(args, manifests.active(tool) ?? null) },
  };
}

/** Closes an open request for the same call that this approver could have decided alone. */
function closeCovered(
  tx: StoreTx,
  run: RunDoc,
  {
    id,
    tool,
    args_hash,
    groups,
    now,
  }: { id: string; tool: string; args_hash: string; groups: readonly string[]; now: number },
): LedgerRecord[] {
  const slot = tx.get("approval_slots", slotKey(run.run_id, tool, args_hash));
  const asked = slot === undefined ? undefined : tx.get("approvals", slot.id);
  if (asked === undefined || !OPEN_APPROVAL_STATUSES.has(asked.status)) return [];
  if (!needsMet(asked.internal.needs, [{ groups }])) return [];
  const note = coveredBy(`request ${id}`);
  const settled = settleApproval(
    tx,
    run,
    { ...asked, note },
    { status: "expired", by: ENGINE_ACTOR, at_ms: now, detail: `request ${asked.id}: ${note}` },
  );
  return [settled.record];
}
