/**
 * Deciding a request: approve, deny, break glass. Of several deciders exactly one ends the request; the
 * others are told that it was already decided.
 */
import { conflict, forbidden, notFound, SvcError } from "../../kernel/errors.ts";
import { doAtOnce } from "../../kernel/turns.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import {
  type ApprovalDoc,
  type Delegation,
  OPEN_APPROVAL,
  type Vote,
  type Voter,
  WITHDRAWN,
} from "../../model/approval.ts";
import { needsMet } from "../../model/policy/approvals.ts";
import type { Principal } from "../../model/roles.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx, Unit } from "../../port/store.ts";
import { type Core, ENGINE } from "../core.ts";
import { loadRun } from "../load-run.ts";
import { appendApprovalRecord } from "../records.ts";
import { type Authority, assertNotOwn, authoritiesOver } from "./authority.ts";
import { countedBefore, countingVoters, voterOf } from "./counting.ts";
import { makingCard, rememberedCard } from "./made-cards.ts";
import { makeOffer, type OfferInput } from "./offer.ts";
import { moveApproval } from "./requests.ts";

interface DecideInput {
  decision: "approve" | "deny";
  note: string | null;
  /** The card that was decided by, where the decider says so. */
  card_hash?: string | undefined;
  /** How many were decided together, in a table and not each by its card. */
  group_of?: number | undefined;
  /** Other arguments that the decider, in denying, approves ahead. */
  offer?: OfferInput | undefined;
}

export type DecideResult = {
  approval: ApprovalDoc;
  records: LedgerRecord[];
  refused: SvcError | null;
  offered?: ApprovalDoc;
};

/**
 * `delegations` are those to the principal's name; they are read before the unit and checked inside it again, and
 * their lenders with them: one without a vouched identity lends nothing.
 */
export function decideUnit(
  core: Core,
  principal: Principal,
  id: string,
  input: DecideInput,
  delegations: readonly Delegation[],
): Unit<DecideResult> {
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
      assertNotOwn(approval, principal, four_eyes);
      const facts = { four_eyes, now, delegations: current, today: core.today };
      const found = authoritiesOver(approval, principal, facts);
      if (found instanceof SvcError) throw found;
      // Whoever approved before, or lent to a person who did, may still deny.
      const authority = input.decision === "deny" ? found[0]! : fresh(core, approval, principal, found);
      assertCurrentCard(core, tx, run, approval, input.card_hash);
      const note = input.note === null ? null : core.redact(input.note);
      const vote: Vote = {
        by: principal.name,
        decision: input.decision,
        note,
        at_ms: now,
        for: authority.for,
      };
      const voted: ApprovalDoc = {
        ...approval,
        votes: [...approval.votes, vote],
        internal: withVoter(approval, input.decision, voterOf(principal, authority, core.today)),
      };
      const linked = input.offer === undefined ? voted : withOffer(voted, input.offer.id);
      const settled = settle(core, tx, run, linked, { vote, four_eyes, input });
      if (input.offer === undefined) return settled;
      const made = makeOffer(core, tx, run, approval, { principal, facts, input: input.offer });
      tx.put("runs", run.run_id, run);
      return { ...settled, records: [...settled.records, made.record], offered: made.approval };
    },
  };
}

function withOffer(approval: ApprovalDoc, offer: string): ApprovalDoc {
  return { ...approval, internal: { ...approval.internal, offer } };
}

/** What was decided on must still be what is there: a card that changed since is looked at again first. */
function assertCurrentCard(
  core: Core,
  tx: Tx,
  run: RunDoc,
  approval: ApprovalDoc,
  card_hash: string | undefined,
): void {
  if (card_hash === undefined) return;
  const values = tx.get("approval_values", approval.id);
  const rules = core.rules();
  const known = values === undefined ? undefined : rememberedCard(rules, run, approval);
  const { hash } = known ?? doAtOnce(makingCard(rules, run, approval, values));
  if (hash === card_hash) return;
  throw conflict(
    "card_changed",
    "the card has changed since it was shown; look at it again and decide on what it says now",
  );
}

/** The first authority that does not count in this request yet. */
function fresh(
  core: Core,
  approval: ApprovalDoc,
  { name }: Principal,
  found: readonly Authority[],
): Authority {
  const counted = (authority: Authority) =>
    countedBefore(approval, { by: name, for: authority.for }, core.today);
  const unused = found.find((authority) => counted(authority) === undefined);
  if (unused !== undefined) return unused;
  const voted = approval.votes.some(({ by }) => by === name);
  throw conflict(
    "already_voted",
    voted
      ? "you have already approved this request; it waits for somebody else"
      : `the authority of ${counted(found[0]!)} counts in this request already; it waits for somebody else`,
  );
}

function withVoter(approval: ApprovalDoc, decision: Vote["decision"], voter: Voter): ApprovalDoc["internal"] {
  const { internal } = approval;
  return decision === "deny" ? internal : { ...internal, voters: [...internal.voters, voter] };
}

function settle(
  core: Core,
  tx: Tx,
  run: RunDoc,
  voted: ApprovalDoc,
  { vote, four_eyes, input }: { vote: Vote; four_eyes: boolean; input: DecideInput },
): DecideResult {
  const { needs } = voted.internal;
  const voters = countingVoters(voted, four_eyes, core.today);
  const { group_of, card_hash } = input;
  // Before the note, which is the decider's own text: it cannot say this in its place.
  const group = group_of === undefined ? "" : ` in a group of ${group_of}`;
  const card = card_hash === undefined ? "" : `; card ${card_hash}`;
  const tail = `${group}${vote.for === null ? "" : ` for ${vote.for}`}${vote.note === null ? "" : `: ${vote.note}`}${card}`;
  if (vote.decision === "approve" && !needsMet(needs, voters)) {
    tx.put("approvals", voted.id, voted);
    const record = appendApprovalRecord(tx, run, voted, {
      event: "approved",
      actor: vote.by,
      ts_ms: core.env.now(),
      detail: `request ${voted.id} (${voters.length} of ${voted.approvers.quorum})${tail}`,
    });
    tx.put("runs", run.run_id, run);
    return { approval: voted, records: [record], refused: null };
  }
  const decided: ApprovalDoc = { ...voted, decided_by: vote.by, decided_ms: vote.at_ms, note: vote.note };
  const status = vote.decision === "approve" ? "approved" : "denied";
  const moved = moveApproval(tx, run, decided, status);
  if (status === "approved" && moved.kind === "compensation") run.awaiting--;
  const record = appendApprovalRecord(tx, run, moved, {
    event: status,
    actor: vote.by,
    ts_ms: core.env.now(),
    detail: `request ${moved.id}${tail}`,
  });
  tx.put("runs", run.run_id, run);
  return { approval: moved, records: [record], refused: null };
}

/** An admin approves alone, past quorum and groups, and everybody hears of it. */
export function breakGlassUnit(
  core: Core,
  principal: Principal,
  id: string,
  reason: string,
): Unit<DecideResult> {
  return {
    needs: [["approvals", id]],
    run(tx) {
      const { approval, run, ended } = openRequest(core, tx, id);
      if (ended !== null) return ended;
      assertNotOwn(approval, principal, core.rules().policy.approvals.four_eyes);
      const now = core.env.now();
      const why = core.redact(reason);
      const vote: Vote = { by: principal.name, decision: "approve", note: why, at_ms: now, for: null };
      const decided: ApprovalDoc = {
        ...approval,
        votes: [...approval.votes, vote],
        decided_by: principal.name,
        decided_ms: now,
        note: why,
        break_glass: true,
      };
      const moved = moveApproval(tx, run, decided, "approved");
      if (moved.kind === "compensation") run.awaiting--;
      const record = appendApprovalRecord(tx, run, moved, {
        event: "approved",
        actor: principal.name,
        ts_ms: now,
        detail: `break-glass: ${why}`,
      });
      tx.put("runs", run.run_id, run);
      return { approval: moved, records: [record], refused: null };
    },
  };
}

/** Whoever asked takes the question back; an undo's request belongs to whoever undoes. */
export function withdrawUnit(core: Core, principal: Principal, id: string): Unit<DecideResult> {
  return {
    needs: [["approvals", id]],
    share: principal.tenant ?? undefined,
    run(tx) {
      const { approval, run, ended } = openRequest(core, tx, id);
      if (ended !== null) return ended;
      if (approval.kind === "compensation")
        throw forbidden("the request is for an undo of this run; deny it or let it expire");
      const moved = moveApproval(tx, run, { ...approval, note: WITHDRAWN }, "expired");
      const detail = `request ${id}: ${WITHDRAWN}`;
      const record = appendApprovalRecord(tx, run, moved, {
        event: "approval_expired",
        actor: principal.name,
        ts_ms: core.env.now(),
        detail,
      });
      tx.put("runs", run.run_id, run);
      return { approval: moved, records: [record], refused: null };
    },
  };
}

/** Escalates or expires a request whose time has come; null where there is nothing to do. */
export function ageUnit(core: Core, id: string): Unit<DecideResult | null> {
  return {
    needs: [["approvals", id]],
    run(tx) {
      const approval = tx.get("approvals", id);
      if (approval === undefined) return null;
      const now = core.env.now();
      const alive = OPEN_APPROVAL.has(approval.status) || approval.status === "approved";
      if (alive && now >= approval.expires_ms) return expire(core, tx, approval);
      const { escalate_after_ms, escalate_to } = approval.internal;
      const due = escalate_after_ms !== null && now >= approval.requested_ms + escalate_after_ms;
      if (approval.status !== "pending" || !due) return null;
      const run = loadRun(tx, approval.run_id);
      // A request that any approver may decide stays so; naming groups now would shut people out.
      const asked = approval.approvers.groups;
      const groups = asked.length === 0 ? asked : [...new Set([...asked, ...escalate_to])];
      // Those it is escalated to may stand in for the groups it was first meant for.
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
      const moved = moveApproval(tx, run, widened, "escalated");
      const to = escalate_to.length === 0 ? "" : ` to ${escalate_to.join(", ")}`;
      const record = appendApprovalRecord(tx, run, moved, {
        event: "approval_escalated",
        actor: ENGINE,
        ts_ms: now,
        detail: `request ${id}${to}`,
      });
      tx.put("runs", run.run_id, run);
      return { approval: moved, records: [record], refused: null };
    },
  };
}

function openRequest(
  core: Core,
  tx: Tx,
  id: string,
): { approval: ApprovalDoc; run: RunDoc; ended: DecideResult | null } {
  const approval = tx.get("approvals", id);
  if (approval === undefined) throw notFound(`unknown approval request ${id}`, "unknown_approval");
  const run = loadRun(tx, approval.run_id);
  if (!OPEN_APPROVAL.has(approval.status))
    throw conflict("already_decided", `request ${id} was already decided (${approval.status})`);
  if (core.env.now() < approval.expires_ms) return { approval, run, ended: null };
  const ended = expire(core, tx, approval);
  return {
    approval,
    run,
    ended: {
      ...ended,
      refused: conflict("request_expired", `request ${id} has expired; the call must be asked for again`),
    },
  };
}

function expire(core: Core, tx: Tx, approval: ApprovalDoc): DecideResult {
  const run = loadRun(tx, approval.run_id);
  const moved = moveApproval(tx, run, approval, "expired");
  const record = appendApprovalRecord(tx, run, moved, {
    event: "approval_expired",
    actor: ENGINE,
    ts_ms: core.env.now(),
    detail: `request ${approval.id}`,
  });
  tx.put("runs", run.run_id, run);
  return { approval: moved, records: [record], refused: null };
}
