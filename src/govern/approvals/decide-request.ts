/**
 * Decides a request: approve, deny, break glass. Exactly one of several concurrent deciders ends the request; the
 * others get a conflict.
 */

import { conflictError, forbiddenError, notFoundError, SvcError } from "../../kernel/errors.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { needsMet } from "../../rules/policy/checks/approvals.ts";
import { buildingCard, cachedCardSummary } from "../cards/card-cache.ts";
import { ENGINE_ACTOR, type EngineCore } from "../core.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import { loadRun } from "../runs/load-run.ts";
import type { RunDoc } from "../runs/run.ts";
import { isSignatureRequired } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import type { CheckedSignature } from "../signing/signature.ts";
import {
  type ApprovalDoc,
  type ApprovalVote,
  type ApprovalVoter,
  LIVE_APPROVAL_STATUSES,
  OPEN_APPROVAL_STATUSES,
  type StoredDelegation,
  WITHDRAWN_NOTE,
} from "./approval.ts";
import { assertNotOwnRequest, authoritiesOver, type DecidingAuthority } from "./authority.ts";
import { countingVoters, findCountedPerson, toVoter } from "./count-approvals.ts";
import { makeOffer, type OfferInput } from "./counter-proposal.ts";
import { countableApprovals, useRequestSignature, withSignature } from "./request-signature.ts";
import { addApprovalVote, type SettledApproval, settleApproval } from "./requests.ts";

interface DecideInput {
  decision: "approve" | "deny";
  note: string | null;
  /** Hash of the card that the decider saw, if the decider sends it. */
  card_hash?: string | undefined;
  /** Number of requests decided together in a table instead of separately. */
  group_of?: number | undefined;
  /** Counter-proposal: other arguments that the decider approves along with a denial. */
  offer?: OfferInput | undefined;
  /** Verified signature of the decider. */
  signature?: CheckedSignature | undefined;
}

export type DecideResult = {
  approval: ApprovalDoc;
  records: LedgerRecord[];
  refused: SvcError | null;
  offered?: ApprovalDoc;
};

/**
 * Decides a request. `delegations` are the delegations to the principal's name, read before the unit and checked again
 * inside it, together with their delegators. A delegator without a verified identity delegates nothing.
 */
export function decideUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
  input: DecideInput,
  delegations: readonly StoredDelegation[],
): UnitOfWork<DecideResult> {
  return {
    needs: [
      ["approvals", id],
      ["approval_values", id],
      ...delegations.map(({ id }) => ["delegations", id] as const),
    ],
    share: principal.tenant ?? undefined,
    run(tx) {
      const now = core.env.now();
      const { approval, run, ended } = openRequest(core, tx, id);
      if (ended !== null) return ended;
      const current = delegations.flatMap(({ id }) => tx.get("delegations", id) ?? []);
      const four_eyes = core.rules().policy.approvals.four_eyes;
      assertNotOwnRequest(approval, principal, four_eyes);
      const required = isSignatureRequired(core, approval);
      const facts = { four_eyes, now, delegations: current, today: core.today, signed: required };
      const found = authoritiesOver(approval, principal, facts);
      if (found instanceof SvcError) throw found;
      // An approver who has voted, or whose delegate has, can still deny.
      const authority = input.decision === "deny" ? found[0]! : fresh(core, approval, principal, found);
      const signature =
        input.decision === "deny" ? null : useRequestSignature({ core, tx, run, approval }, principal, input);
      assertCurrentCard(core, tx, run, approval, input.card_hash);
      const note = input.note === null ? null : core.redact(input.note);
      const vote: ApprovalVote = {
        by: principal.name,
        decision: input.decision,
        note,
        at_ms: now,
        for: authority.for,
      };
      const voted: ApprovalDoc = {
        ...approval,
        votes: [...approval.votes, vote],
        internal: withVoter(approval, input.decision, {
          ...toVoter(principal, authority, core.today),
          ...(signature === null ? {} : { signed: signature.payload.policy_hash }),
          signature,
        }),
      };
      const linked = input.offer === undefined ? voted : withOffer(voted, input.offer.id);
      const settled = settle(core, tx, run, linked, { vote, four_eyes, input, signature });
      if (input.offer === undefined) return settled;
      const made = makeOffer(core, tx, run, approval, {
        principal,
        facts,
        input: input.offer,
        signature: input.signature,
      });
      tx.put("runs", run.run_id, run);
      return { ...settled, records: [...settled.records, made.record], offered: made.approval };
    },
  };
}

function withOffer(approval: ApprovalDoc, offer: string): ApprovalDoc {
  return { ...approval, internal: { ...approval.internal, offer } };
}

/** Throws if the card changed since the decider saw it. */
function assertCurrentCard(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  approval: ApprovalDoc,
  card_hash: string | undefined,
): void {
  if (card_hash === undefined) return;
  const values = tx.get("approval_values", approval.id);
  const rules = core.rules();
  const known = values === undefined ? undefined : cachedCardSummary(rules, run, approval);
  const { hash } = known ?? runAtOnce(buildingCard(rules, run, approval, values));
  if (hash === card_hash) return;
  throw conflictError("card_changed", "the card has changed since you saw it; review it again, then decide");
}

/** First authority that does not count in this request yet. */
function fresh(
  core: EngineCore,
  approval: ApprovalDoc,
  { name }: CallerPrincipal,
  found: readonly DecidingAuthority[],
): DecidingAuthority {
  const counting = countableApprovals(core, approval);
  const counted = (authority: DecidingAuthority) =>
    findCountedPerson(counting, { by: name, for: authority.for }, core.today);
  const unused = found.find((authority) => counted(authority) === undefined);
  if (unused !== undefined) return unused;
  const voted = counting.votes.some(({ by }) => by === name);
  throw conflictError(
    "already_voted",
    voted
      ? "you have already approved this request; another approver must decide"
      : `the authority of ${counted(found[0]!)} already counts in this request; another approver must decide`,
  );
}

function withVoter(
  { internal }: ApprovalDoc,
  decision: ApprovalVote["decision"],
  { signature, ...voter }: ApprovalVoter & { signature: StoredSignature | null },
): ApprovalDoc["internal"] {
  return decision === "deny"
    ? internal
    : withSignature({ ...internal, voters: [...internal.voters, voter] }, signature);
}

interface Settling {
  vote: ApprovalVote;
  four_eyes: boolean;
  input: DecideInput;
  signature: StoredSignature | null;
}

function settle(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  voted: ApprovalDoc,
  { vote, four_eyes, input, signature }: Settling,
): DecideResult {
  const { needs } = voted.internal;
  const voters = countingVoters(countableApprovals(core, voted), four_eyes, core.today);
  const { group_of, card_hash } = input;
  // Placed before the note, so that the decider's own text cannot imitate it.
  const group = group_of === undefined ? "" : ` in a group of ${group_of}`;
  const card = card_hash === undefined ? "" : `; card ${card_hash}`;
  const tail = `${group}${vote.for === null ? "" : ` for ${vote.for}`}${vote.note === null ? "" : `: ${vote.note}`}${card}`;
  if (vote.decision === "approve" && !needsMet(needs, voters)) {
    const record = addApprovalVote(tx, run, voted, {
      by: vote.by,
      at_ms: core.env.now(),
      detail: signedDetail(
        `request ${voted.id} (${voters.length} of ${voted.approvers.quorum})${tail}`,
        signature,
      ),
    });
    return stored(tx, run, { approval: voted, record });
  }
  const decided: ApprovalDoc = { ...voted, decided_by: vote.by, decided_ms: vote.at_ms, note: vote.note };
  const status = vote.decision === "approve" ? "approved" : "denied";
  const detail = signedDetail(`request ${voted.id}${tail}`, signature);
  return stored(
    tx,
    run,
    settleApproval(tx, run, decided, { status, by: vote.by, at_ms: core.env.now(), detail }),
  );
}

function stored(tx: StoreTx, run: RunDoc, { approval, record }: SettledApproval): DecideResult {
  tx.put("runs", run.run_id, run);
  return { approval, records: [record], refused: null };
}

/** Break-glass: an admin approves alone, regardless of quorum and groups, and a notification reports it. */
export function breakGlassUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
  { reason, signature: given }: { reason: string; signature?: CheckedSignature | undefined },
): UnitOfWork<DecideResult> {
  return {
    needs: [
      ["approvals", id],
      ["approval_values", id],
    ],
    run(tx) {
      const { approval, run, ended } = openRequest(core, tx, id);
      if (ended !== null) return ended;
      assertNotOwnRequest(approval, principal, core.rules().policy.approvals.four_eyes);
      const now = core.env.now();
      const why = core.redact(reason);
      const signature = useRequestSignature({ core, tx, run, approval }, principal, {
        signature: given,
        reason: why,
      });
      const vote: ApprovalVote = {
        by: principal.name,
        decision: "approve",
        note: why,
        at_ms: now,
        for: null,
      };
      const decided: ApprovalDoc = {
        ...approval,
        votes: [...approval.votes, vote],
        decided_by: principal.name,
        decided_ms: now,
        note: why,
        break_glass: true,
        internal: withSignature(approval.internal, signature),
      };
      const by = principal.name;
      const detail = signedDetail(`break-glass: ${why}`, signature);
      return stored(
        tx,
        run,
        settleApproval(tx, run, decided, { status: "approved", by, at_ms: now, detail }),
      );
    },
  };
}

/** The requester withdraws a request. The request of an undo belongs to the principal that undoes. */
export function withdrawUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
): UnitOfWork<DecideResult> {
  return {
    needs: [["approvals", id]],
    share: principal.tenant ?? undefined,
    run(tx) {
      const { approval, run, ended } = openRequest(core, tx, id);
      if (ended !== null) return ended;
      if (approval.kind === "compensation")
        throw forbiddenError("the request is for an undo of this run; deny it or let it expire");
      const settled = settleApproval(
        tx,
        run,
        { ...approval, note: WITHDRAWN_NOTE },
        {
          status: "expired",
          by: principal.name,
          at_ms: core.env.now(),
          detail: `request ${id}: ${WITHDRAWN_NOTE}`,
        },
      );
      return stored(tx, run, settled);
    },
  };
}

/** Escalates or expires a request whose time has come; null if there is nothing to do. */
export function expireOrEscalateUnit(core: EngineCore, id: string): UnitOfWork<DecideResult | null> {
  return {
    needs: [["approvals", id]],
    run(tx) {
      const approval = tx.get("approvals", id);
      if (approval === undefined) return null;
      const now = core.env.now();
      if (LIVE_APPROVAL_STATUSES.has(approval.status) && isExpired(approval, now))
        return expire(core, tx, approval);
      const { escalate_after_ms, escalate_to } = approval.internal;
      const due = escalate_after_ms !== null && now >= approval.requested_ms + escalate_after_ms;
      if (approval.status !== "pending" || !due) return null;
      const run = loadRun(tx, approval.run_id);
      // A request that any approver can decide stays so; naming groups now would exclude approvers.
      const asked = approval.approvers.groups;
      const groups = asked.length === 0 ? asked : [...new Set([...asked, ...escalate_to])];
      // The escalation groups can substitute for the original groups.
      const needs = approval.internal.needs.map((need) =>
        need.groups.length === 0 ? need : { ...need, groups: [...new Set([...need.groups, ...escalate_to])] },
      );
      const internal = { ...approval.internal, needs };
      const widened = {
        ...approval,
        approvers: { ...approval.approvers, groups },
        escalated_ms: now,
        internal,
      };
      const to = escalate_to.length === 0 ? "" : ` to ${escalate_to.join(", ")}`;
      const detail = `request ${id}${to}`;
      const by = ENGINE_ACTOR;
      return stored(
        tx,
        run,
        settleApproval(tx, run, widened, { status: "escalated", by, at_ms: now, detail }),
      );
    },
  };
}

function openRequest(
  core: EngineCore,
  tx: StoreTx,
  id: string,
): { approval: ApprovalDoc; run: RunDoc; ended: DecideResult | null } {
  const approval = tx.get("approvals", id);
  if (approval === undefined) throw notFoundError(`unknown approval request ${id}`, "unknown_approval");
  const run = loadRun(tx, approval.run_id);
  if (!OPEN_APPROVAL_STATUSES.has(approval.status))
    throw conflictError("already_decided", `request ${id} was already decided (${approval.status})`);
  if (!isExpired(approval, core.env.now())) return { approval, run, ended: null };
  const ended = expire(core, tx, approval);
  return {
    approval,
    run,
    ended: {
      ...ended,
      refused: conflictError(
        "request_expired",
        `request ${id} has expired; the agent must request the call again`,
      ),
    },
  };
}

function expire(core: EngineCore, tx: StoreTx, approval: ApprovalDoc): DecideResult {
  const run = loadRun(tx, approval.run_id);
  const detail = `request ${approval.id}`;
  const at_ms = core.env.now();
  return stored(
    tx,
    run,
    settleApproval(tx, run, approval, { status: "expired", by: ENGINE_ACTOR, at_ms, detail }),
  );
}
