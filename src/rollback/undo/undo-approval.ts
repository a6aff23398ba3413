/**
 * Approvals for undos. If the manifest requires one, beginning the undo opens an approval request. The approved request
 * is consumed once, by the begin, and covers every later retry of the same step.
 */

import {
  type ApprovalDoc,
  type ApprovalVote,
  LIVE_APPROVAL_STATUSES,
  OPEN_APPROVAL_STATUSES,
} from "../../govern/approvals/approval.ts";
import { approvalCovers } from "../../govern/approvals/count-approvals.ts";
import { consumeAtOnce, openApproval, settleApproval } from "../../govern/approvals/requests.ts";
import { UNDO_APPROVAL_REASON } from "../../govern/cards/card.ts";
import { CARD_LINE_CHARS } from "../../govern/cards/line.ts";
import { visibleBefore, visibleUndoArgs } from "../../govern/cards/visible-values.ts";
import { ENGINE_ACTOR, type EngineCore } from "../../govern/core.ts";
import { STATE_CHANGED_NOTE } from "../../govern/decide/approval-stage.ts";
import { isExpired } from "../../govern/expiry.ts";
import type { StoreTx } from "../../govern/port/store.ts";
import { appendRunRecord, stepFacts } from "../../govern/records.ts";
import { requestersOf } from "../../govern/roles.ts";
import type { RunDoc, StepDoc } from "../../govern/runs/run.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { visibleLine } from "../../kernel/text/escape-invisible.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { mergeTerms } from "../../rules/policy/checks/approvals.ts";
import type { UndoCall } from "../plan/classify.ts";

interface ConsentInput {
  actor: string;
  /** Whether the operator approved every compensation of this rollback. */
  approve: boolean;
  fresh_approval_id: string;
  /** Current state and its hash; absent if the undo does not read the state first. */
  current?: JsonValue | undefined;
  current_hash?: string | undefined;
  /** Reason for overwriting later changes, if the operator requested that. */
  over?: string | undefined;
}

interface Consent {
  /** The pending request, or null if the undo can begin. */
  waits_for: ApprovalDoc | null;
  /** The request opened by this call, for notifications. */
  opened: ApprovalDoc | null;
  records: LedgerRecord[];
}

/** The step being undone and its transaction. `run` and `step` are changed in place; the caller stores them. */
export interface StepInProgress {
  core: EngineCore;
  tx: StoreTx;
  run: RunDoc;
  step: StepDoc;
}

export function resolveUndoApproval(at: StepInProgress, undo: UndoCall, input: ConsentInput): Consent {
  const { core, tx, run, step } = at;
  let request = step.undo_request === undefined ? undefined : tx.get("approvals", step.undo_request);
  if (!undo.needs_approval || hadConsent(step, request, input))
    return { waits_for: null, opened: null, records: [] };
  const records: LedgerRecord[] = [];
  const ended = request && endOf(request, core.env.now(), input);
  if (request !== undefined && ended !== undefined) {
    const detail = `request ${request.id}${ended === null ? "" : `: ${ended}`}`;
    const settled = settleApproval(
      tx,
      run,
      { ...request, note: ended ?? request.note },
      { status: "expired", by: ENGINE_ACTOR, at_ms: core.env.now(), detail },
    );
    request = settled.approval;
    records.push(settled.record);
  }
  const { approvals } = core.rules().policy;
  if (request !== undefined && isGiven(core, request)) {
    const settled = settleApproval(tx, run, request, {
      status: "consumed",
      by: ENGINE_ACTOR,
      at_ms: core.env.now(),
      detail: `used request ${request.id}`,
    });
    records.push(settled.record);
    run.awaiting--;
    return { waits_for: null, opened: null, records };
  }
  // Approving all undos at once is a decision too: under four eyes, the run's requesters cannot approve its undos.
  if (
    input.approve &&
    approvals.signed !== true &&
    !(approvals.four_eyes && requestersOf(run).includes(input.actor))
  ) {
    records.push(approveNow(at, request, input.actor));
    return { waits_for: null, opened: null, records };
  }
  if (request !== undefined && OPEN_APPROVAL_STATUSES.has(request.status))
    return { waits_for: request, opened: null, records };
  if (!isCounted(request)) run.awaiting++;
  const opened = openRequest(at, undo, input);
  step.undo_request = opened.id;
  return { waits_for: opened, opened, records };
}

/** Whether an earlier begin already had the approval. An overwrite of an unreviewed state needs a new one. */
function hadConsent({ status }: StepDoc, request: ApprovalDoc | undefined, input: ConsentInput): boolean {
  if (status === "succeeded") return false;
  return input.over === undefined || request?.internal.before_hash === input.current_hash;
}

/** Whether the step's undo could begin now without a further approval. */
export async function isUndoApproved(core: EngineCore, step: StepDoc): Promise<boolean> {
  if (step.status !== "succeeded") return true;
  if (step.undo_request === undefined) return false;
  const request = await core.store.get("approvals", step.undo_request);
  return request !== undefined && isGiven(core, request) && !isPast(request, core.env.now());
}

function isGiven(core: EngineCore, request: ApprovalDoc): boolean {
  const { policy } = core.rules();
  return request.status === "approved" && approvalCovers(request, mergeTerms([policy.approvals]), policy);
}

/** Ends an open request that no longer has anything to approve. */
export function cancelUndoApproval({ core, tx, run, step }: StepInProgress): LedgerRecord[] {
  const request = step.undo_request === undefined ? undefined : tx.get("approvals", step.undo_request);
  if (isCounted(request)) run.awaiting--;
  if (request === undefined || !OPEN_APPROVAL_STATUSES.has(request.status)) return [];
  const detail = `request ${request.id}`;
  const at_ms = core.env.now();
  return [settleApproval(tx, run, request, { status: "expired", by: ENGINE_ACTOR, at_ms, detail }).record];
}

/** Why an open or approved request ends now: a note, or null if it expired. */
function endOf(
  request: ApprovalDoc,
  now: number,
  { current_hash, over }: ConsentInput,
): string | null | undefined {
  if (isPast(request, now)) return null;
  const { before_hash } = request.internal;
  // A request from an earlier version has no state hash, so it covers no overwrite.
  const judges = before_hash !== undefined || over !== undefined;
  return LIVE_APPROVAL_STATUSES.has(request.status) && judges && before_hash !== current_hash
    ? STATE_CHANGED_NOTE
    : undefined;
}

function isPast(request: ApprovalDoc, now: number): boolean {
  return LIVE_APPROVAL_STATUSES.has(request.status) && isExpired(request, now);
}

/** Whether the run counts the step as awaiting: from its first request until the undo begins or a person denies it. */
function isCounted(request: ApprovalDoc | undefined): boolean {
  return request !== undefined && request.status !== "denied" && request.status !== "consumed";
}

function approveNow(
  { core, tx, run, step }: StepInProgress,
  request: ApprovalDoc | undefined,
  actor: string,
): LedgerRecord {
  const now = core.env.now();
  if (isCounted(request)) run.awaiting--;
  const open = request !== undefined && OPEN_APPROVAL_STATUSES.has(request.status);
  if (open) {
    const vote: ApprovalVote = { by: actor, decision: "approve", note: null, at_ms: now, for: null };
    consumeAtOnce(tx, run, request, vote);
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
  at: StepInProgress,
  undo: UndoCall,
  { actor, fresh_approval_id, current, current_hash, over }: ConsentInput,
): ApprovalDoc {
  const { core, tx, run, step } = at;
  const { policy } = core.rules();
  const over_it =
    over && `it overwrites changes made since the call; ${actor} gives this reason: ${core.redact(over)}`;
  const causes = over_it === undefined ? [UNDO_APPROVAL_REASON] : [over_it, UNDO_APPROVAL_REASON];
  const { kind, residue, read_back } = undo;
  return openApproval(tx, run, {
    id: fresh_approval_id,
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
    because: { causes: causes.map((reason) => ({ rule: null, reason })), risk: null },
    undo: { of: step.tool, kind, residue: [...residue], read_back: read_back !== null },
    before_hash: current_hash,
    shown: policy.approvals.show === "names" ? null : shownOf(at, undo, current),
    flood: policy.approvals.flood,
  });
}

function shownOf(
  { core, tx, step }: StepInProgress,
  { tool, args, state }: UndoCall,
  current: JsonValue | undefined,
) {
  const { manifests } = core.rules();
  const call = (step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash)) ?? null;
  const { line } = step;
  const shown = {
    args: visibleUndoArgs(args, call, manifests.active(tool) ?? null),
    ...(line === undefined ? {} : { line: visibleLine(`Undo: ${line}`, CARD_LINE_CHARS) }),
  };
  if (state === null || current === undefined) return shown;
  const reader = manifests.active(state.read.tool) ?? null;
  return {
    ...shown,
    before: visibleBefore(current, call, reader),
    restored: visibleBefore(state.was, call, reader),
  };
}
