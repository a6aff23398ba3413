/**
 * Lifecycle of approval requests inside a unit of work. The slot of a run, tool and arguments refers to their request.
 * Ending the request clears the slot, so that it is used once, and deletes its values.
 */

import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, cacheResult } from "../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { clipText, formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { redactSecrets } from "../../rules/detect/secrets.ts";
import { type FloodLimit, type MergedApproval, needsMet } from "../../rules/policy/checks/approvals.ts";
import { type ShownValues, toStoredValues } from "../cards/stored-values.ts";
import type { ApprovalCauses, RequestedUndo } from "../cards/types.ts";
import type { RequestTerms } from "../decide/verdict.ts";
import { slotKey } from "../document-keys.ts";
import type { StoreTx } from "../port/store.ts";
import { appendApprovalRecord } from "../records.ts";
import { copyOfRun, countedRun, type RunDoc } from "../runs/run.ts";
import {
  type ApprovalDoc,
  type ApprovalStatus,
  type ApprovalVote,
  LIVE_APPROVAL_STATUSES,
  OPEN_APPROVAL_STATUSES,
} from "./approval.ts";
import { countingVoters } from "./count-approvals.ts";
import { countRequest } from "./request-bursts.ts";

export interface NewApproval {
  id: string;
  spec: MergedApproval;
  rule: string | null;
  tool: string;
  args: JsonValue;
  args_hash: string;
  reason: string;
  now: number;
  kind: "call" | "compensation";
  step: number | null;
  risk_score: number;
  because?: ApprovalCauses | undefined;
  undo?: RequestedUndo | undefined;
  /** Hash of the state shown on the card; undefined if the card shows none. */
  before_hash?: string | null | undefined;
  /** Values visible to approvers; null if the policy stores only names. */
  shown: ShownValues | null;
  /** Limit above which notifications become a digest; absent if an approver opens the request. */
  flood?: FloodLimit | null;
  /** True for calls that always get their own notification. */
  irreversible?: boolean;
}

/** Builds a request without storing it. */
export function buildApproval(run: RunDoc, input: NewApproval): ApprovalDoc {
  const { spec } = input;
  return {
    id: input.id,
    run_id: run.run_id,
    tool: input.tool,
    actor: run.actor,
    ...(run.acting === undefined ? {} : { acting: [...run.acting] }),
    tenant: run.tenant,
    args_hash: input.args_hash,
    arg_names: listArgNames(input.args),
    reason: input.reason,
    rule: input.rule,
    status: "pending",
    requested_ms: input.now,
    expires_ms: input.now + spec.ttl_ms,
    approvers: { groups: spec.groups, quorum: spec.quorum },
    votes: [],
    decided_by: null,
    decided_ms: null,
    note: null,
    kind: input.kind,
    step: input.step,
    escalated_ms: null,
    break_glass: false,
    internal: {
      principal: run.principal,
      escalate_after_ms: spec.escalate_after_ms,
      escalate_to: spec.escalate_to,
      risk_score: input.risk_score,
      needs: spec.needs,
      voters: [],
      ...(spec.signed ? { signed: true as const } : {}),
      ...(input.because === undefined ? {} : { because: input.because }),
      ...(input.undo === undefined ? {} : { undo: input.undo }),
      ...(input.before_hash === undefined ? {} : { before_hash: input.before_hash }),
    },
  };
}

/** Opens a request and updates the run's count of open requests; the caller stores the run. */
export function openApproval(tx: StoreTx, run: RunDoc, input: NewApproval): ApprovalDoc {
  const approval = buildApproval(run, input);
  countOpenRequest(tx, run, +1);
  const flooded = input.flood != null && countRequest(tx, run, input.flood, input.now);
  if (flooded && input.irreversible !== true) approval.internal.in_digest = true;
  const offered = input.kind === "call" ? tx.get("approval_slots", offerSlot(slotOf(approval))) : undefined;
  if (offered !== undefined) approval.internal.offer = offered.id;
  tx.put("approvals", approval.id, approval);
  if (input.shown !== null) tx.put("approval_values", approval.id, toStoredValues(run.run_id, input.shown));
  tx.put("approval_slots", slotOf(approval), { id: approval.id });
  return approval;
}

/**
 * Updates the terms of an open request to the active rules. If they changed, the card shows it and has a new hash.
 * Terms that votes already meet, and terms of escalated requests, stay unchanged.
 */
export function renewTerms(
  tx: StoreTx,
  id: string,
  { spec, rule, because }: RequestTerms,
  risk_score: number,
  four_eyes: boolean,
): void {
  const request = tx.get("approvals", id);
  if (request === undefined) return;
  const { internal, approvers } = request;
  const settled =
    request.escalated_ms !== null ||
    (spec.signed !== true && needsMet(spec.needs, countingVoters(request, four_eyes)));
  const needs = settled ? internal.needs : spec.needs;
  const was = {
    rule: request.rule,
    because: internal.because,
    needs: internal.needs,
    signed: internal.signed,
  };
  const { signed } = spec;
  if (isDeepStrictEqual(was, { rule, because, needs, signed })) return;
  tx.put("approvals", id, {
    ...request,
    rule,
    approvers: settled ? approvers : { groups: spec.groups, quorum: spec.quorum },
    internal: { ...internal, because, needs, risk_score, signed },
  });
}

/** Names of the arguments, without those that are credentials themselves. */
/** Names of the arguments for everybody who sees the request, without credentials. */
export function listArgNames(args: JsonValue): string[] {
  if (!isJsonObject(args)) return [];
  const known = cachedResult<string[]>(args, listArgNames);
  if (known !== undefined) return known;
  const names = Object.keys(args);
  const listed = names
    .slice(0, SERVICE_LIMITS.arg_names)
    .map((name) => clipText(redactSecrets(name), SERVICE_LIMITS.arg_name_chars));
  const rest = names.length - listed.length;
  return rest === 0 ? listed.sort() : [...listed.sort(), `(${formatCountOf(rest, "more argument")})`];
}

/** Caches the names of large arguments, which another thread listed, for `listArgNames`. */
export function cacheArgNames(args: JsonValue, names: string[]): void {
  cacheResult(args, listArgNames, names);
}

/** Event of each change of status. A request is consumed by the call that it approves. */
const EVENTS = {
  approved: "approved",
  denied: "denied",
  expired: "approval_expired",
  escalated: "approval_escalated",
  consumed: "approved",
} as const satisfies Partial<Record<ApprovalStatus, LedgerEvent>>;

interface Settlement {
  status: keyof typeof EVENTS;
  by: string;
  at_ms: number;
  detail: string;
}

export interface SettledApproval {
  approval: ApprovalDoc;
  record: LedgerRecord;
}

/** Moves a request to another status and appends the record of it. Changes `run` in place; the caller stores it. */
export function settleApproval(
  tx: StoreTx,
  run: RunDoc,
  approval: ApprovalDoc,
  { status, by, at_ms, detail }: Settlement,
): SettledApproval {
  if (status === "consumed") assertConsumable(approval);
  const moved = moveApproval(tx, run, approval, status);
  if (status === "denied" && moved.kind === "compensation") run.awaiting--;
  const record = appendApprovalRecord(tx, run, moved, {
    event: EVENTS[status],
    actor: by,
    ts_ms: at_ms,
    detail,
  });
  return { approval: moved, record };
}

/** Stores an approval that does not meet the request's needs yet, and appends the record of it. */
export function addApprovalVote(
  tx: StoreTx,
  run: RunDoc,
  voted: ApprovalDoc,
  { by, at_ms, detail }: Omit<Settlement, "status">,
): LedgerRecord {
  tx.put("approvals", voted.id, voted);
  return appendApprovalRecord(tx, run, voted, { event: "approved", actor: by, ts_ms: at_ms, detail });
}

/** Approves an open request and consumes it in one act, recorded by the caller. */
export function consumeAtOnce(tx: StoreTx, run: RunDoc, request: ApprovalDoc, vote: ApprovalVote): void {
  const votes = [...request.votes, vote];
  moveApproval(tx, run, { ...request, votes, decided_by: vote.by, decided_ms: vote.at_ms }, "consumed");
}

/** Moves a request to another status and updates its slot and the run's count of open requests. */
function moveApproval(tx: StoreTx, run: RunDoc, approval: ApprovalDoc, status: ApprovalStatus): ApprovalDoc {
  const moved: ApprovalDoc = { ...approval, status };
  if (OPEN_APPROVAL_STATUSES.has(approval.status) && !OPEN_APPROVAL_STATUSES.has(status))
    countOpenRequest(tx, run, -1);
  tx.put("approvals", moved.id, moved);
  const slot = slotOf(moved);
  if (LIVE_APPROVAL_STATUSES.has(status)) tx.put("approval_slots", slot, { id: moved.id });
  else {
    if (tx.get("approval_slots", slot)?.id === moved.id) tx.delete("approval_slots", slot);
    tx.delete("approval_values", moved.id);
    const { offer_for } = moved.internal;
    if (offer_for !== undefined) tx.delete("approval_slots", offerSlot(offer_for));
  }
  return moved;
}

/** Changes `run` in place; the caller stores it. The root of a tree counts the requests of its other runs too. */
function countOpenRequest(tx: StoreTx, run: RunDoc, by: 1 | -1): void {
  run.open_approvals += by;
  const root = run.child_of === undefined ? undefined : tx.get("runs", countedRun(run));
  if (root === undefined) return;
  const tree_open_approvals = (root.tree_open_approvals ?? 0) + by;
  tx.put("runs", root.run_id, { ...copyOfRun(root), tree_open_approvals });
}

/** Slot of the counter-proposal to a denied call, which repeats of the call also find. */
export const offerSlot = (slot: string): string => `${slot}/offer`;

/** `note` explains why it ended early. The verdict of the call has the record. */
export function expireApproval(tx: StoreTx, run: RunDoc, id: string, note?: string): void {
  const approval = tx.get("approvals", id);
  if (approval === undefined) return;
  moveApproval(tx, run, note === undefined ? approval : { ...approval, note }, "expired");
}

/**
 * The agent's reason on the card of an approval. Records and steps of the call keep it, so that an agent cannot put
 * another reason under an approval. The reason of a pre-approval is its approver's note, so it has none.
 */
export function approvedReason(tx: StoreTx, id: string): string | undefined {
  const { reason, internal } = tx.get("approvals", id) ?? {};
  return internal?.given_ahead ? undefined : reason;
}

/** Consumes an approved request for a step. The verdict of the call has the record. */
export function consumeApproval(tx: StoreTx, run: RunDoc, id: string, step: number | null): void {
  const approval = tx.get("approvals", id);
  if (approval === undefined) throw new Error(`approval ${id} cannot be used`);
  assertConsumable(approval);
  moveApproval(tx, run, { ...approval, step: approval.kind === "call" ? step : approval.step }, "consumed");
}

/** Only an approved request can be consumed, so each approval counts for one call. */
function assertConsumable({ id, status }: ApprovalDoc): void {
  if (status !== "approved") throw new Error(`approval ${id} cannot be used`);
}

export function slotOf(
  approval: Pick<ApprovalDoc, "run_id" | "tool" | "args_hash" | "kind" | "step">,
): string {
  // The approval of a compensation applies to its step, regardless of other calls with the same tool and arguments.
  const scope = approval.kind === "compensation" ? `undo:${approval.step}` : approval.args_hash;
  return slotKey(approval.run_id, approval.tool, scope);
}
