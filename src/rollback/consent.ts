/**
 * A person's consent to an undo whose manifest asks for it. Beginning such an undo opens its request;
 * an approved one is spent by the begin, once, and covers every later try of the same step.
 */
import { covers } from "../engine/approvals/counting.ts";
import { moveApproval, newApproval, takeApproval } from "../engine/approvals/requests.ts";
import { type Core, ENGINE } from "../engine/core.ts";
import { appendApprovalRecord, appendRunRecord, stepFacts } from "../engine/records.ts";
import { keyedHash } from "../kernel/hash.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { type ApprovalDoc, OPEN_APPROVAL, type Vote } from "../model/approval.ts";
import { keptUndoArgs } from "../model/card/kept.ts";
import { mergeTerms } from "../model/policy/approvals.ts";
import type { RunDoc, StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import type { UndoCall } from "./classify.ts";

interface ConsentInput {
  actor: string;
  /** The operator's decision to approve every compensation of this rollback. */
  approve: boolean;
  fresh_approval_id: string;
}

interface Consent {
  /** The request that the undo waits for, or null where it may begin. */
  waits_for: ApprovalDoc | null;
  /** The request that was opened just now, for notifications. */
  opened: ApprovalDoc | null;
  records: LedgerRecord[];
}

/** Changes `run` and `step` in place; the caller stores both. */
export function settleConsent(
  core: Core,
  tx: Tx,
  run: RunDoc,
  step: StepDoc,
  undo: UndoCall,
  input: ConsentInput,
): Consent {
  // A step that was begun before had its consent then.
  if (!undo.needs_approval || step.status !== "succeeded")
    return { waits_for: null, opened: null, records: [] };
  const records: LedgerRecord[] = [];
  let request = step.undo_request === undefined ? undefined : tx.get("approvals", step.undo_request);
  if (request !== undefined && isPast(request, core.env.now())) {
    request = moveApproval(tx, run, request, "expired");
    records.push(
      appendApprovalRecord(tx, run, request, {
        event: "approval_expired",
        actor: ENGINE,
        ts_ms: core.env.now(),
        detail: `request ${request.id}`,
      }),
    );
  }
  const { approvals } = core.rules().policy;
  if (request !== undefined && isGiven(core, request)) {
    takeApproval(tx, run, request.id, step.step);
    records.push(
      appendApprovalRecord(tx, run, request, {
        event: "approved",
        actor: ENGINE,
        ts_ms: core.env.now(),
        detail: `used request ${request.id}`,
      }),
    );
    return { waits_for: null, opened: null, records };
  }
  // Approving all at once is deciding too: not what one asked for oneself, under four eyes.
  if (input.approve && !(approvals.four_eyes && input.actor === run.actor)) {
    records.push(approveNow(core, tx, run, step, request, input.actor));
    return { waits_for: null, opened: null, records };
  }
  if (request !== undefined && OPEN_APPROVAL.has(request.status))
    return { waits_for: request, opened: null, records };
  if (!isCounted(request)) run.awaiting++;
  const opened = openRequest(core, tx, run, step, undo, input.fresh_approval_id);
  step.undo_request = opened.id;
  return { waits_for: opened, opened, records };
}

/** Whether the step's undo could begin now without asking a person. */
export async function hasConsent(core: Core, step: StepDoc): Promise<boolean> {
  if (step.status !== "succeeded") return true;
  if (step.undo_request === undefined) return false;
  const request = await core.store.get("approvals", step.undo_request);
  return request !== undefined && isGiven(core, request) && !isPast(request, core.env.now());
}

function isGiven(core: Core, request: ApprovalDoc): boolean {
  const { approvals } = core.rules().policy;
  return request.status === "approved" && covers(request, mergeTerms([approvals]), approvals.four_eyes);
}

/** Nothing is left to consent to: an open request ends. Changes `run` in place. */
export function dropConsent(core: Core, tx: Tx, run: RunDoc, step: StepDoc): LedgerRecord[] {
  const request = step.undo_request === undefined ? undefined : tx.get("approvals", step.undo_request);
  if (isCounted(request)) run.awaiting--;
  if (request === undefined || !OPEN_APPROVAL.has(request.status)) return [];
  moveApproval(tx, run, request, "expired");
  const now = core.env.now();
  return [
    appendApprovalRecord(tx, run, request, {
      event: "approval_expired",
      actor: ENGINE,
      ts_ms: now,
      detail: `request ${request.id}`,
    }),
  ];
}

function isPast(request: ApprovalDoc, now: number): boolean {
  return (OPEN_APPROVAL.has(request.status) || request.status === "approved") && now >= request.expires_ms;
}

/** The run counts a step as awaiting from its first request until one is approved; a denial ends no wait. */
function isCounted(request: ApprovalDoc | undefined): boolean {
  if (request === undefined) return false;
  const { status } = request;
  return (
    OPEN_APPROVAL.has(status) || status === "denied" || (status === "expired" && request.decided_ms === null)
  );
}

function approveNow(
  core: Core,
  tx: Tx,
  run: RunDoc,
  step: StepDoc,
  request: ApprovalDoc | undefined,
  actor: string,
): LedgerRecord {
  const now = core.env.now();
  if (isCounted(request)) run.awaiting--;
  const open = request !== undefined && OPEN_APPROVAL.has(request.status);
  if (open) {
    const vote: Vote = { by: actor, decision: "approve", note: null, at_ms: now, for: null };
    const votes = [...request.votes, vote];
    moveApproval(tx, run, { ...request, votes, decided_by: actor, decided_ms: now }, "consumed");
  }
  return appendRunRecord(tx, run, {
    ...stepFacts(step),
    event: "approved",
    actor,
    ts_ms: now,
    reason: step.reason,
    detail: `all compensations of this rollback approved${open ? `, with them request ${request.id}` : ""}`,
  });
}

function openRequest(
  core: Core,
  tx: Tx,
  run: RunDoc,
  step: StepDoc,
  undo: UndoCall,
  id: string,
): ApprovalDoc {
  const { manifests, policy } = core.rules();
  const call = step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash);
  const args = () => keptUndoArgs(undo.args, call ?? null, manifests.active(undo.tool) ?? null);
  return newApproval(tx, run, {
    id,
    spec: mergeTerms([policy.approvals]),
    rule: null,
    tool: undo.tool,
    args: undo.args,
    args_hash: keyedHash(run.salt, undo.args),
    reason: `undo of step ${step.step} (${step.tool})`,
    now: core.env.now(),
    kind: "compensation",
    step: step.step,
    risk_score: step.risk_score,
    shown: policy.approvals.show === "names" ? null : { args: args() },
    flood: policy.approvals.flood,
  });
}
