/** Deciding a plan: one vote, counted under each call's own groups, quorum and four eyes. */
import { conflict, forbidden, notFound, SvcError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import { doAtOnce } from "../../kernel/turns.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type ApprovalDoc, type Delegation, type Vote, type Voter, WITHDRAWN } from "../../model/approval.ts";
import type { ApprovalValues } from "../../model/card/types.ts";
import type { PlanDoc } from "../../model/plan.ts";
import { needsMet } from "../../model/policy/approvals.ts";
import { hasRole, type Principal, ROLE_MESSAGES } from "../../model/roles.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx, Unit } from "../../port/store.ts";
import { type AuthorityFacts, assertNotOwn, authoritiesOver } from "../approvals/authority.ts";
import type { CardRun } from "../approvals/card-facts.ts";
import { countedBefore, countingVoters, voterOf } from "../approvals/counting.ts";
import { type MadeCard, makingCard, rememberedCard } from "../approvals/made-cards.ts";
import { type Core, ENGINE, type Rules } from "../core.ts";
import { loadRun } from "../load-run.ts";
import { appendApprovalRecord, appendRunRecord } from "../records.ts";
import { endPlan, leaveRun } from "./order.ts";
import { enterRun } from "./propose.ts";

interface DecidePlanInput {
  decision: "approve" | "deny";
  note: string | null;
  card_hash?: string | undefined;
}

export interface PlanDecided {
  plan: PlanDoc;
  records: LedgerRecord[];
  refused: SvcError | null;
}

type KeptValues = readonly (ApprovalValues | undefined)[];

/** The cards of all calls, and the one hash that stands for them. */
export function* makingPlanCards(rules: Rules, run: CardRun, { internal }: PlanDoc, values: KeptValues) {
  const cards: MadeCard[] = [];
  for (const [i, request] of internal.requests.entries()) {
    cards.push(yield* makingCard(rules, run, request, values[i]));
    yield;
  }
  return { cards, card_hash: planHash(run, cards) };
}

const planHash = ({ salt }: CardRun, cards: readonly { hash: string }[]): string =>
  keyedHash(
    salt,
    cards.map(({ hash }) => hash),
  );

/** The hash alone, of cards that were made before as far as they are remembered. */
function planHashNow(rules: Rules, run: CardRun, { internal }: PlanDoc, values: KeptValues): string {
  const cards = internal.requests.map((request, i) => {
    const known = values[i] === undefined ? undefined : rememberedCard(rules, run, request);
    return known ?? doAtOnce(makingCard(rules, run, request, values[i]));
  });
  return planHash(run, cards);
}

export function decidePlanUnit(
  core: Core,
  principal: Principal,
  id: string,
  input: DecidePlanInput,
  delegations: readonly Delegation[],
): Unit<PlanDecided> {
  return {
    needs: [["plans", id], ...delegations.map((one) => ["delegations", one.id] as const)],
    run(tx) {
      const now = core.env.now();
      const { plan, run, ended } = openPlan(core, tx, id);
      if (ended !== null) return ended;
      const { four_eyes } = core.rules().policy.approvals;
      assertNotOwn(plan, principal, four_eyes);
      const current = delegations.flatMap((one) => tx.get("delegations", one.id) ?? []);
      const facts = { four_eyes, now, delegations: current, today: core.today };
      const note = input.note === null ? null : core.redact(input.note);
      const vote = { by: principal.name, decision: input.decision, note, at_ms: now };
      const voted = castVotes(core, plan, principal, vote, facts);
      assertCurrentCards(core, tx, run, plan, input.card_hash);
      return settle(core, tx, run, voted, { input, vote: voted.votes.at(-1)!, four_eyes });
    },
  };
}

/** The vote where it counts; an error where it counts in no call at all. */
function castVotes(
  core: Core,
  plan: PlanDoc,
  principal: Principal,
  vote: Omit<Vote, "for">,
  facts: AuthorityFacts,
): PlanDoc {
  const problems: SvcError[] = [];
  let lender: string | null | undefined;
  const requests = plan.internal.requests.map((request, i) => {
    if (plan.calls[i]!.approval_id === null) return request;
    const found = authoritiesOver(request, principal, facts);
    if (found instanceof SvcError) {
      problems.push(found);
      return request;
    }
    const fresh = (one: (typeof found)[number]) =>
      countedBefore(request, { by: principal.name, for: one.for }, core.today) === undefined;
    const authority = vote.decision === "deny" ? found[0] : found.find(fresh);
    if (authority === undefined) {
      problems.push(
        conflict("already_voted", "you have already approved this plan; it waits for somebody else"),
      );
      return request;
    }
    lender ??= authority.for;
    return withVote(request, { ...vote, for: authority.for }, voterOf(principal, authority, core.today));
  });
  const counts = requests.some((request, i) => request !== plan.internal.requests[i]);
  if (!counts)
    throw (
      problems[0] ??
      (hasRole(principal, "approver")
        ? conflict("plan_undecidable", "no call of this plan needs a decision")
        : forbidden(ROLE_MESSAGES.approver, "role_required"))
    );
  const votes = [...plan.votes, { ...vote, for: lender ?? null }];
  return { ...plan, votes, internal: { ...plan.internal, requests } };
}

function withVote(request: ApprovalDoc, vote: Vote, voter: Voter): ApprovalDoc {
  const { internal } = request;
  const voters = vote.decision === "approve" ? [...internal.voters, voter] : internal.voters;
  return { ...request, votes: [...request.votes, vote], internal: { ...internal, voters } };
}

function assertCurrentCards(core: Core, tx: Tx, run: RunDoc, plan: PlanDoc, hash: string | undefined): void {
  if (hash === undefined) return;
  tx.expect(plan.internal.requests.map(({ id }) => ["approval_values", id]));
  const values = plan.internal.requests.map(({ id }) => tx.get("approval_values", id));
  if (planHashNow(core.rules(), run, plan, values) !== hash)
    throw conflict(
      "card_changed",
      "the cards have changed since they were shown; look at them again and decide anew",
    );
}

function settle(
  core: Core,
  tx: Tx,
  run: RunDoc,
  voted: PlanDoc,
  { input, vote, four_eyes }: { input: DecidePlanInput; vote: Vote; four_eyes: boolean },
): PlanDecided {
  const { now } = core.env;
  const at = now();
  const needing = voted.internal.requests.filter((_, i) => voted.calls[i]!.approval_id !== null);
  const met = needing.every((one) =>
    needsMet(one.internal.needs, countingVoters(one, four_eyes, core.today)),
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
      detail: `plan ${voted.id}${what}${tail}`,
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
    leaveRun(run, plan.id);
    for (const { id } of plan.internal.requests) tx.delete("approval_values", id);
  } else {
    enterRun(run, plan.id);
    for (const request of needing) records.push(makeApproval(tx, run, plan, request, vote));
  }
  tx.put("plans", plan.id, plan);
  tx.put("runs", run.run_id, run);
  return { plan, records, refused: null };
}

/** Born approved, for exactly its arguments; it has no slot, since only the plan's order leads to it. */
function makeApproval(tx: Tx, run: RunDoc, plan: PlanDoc, request: ApprovalDoc, vote: Vote): LedgerRecord {
  const approval: ApprovalDoc = {
    ...request,
    status: "approved",
    decided_by: vote.by,
    decided_ms: vote.at_ms,
    note: vote.note,
  };
  tx.put("approvals", approval.id, approval);
  return appendApprovalRecord(tx, run, approval, {
    event: "approved",
    actor: vote.by,
    ts_ms: vote.at_ms,
    detail: `request ${approval.id} of plan ${plan.id}`,
  });
}

/** Whoever proposed it takes it back, decided or not, as long as it is under way. */
export function withdrawPlanUnit(core: Core, principal: Principal, id: string): Unit<PlanDecided> {
  return {
    needs: [["plans", id]],
    run(tx) {
      const plan = tx.get("plans", id);
      if (plan === undefined || plan.internal.principal !== principal.id)
        throw notFound(`unknown plan ${id}`, "unknown_plan");
      if (plan.status !== "pending" && plan.status !== "approved")
        throw conflict("plan_ended", `plan ${id} has ended (${plan.status})`);
      return { ...expirePlan(core, tx, plan, WITHDRAWN, principal.name), refused: null };
    },
  };
}

/** Takes a plan away from whoever proposed it; what is left of it is not covered. */
export function revokePlanUnit(core: Core, principal: Principal, id: string): Unit<PlanDecided> {
  return {
    needs: [["plans", id]],
    run(tx) {
      const plan = tx.get("plans", id);
      if (plan === undefined) throw notFound(`unknown plan ${id}`, "unknown_plan");
      if (plan.status !== "pending" && plan.status !== "approved")
        throw conflict("plan_ended", `plan ${id} has ended (${plan.status})`);
      return { ...expirePlan(core, tx, plan, REVOKED, principal.name), refused: null };
    },
  };
}

/** Ends a plan whose time is over; null where there is nothing to do. */
export function agePlanUnit(core: Core, id: string): Unit<PlanDecided | null> {
  return {
    needs: [["plans", id]],
    run(tx) {
      const plan = tx.get("plans", id);
      const alive = plan?.status === "pending" || plan?.status === "approved";
      if (plan === undefined || !alive || core.env.now() < plan.expires_ms) return null;
      return { ...expirePlan(core, tx, plan, EXPIRED, ENGINE), refused: null };
    },
  };
}

const EXPIRED = "expired";
const REVOKED = "revoked";

function expirePlan(core: Core, tx: Tx, plan: PlanDoc, note: string, by: string) {
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

function openPlan(core: Core, tx: Tx, id: string): { plan: PlanDoc; run: RunDoc; ended: PlanDecided | null } {
  const plan = tx.get("plans", id);
  if (plan === undefined) throw notFound(`unknown plan ${id}`, "unknown_plan");
  if (plan.status !== "pending")
    throw conflict("plan_decided", `plan ${id} was already decided (${plan.status})`);
  const run = loadRun(tx, plan.run_id);
  if (core.env.now() < plan.expires_ms) return { plan, run, ended: null };
  const ended = expirePlan(core, tx, plan, EXPIRED, ENGINE);
  return {
    plan,
    run,
    ended: {
      ...ended,
      refused: conflict("plan_expired", `plan ${id} has expired; it must be proposed again`),
    },
  };
}
