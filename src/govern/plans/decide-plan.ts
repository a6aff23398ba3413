/** Decides a plan: one vote, counted under the groups, quorum and four eyes of each call. */

import { conflictError, forbiddenError, notFoundError, SvcError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { needsMet } from "../../rules/policy/checks/approvals.ts";
import {
  type ApprovalDoc,
  type ApprovalVote,
  type ApprovalVoter,
  type StoredDelegation,
  WITHDRAWN_NOTE,
} from "../approvals/approval.ts";
import { type AuthorityFacts, assertNotOwnRequest, authoritiesOver } from "../approvals/authority.ts";
import { countingVoters, findCountedPerson, toVoter } from "../approvals/count-approvals.ts";
import { countableApprovals } from "../approvals/request-signature.ts";
import { buildingCard, cachedCardSummary } from "../cards/card-cache.ts";
import type { CardRun } from "../cards/load-card-facts.ts";
import type { StoredValues } from "../cards/stored-values.ts";
import { type ActiveRules, ENGINE_ACTOR, type EngineCore } from "../core.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { appendApprovalRecord, appendRunRecord } from "../records.ts";
import { type CallerPrincipal, hasRole, ROLE_MESSAGES } from "../roles.ts";
import { loadRun } from "../runs/load-run.ts";
import type { RunDoc } from "../runs/run.ts";
import { isSignatureRequired, planDraft } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import { type CheckedSignature, passkeyRequired, useSignature } from "../signing/signature.ts";
import type { PlanDoc } from "./plan.ts";
import { endPlan, removePlanFromRun } from "./plan-progress.ts";
import { addPlanToRun } from "./propose.ts";

interface DecidePlanInput {
  decision: "approve" | "deny";
  note: string | null;
  card_hash?: string | undefined;
  signature?: CheckedSignature | undefined;
}

export interface PlanDecisionResult {
  plan: PlanDoc;
  records: LedgerRecord[];
  refused: SvcError | null;
}

type KeptValues = readonly (StoredValues | undefined)[];

/** One hash over the cards of all calls. */
export const planHash = ({ salt }: Pick<CardRun, "salt">, cards: readonly { hash: string }[]): string =>
  keyedHash(
    salt,
    cards.map(({ hash }) => hash),
  );

/** Only the hash, from cached cards if possible. */
function planHashNow(rules: ActiveRules, run: CardRun, { internal }: PlanDoc, values: KeptValues): string {
  const cards = internal.requests.map((request, i) => {
    const known = values[i] === undefined ? undefined : cachedCardSummary(rules, run, request);
    return known ?? runAtOnce(buildingCard(rules, run, request, values[i]));
  });
  return planHash(run, cards);
}

export function decidePlanUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
  input: DecidePlanInput,
  delegations: readonly StoredDelegation[],
): UnitOfWork<PlanDecisionResult> {
  return {
    needs: [["plans", id], ...delegations.map((one) => ["delegations", one.id] as const)],
    run(tx) {
      const now = core.env.now();
      const { plan, run, ended } = openPlan(core, tx, id);
      if (ended !== null) return ended;
      const { four_eyes } = core.rules().policy.approvals;
      assertNotOwnRequest(plan, principal, four_eyes);
      const current = delegations.flatMap((one) => tx.get("delegations", one.id) ?? []);
      const facts = { four_eyes, now, delegations: current, today: core.today };
      const note = input.note === null ? null : core.redact(input.note);
      const vote = { by: principal.name, decision: input.decision, note, at_ms: now };
      const signature =
        input.decision === "deny" ? null : signatureOf({ core, tx, run, plan }, principal, input);
      const voted = castVotes(core, plan, principal, { ...vote, signature }, facts);
      assertCurrentCards(core, tx, run, plan, input.card_hash);
      return settle(core, tx, run, voted, { input, vote: voted.votes.at(-1)!, four_eyes, signature });
    },
  };
}

/** Adds the vote to every call where it counts; throws if it counts for none. */
function castVotes(
  core: EngineCore,
  plan: PlanDoc,
  principal: CallerPrincipal,
  { signature, ...vote }: Omit<ApprovalVote, "for"> & { signature: StoredSignature | null },
  facts: AuthorityFacts,
): PlanDoc {
  const problems: SvcError[] = [];
  let lender: string | null | undefined;
  const requests = plan.internal.requests.map((request, i) => {
    if (plan.calls[i]!.approval_id === null) return request;
    const signed = isSignatureRequired(core, request);
    const found = authoritiesOver(request, principal, { ...facts, signed });
    if (found instanceof SvcError) {
      problems.push(found);
      return request;
    }
    const fresh = (one: (typeof found)[number]) =>
      findCountedPerson(
        countableApprovals(core, request),
        { by: principal.name, for: one.for },
        core.today,
      ) === undefined;
    const authority = vote.decision === "deny" ? found[0] : found.find(fresh);
    if (authority === undefined) {
      problems.push(
        conflictError("already_voted", "you have already approved this plan; another approver must decide"),
      );
      return request;
    }
    lender ??= authority.for;
    const voter = toVoter(principal, authority, core.today);
    return withVote(request, { ...vote, for: authority.for }, voter, signature);
  });
  const counts = requests.some((request, i) => request !== plan.internal.requests[i]);
  if (!counts)
    throw (
      problems[0] ??
      (hasRole(principal, "approver")
        ? conflictError("plan_undecidable", "no call of this plan needs a decision")
        : forbiddenError(ROLE_MESSAGES.approver, "role_required"))
    );
  const votes = [...plan.votes, { ...vote, for: lender ?? null }];
  return { ...plan, votes, internal: { ...plan.internal, requests } };
}

interface PlanInUnit {
  core: EngineCore;
  tx: StoreTx;
  run: RunDoc;
  plan: PlanDoc;
}

/** Uses the signature of an approval. Throws if a call requires one and it is missing. */
function signatureOf(
  { core, tx, run, plan }: PlanInUnit,
  principal: CallerPrincipal,
  { signature }: DecidePlanInput,
): StoredSignature | null {
  const required = plan.internal.requests.some(
    (one, i) => plan.calls[i]!.approval_id !== null && isSignatureRequired(core, one),
  );
  if (required && signature === undefined) throw passkeyRequired();
  if (signature === undefined) return null;
  const values = plan.internal.requests.map(({ id }) => tx.get("approval_values", id));
  const card_hash = planHashNow(core.rules(), run, plan, values);
  return useSignature(core, tx, principal, signature, (nonce) => ({
    ...planDraft(core, run, plan, { by: principal.name, card_hash }),
    nonce,
  }));
}

function withVote(
  request: ApprovalDoc,
  vote: ApprovalVote,
  voter: ApprovalVoter,
  signature: StoredSignature | null,
): ApprovalDoc {
  const { internal } = request;
  const votes = [...request.votes, vote];
  if (vote.decision !== "approve") return { ...request, votes };
  const signed = signature === null ? {} : { signed: signature.payload.policy_hash };
  const kept = signature === null ? {} : { signatures: [...(internal.signatures ?? []), signature] };
  const voters = [...internal.voters, { ...voter, ...signed }];
  return { ...request, votes, internal: { ...internal, voters, ...kept } };
}

function assertCurrentCards(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  plan: PlanDoc,
  hash: string | undefined,
): void {
  if (hash === undefined) return;
  tx.expect(plan.internal.requests.map(({ id }) => ["approval_values", id]));
  const values = plan.internal.requests.map(({ id }) => tx.get("approval_values", id));
  if (planHashNow(core.rules(), run, plan, values) !== hash)
    throw conflictError(
      "card_changed",
      "the cards have changed since you saw them; review them again, then decide",
    );
}

function settle(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  voted: PlanDoc,
  {
    input,
    vote,
    four_eyes,
    signature,
  }: { input: DecidePlanInput; vote: ApprovalVote; four_eyes: boolean; signature: StoredSignature | null },
): PlanDecisionResult {
  const { now } = core.env;
  const at = now();
  const needing = voted.internal.requests.filter((_, i) => voted.calls[i]!.approval_id !== null);
  const met = needing.every((one) =>
    needsMet(one.internal.needs, countingVoters(countableApprovals(core, one), four_eyes, core.today)),
  );
  const tail = [
    vote.for === null ? "" : ` for ${vote.for}`,
    vote.note === null ? "" : `: ${vote.note}`,
    input.card_hash === undefined ? "" : `; card ${input.card_hash}`,
  ].join("");
  const write = (event: "plan_approved" | "plan_denied", what: string) =>
    appendRunRecord(tx, run, {
      event,
      actor: vote.by,
      ts_ms: at,
      detail: signedDetail(`plan ${voted.id}${what}${tail}`, signature),
      reason: voted.reason,
    });
  if (vote.decision === "approve" && !met) {
    tx.put("plans", voted.id, voted);
    const record = write("plan_approved", " (waits for others)");
    tx.put("runs", run.run_id, run);
    return { plan: voted, records: [record], refused: null };
  }
  const decided: PlanDoc = { ...voted, decided_by: vote.by, decided_ms: at, note: vote.note };
  const denied = vote.decision === "deny";
  const records = [write(denied ? "plan_denied" : "plan_approved", "")];
  const plan: PlanDoc = { ...decided, status: denied ? "denied" : "approved" };
  if (denied) {
    removePlanFromRun(run, plan.id);
    for (const { id } of plan.internal.requests) tx.delete("approval_values", id);
  } else {
    addPlanToRun(run, plan.id);
    for (const request of needing) records.push(makeApproval(tx, run, plan, request, vote));
  }
  tx.put("plans", plan.id, plan);
  tx.put("runs", run.run_id, run);
  return { plan, records, refused: null };
}

/** Creates an approved request for exactly these arguments. It has no slot, since only the plan's order leads to it. */
function makeApproval(
  tx: StoreTx,
  run: RunDoc,
  plan: PlanDoc,
  request: ApprovalDoc,
  vote: ApprovalVote,
): LedgerRecord {
  const approval: ApprovalDoc = {
    ...request,
    status: "approved",
    decided_by: vote.by,
    decided_ms: vote.at_ms,
    note: vote.note,
  };
  tx.put("approvals", approval.id, approval);
  const signed = approval.internal.signatures?.findLast(({ payload }) => payload.by === vote.by);
  return appendApprovalRecord(tx, run, approval, {
    event: "approved",
    actor: vote.by,
    ts_ms: vote.at_ms,
    detail: signedDetail(`request ${approval.id} of plan ${plan.id}`, signed),
  });
}

/** The proposer withdraws a plan, decided or not, while it is in progress. */
export function withdrawPlanUnit(core: EngineCore, principal: CallerPrincipal, id: string) {
  const isProposer = (plan: PlanDoc) => plan.internal.principal === principal.id;
  return endPlanUnit(core, id, { note: WITHDRAWN_NOTE, by: principal.name, isVisible: isProposer });
}

/** Revokes a plan from its proposer; its remaining calls are no longer covered. */
export function revokePlanUnit(core: EngineCore, principal: CallerPrincipal, id: string) {
  return endPlanUnit(core, id, { note: REVOKED, by: principal.name, isVisible: () => true });
}

function endPlanUnit(
  core: EngineCore,
  id: string,
  { note, by, isVisible }: { note: string; by: string; isVisible(plan: PlanDoc): boolean },
): UnitOfWork<PlanDecisionResult> {
  return {
    needs: [["plans", id]],
    run(tx) {
      const plan = tx.get("plans", id);
      if (plan === undefined || !isVisible(plan)) throw notFoundError(`unknown plan ${id}`, "unknown_plan");
      if (plan.status !== "pending" && plan.status !== "approved")
        throw conflictError("plan_ended", `plan ${id} has ended (${plan.status})`);
      return { ...expirePlan(core, tx, plan, note, by), refused: null };
    },
  };
}

/** Ends a plan past its deadline; null if there is nothing to do. */
export function expirePlanUnit(core: EngineCore, id: string): UnitOfWork<PlanDecisionResult | null> {
  return {
    needs: [["plans", id]],
    run(tx) {
      const plan = tx.get("plans", id);
      const alive = plan?.status === "pending" || plan?.status === "approved";
      if (plan === undefined || !alive || !isExpired(plan, core.env.now())) return null;
      return { ...expirePlan(core, tx, plan, EXPIRED, ENGINE_ACTOR), refused: null };
    },
  };
}

const EXPIRED = "expired";
const REVOKED = "revoked";

function expirePlan(core: EngineCore, tx: StoreTx, plan: PlanDoc, note: string, by: string) {
  const run = loadRun(tx, plan.run_id);
  const now = core.env.now();
  const detail = note === EXPIRED ? `plan ${plan.id}` : `plan ${plan.id}: ${note}`;
  const first = appendRunRecord(tx, run, {
    event: "approval_expired",
    actor: by,
    ts_ms: now,
    detail,
    reason: plan.reason,
  });
  const records = [first, ...endPlan(tx, run, plan, { status: "expired", note, now })];
  tx.put("runs", run.run_id, run);
  return { plan: tx.get("plans", plan.id)!, records };
}

function openPlan(
  core: EngineCore,
  tx: StoreTx,
  id: string,
): { plan: PlanDoc; run: RunDoc; ended: PlanDecisionResult | null } {
  const plan = tx.get("plans", id);
  if (plan === undefined) throw notFoundError(`unknown plan ${id}`, "unknown_plan");
  if (plan.status !== "pending")
    throw conflictError("plan_decided", `plan ${id} was already decided (${plan.status})`);
  const run = loadRun(tx, plan.run_id);
  if (!isExpired(plan, core.env.now())) return { plan, run, ended: null };
  const ended = expirePlan(core, tx, plan, EXPIRED, ENGINE_ACTOR);
  return {
    plan,
    run,
    ended: {
      ...ended,
      refused: conflictError("plan_expired", `plan ${id} has expired; it must be proposed again`),
    },
  };
}
