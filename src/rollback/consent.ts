/**
 * A person's consent to an undo whose manifest asks for it. Beginning such an undo opens its request;
 * an approved one is spent by the begin, once, and covers every later try of the same step.
 */
import { covers } from "../engine/approvals/counting.ts";
import { moveApproval, newApproval, takeApproval } from "../engine/approvals/requests.ts";
import { type Core, ENGINE } from "../engine/core.ts";
import { CHANGED_SINCE } from "../engine/decide/approval-stage.ts";
import { appendApprovalRecord, appendRunRecord, stepFacts } from "../engine/records.ts";
import { keyedHash } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { type ApprovalDoc, OPEN_APPROVAL, type Vote } from "../model/approval.ts";
import { UNDO_ASKS } from "../model/card/card.ts";
import { keptBefore, keptUndoArgs } from "../model/card/kept.ts";
import { mergeTerms } from "../model/policy/approvals.ts";
import type { RunDoc, StepDoc } from "../model/run.ts";
import type { Tx } from "../port/store.ts";
import type { UndoCall } from "./classify.ts";

interface ConsentInput {
  actor: string;
  /** The operator's decision to approve every compensation of this rollback. */
  approve: boolean;
  fresh_approval_id: string;
  /** What is there now, and its hash; absent where the undo does not look. */
  current?: Json | undefined;
  current_hash?: string | undefined;
  /** Why it is to pass over what was written since, where it is. */
  over?: string | undefined;
}

interface Consent {
  /** The request that the undo waits for, or null where it may begin. */
  waits_for: ApprovalDoc | null;
  /** The request that was opened just now, for notifications. */
  opened: ApprovalDoc | null;
  records: LedgerRecord[];
}

/** The step that is undone, within the unit that does it; `run` and `step` are changed in place, and stored by the caller. */
export interface StepAtHand {
  core: Core;
  tx: Tx;
  run: RunDoc;
  step: StepDoc;
}

export function settleConsent(at: StepAtHand, undo: UndoCall, input: ConsentInput): Consent {
  const { core, tx, run, step } = at;
  let request = step.undo_request === undefined ? undefined : tx.get("approvals", step.undo_request);
  if (!undo.needs_approval || hadConsent(step, request, input))
    return { waits_for: null, opened: null, records: [] };
  const records: LedgerRecord[] = [];
  const ended = request && endOf(request, core.env.now(), input);
  if (request !== undefined && ended !== undefined) {
    request = moveApproval(tx, run, { ...request, note: ended ?? request.note }, "expired");
    const detail = `request ${request.id}${ended === null ? "" : `: ${ended}`}`;
    records.push(
      appendApprovalRecord(tx, run, request, {
        event: "approval_expired",
        actor: ENGINE,
        ts_ms: core.env.now(),
        detail,
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
    records.push(approveNow(at, request, input.actor));
    return { waits_for: null, opened: null, records };
  }
  if (request !== undefined && OPEN_APPROVAL.has(request.status))
    return { waits_for: request, opened: null, records };
  if (!isCounted(request)) run.awaiting++;
  const opened = openRequest(at, undo, input);
  step.undo_request = opened.id;
  return { waits_for: opened, opened, records };
}

/** A step that was begun before had its consent then, unless it is to pass over something that was not judged. */
function hadConsent({ status }: StepDoc, request: ApprovalDoc | undefined, input: ConsentInput): boolean {
  if (status === "succeeded") return false;
  return input.over === undefined || request?.internal.before_hash === input.current_hash;
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

/** Nothing is left to consent to: an open request ends. */
export function dropConsent({ core, tx, run, step }: StepAtHand): LedgerRecord[] {
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

/** Why a request that could be decided or used ends here: a note, or null where its time is over. */
function endOf(
  request: ApprovalDoc,
  now: number,
  { current_hash, over }: ConsentInput,
): string | null | undefined {
  if (isPast(request, now)) return null;
  const { before_hash } = request.internal;
  const speaks = OPEN_APPROVAL.has(request.status) || request.status === "approved";
  // One that says nothing of what was there (an earlier version opened it) judged no overwrite.
  const judges = before_hash !== undefined || over !== undefined;
  return speaks && judges && before_hash !== current_hash ? CHANGED_SINCE : undefined;
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
  { core, tx, run, step }: StepAtHand,
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
  at: StepAtHand,
  undo: UndoCall,
  { actor, fresh_approval_id, current, current_hash, over }: ConsentInput,
): ApprovalDoc {
  const { core, tx, run, step } = at;
  const { policy } = core.rules();
  const over_it =
    over && `it overwrites what was written since the call; ${actor} says why: ${core.redact(over)}`;
  const causes = over_it === undefined ? [UNDO_ASKS] : [over_it, UNDO_ASKS];
  const { kind, residue, read_back } = undo;
  return newApproval(tx, run, {
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

function shownOf({ core, tx, step }: StepAtHand, { tool, args, state }: UndoCall, current: Json | undefined) {
  const { manifests } = core.rules();
  const call = (step.manifest_hash === null ? undefined : tx.get("manifests", step.manifest_hash)) ?? null;
  const shown = { args: keptUndoArgs(args, call, manifests.active(tool) ?? null) };
  if (state === null || current === undefined) return shown;
  const reader = manifests.active(state.read.tool) ?? null;
  return {
    ...shown,
    before: keptBefore(current, call, reader),
    restored: keptBefore(state.was, call, reader),
  };
}
