/**
 * The life of an approval request inside a unit of work. A request speaks for one run, tool and set of
 * arguments through its slot; whoever ends the request empties the slot, so that it is used once, and its values go.
 */
import { isDeepStrictEqual } from "node:util";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { clip, plural } from "../../kernel/words.ts";
import { type ApprovalDoc, type ApprovalStatus, OPEN_APPROVAL } from "../../model/approval.ts";
import type { ApprovalValues, AskedUndo, Because } from "../../model/card/types.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import { type FloodLimit, type MergedApproval, needsMet } from "../../model/policy/approvals.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx } from "../../port/store.ts";
import type { RequestTerms } from "../decide/verdict.ts";
import { slotKey } from "../keys.ts";
import { countingVoters } from "./counting.ts";
import { countRequest } from "./flood.ts";

export interface NewApproval {
  id: string;
  spec: MergedApproval;
  rule: string | null;
  tool: string;
  args: Json;
  args_hash: string;
  reason: string;
  now: number;
  kind: "call" | "compensation";
  step: number | null;
  risk_score: number;
  because?: Because | undefined;
  undo?: AskedUndo | undefined;
  /** What the card shows to be there, as a hash; undefined where it shows nothing of it. */
  before_hash?: string | null | undefined;
  /** What whoever decides it may see of the values; null where the policy keeps names alone. */
  shown: Omit<ApprovalValues, "run_id"> | null;
  /** When the actor's requests are told together; absent where a person opens the request. */
  flood?: FloodLimit | null;
  /** Such a call keeps a message of its own. */
  irreversible?: boolean;
}

/** A request as it begins, without anything of it being stored. */
export function madeApproval(run: RunDoc, input: NewApproval): ApprovalDoc {
  const { spec } = input;
  return {
    id: input.id,
    run_id: run.run_id,
    tool: input.tool,
    actor: run.actor,
    tenant: run.tenant,
    args_hash: input.args_hash,
    arg_names: namesOf(input.args),
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
      ...(input.because === undefined ? {} : { because: input.because }),
      ...(input.undo === undefined ? {} : { undo: input.undo }),
      ...(input.before_hash === undefined ? {} : { before_hash: input.before_hash }),
    },
  };
}

/** Opens a request. The run's count of open requests moves with it; the caller stores the run. */
export function newApproval(tx: Tx, run: RunDoc, input: NewApproval): ApprovalDoc {
  const approval = madeApproval(run, input);
  run.open_approvals++;
  const flooded = input.flood != null && countRequest(tx, run, input.flood, input.now);
  if (flooded && input.irreversible !== true) approval.internal.in_digest = true;
  const standing = input.kind === "call" ? tx.get("approval_slots", offerSlot(slotOf(approval))) : undefined;
  if (standing !== undefined) approval.internal.offer = standing.id;
  tx.put("approvals", approval.id, approval);
  if (input.shown !== null) tx.put("approval_values", approval.id, { run_id: run.run_id, ...input.shown });
  tx.put("approval_slots", slotOf(approval), { id: approval.id });
  return approval;
}

/**
 * An open request is judged by the rules that ask for it now: where the policy changed since, its card says so and its
 * hash is another. What votes have satisfied already, and what was passed on to others, keeps its own terms.
 */
export function renewTerms(
  tx: Tx,
  id: string,
  { spec, rule, because }: RequestTerms,
  risk_score: number,
  four_eyes: boolean,
): void {
  const request = tx.get("approvals", id);
  if (request === undefined) return;
  const { internal, approvers } = request;
  const settled = request.escalated_ms !== null || needsMet(spec.needs, countingVoters(request, four_eyes));
  const needs = settled ? internal.needs : spec.needs;
  const was = { rule: request.rule, because: internal.because, needs: internal.needs };
  if (isDeepStrictEqual(was, { rule, because, needs })) return;
  tx.put("approvals", id, {
    ...request,
    rule,
    approvers: settled ? approvers : { groups: spec.groups, quorum: spec.quorum },
    internal: { ...internal, because, needs, risk_score },
  });
}

/** What the arguments are called, for people: a name that is itself a credential is shown to no person. */
function namesOf(args: Json): string[] {
  if (!isJsonObject(args)) return [];
  const names = Object.keys(args);
  const listed = names
    .slice(0, LIMITS.arg_names)
    .map((name) => clip(redactSecrets(name), LIMITS.arg_name_chars));
  const rest = names.length - listed.length;
  return rest === 0 ? listed.sort() : [...listed.sort(), `(${plural(rest, "more argument")})`];
}

/** Moves a request to another status, keeping the slot and the run's count of open requests true. */
export function moveApproval(
  tx: Tx,
  run: RunDoc,
  approval: ApprovalDoc,
  status: ApprovalStatus,
): ApprovalDoc {
  const moved: ApprovalDoc = { ...approval, status };
  if (OPEN_APPROVAL.has(approval.status) && !OPEN_APPROVAL.has(status)) run.open_approvals--;
  tx.put("approvals", moved.id, moved);
  const speaks = OPEN_APPROVAL.has(status) || status === "approved";
  const slot = slotOf(moved);
  if (speaks) tx.put("approval_slots", slot, { id: moved.id });
  else {
    if (tx.get("approval_slots", slot)?.id === moved.id) tx.delete("approval_slots", slot);
    tx.delete("approval_values", moved.id);
    const { offer_for } = moved.internal;
    if (offer_for !== undefined) tx.delete("approval_slots", offerSlot(offer_for));
  }
  return moved;
}

/** Where the offer is found that was made in place of a denied call; a repeat of the call points to it, too. */
export const offerSlot = (slot: string): string => `${slot}/offer`;

/** `note`: why it ended before its time. */
export function expireApproval(tx: Tx, run: RunDoc, id: string, note?: string): void {
  const approval = tx.get("approvals", id);
  if (approval === undefined) return;
  moveApproval(tx, run, note === undefined ? approval : { ...approval, note }, "expired");
}

/** Spends an approved request on a step: it can never be used again. */
export function takeApproval(tx: Tx, run: RunDoc, id: string, step: number | null): void {
  const approval = tx.get("approvals", id);
  if (approval?.status !== "approved") throw new Error(`approval ${id} is not there to be used`);
  moveApproval(tx, run, { ...approval, step: approval.kind === "call" ? step : approval.step }, "consumed");
}

export function slotOf(
  approval: Pick<ApprovalDoc, "run_id" | "tool" | "args_hash" | "kind" | "step">,
): string {
  // A compensation is approved for its step, whatever call the same tool and arguments may be elsewhere.
  const scope = approval.kind === "compensation" ? `undo:${approval.step}` : approval.args_hash;
  return slotKey(approval.run_id, approval.tool, scope);
}
