/**
 * A denial with an offer: the same tool with other arguments, approved ahead by whoever denies. The offer is its
 * giver's one vote on those arguments, under the groups, quorum and four eyes that they themselves ask for.
 */
import { canonicalizing } from "../../kernel/canonical.ts";
import { conflict, invalid, SvcError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { knownAbout, learningAbout } from "../../kernel/large-values.ts";
import { doAtOnce, type Paced } from "../../kernel/turns.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc, Vote } from "../../model/approval.ts";
import { keepingArgs, keptArgs } from "../../model/card/kept.ts";
import { scanningJson } from "../../model/detect/json.ts";
import { findMasks } from "../../model/mask.ts";
import { mergeTerms, needsMet } from "../../model/policy/approvals.ts";
import { evaluatePolicy } from "../../model/policy/evaluate.ts";
import type { Principal } from "../../model/roles.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx } from "../../port/store.ts";
import type { Core } from "../core.ts";
import { policyCall, readCounters } from "../gather.ts";
import { appendApprovalRecord } from "../records.ts";
import { type AuthorityFacts, authoritiesOver } from "./authority.ts";
import { countingVoters, voterOf } from "./counting.ts";
import { moveApproval, newApproval, offerSlot, slotOf } from "./requests.ts";

export interface OfferInput {
  /** The id that the offered request will have. */
  id: string;
  args: Json;
}

export interface Offered {
  approval: ApprovalDoc;
  record: LedgerRecord;
}

/** Changes `run` in place; the caller stores it. Throws, and nothing is decided, where the offer cannot be made. */
export function makeOffer(
  core: Core,
  tx: Tx,
  run: RunDoc,
  denied: ApprovalDoc,
  { principal, facts, input }: { principal: Principal; facts: AuthorityFacts; input: OfferInput },
): Offered {
  assertOffer(denied, run, input.args);
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(denied.tool) ?? null;
  const args_hash = keyedHash(run.salt, input.args);
  assertNotAsked(tx, denied, args_hash, facts.now);
  const call = policyCall(run, denied.tool, input.args, manifest);
  const judged = evaluatePolicy(policy, call, facts.now, readCounters(tx, policy, call));
  if (judged.action === "deny")
    throw invalid(
      `offer.args: the policy denies them, and no approval lifts that: ${judged.reasons.join("; ")}`,
    );
  const { score, factors } = judged.risk;
  const opened = newApproval(tx, run, {
    id: input.id,
    spec: {
      ...(judged.approval ?? mergeTerms([policy.approvals])),
      ttl_ms: denied.expires_ms - denied.requested_ms,
    },
    rule: judged.rules[0] ?? null,
    tool: denied.tool,
    args: input.args,
    args_hash,
    reason: denied.reason,
    now: facts.now,
    kind: "call",
    step: null,
    risk_score: score,
    because: { causes: judged.causes, risk: policy.risk === null ? null : { score, factors } },
    // An offer is made of its values: they are kept for whoever may use it, whatever deciders are shown.
    shown: { args: keptArgs(input.args, manifest), offer: input.args },
  });
  const found = authoritiesOver(opened, principal, facts);
  if (found instanceof SvcError) throw found;
  const authority = found[0]!;
  const vote: Vote = {
    by: principal.name,
    decision: "approve",
    note: null,
    at_ms: facts.now,
    for: authority.for,
  };
  const voted: ApprovalDoc = {
    ...opened,
    votes: [vote],
    internal: {
      ...opened.internal,
      voters: [voterOf(principal, authority, core.today)],
      offer_for: slotOf(denied),
    },
  };
  tx.put("approval_slots", offerSlot(slotOf(denied)), { id: input.id });
  return { approval: voted, record: settleOffer(core, tx, run, voted, { vote, denied, facts }) };
}

function assertOffer(denied: ApprovalDoc, run: RunDoc, args: Json): void {
  if (denied.kind === "compensation")
    throw invalid("offer: an undo is made with its own arguments or not at all");
  if (keyedHash(run.salt, args) === denied.args_hash)
    throw invalid("offer.args: are what was asked for; approve the request instead");
  const { problem } = knownAbout<Readable>(args, readingOffer) ?? doAtOnce(readingOffer(args));
  if (problem !== null) throw invalid(problem);
}

/** What is wrong with values that an offer is to keep; null where nothing is. */
interface Readable {
  problem: string | null;
}

function* readingOffer(args: Json): Paced<Readable> {
  // Whoever fills the offer in from the card would send the mask in the place of the value.
  const [masked] = yield* scanningJson(args, findMasks, "offer.args", 1);
  if (masked !== undefined)
    return { problem: `${masked.path}: the value was masked on the card, and must be written out` };
  const kept = yield* keepingArgs(args, null);
  if ((yield* canonicalizing(kept)) !== (yield* canonicalizing(args)))
    return { problem: "offer.args: hold a credential, which is never kept; offer arguments without it" };
  return { problem: null };
}

/** Reads large values of an offer ahead, in turns. */
export function learningOffer(args: Json): Paced<void> {
  return learningAbout(args, readingOffer, () => readingOffer(args));
}

/** A call is spoken for by one request: an offer beside it would put it aside, with the votes that it has. */
function assertNotAsked(tx: Tx, denied: ApprovalDoc, args_hash: string, now: number): void {
  const slot = tx.get("approval_slots", slotOf({ ...denied, args_hash }));
  const asked = slot === undefined ? undefined : tx.get("approvals", slot.id);
  if (asked !== undefined && now < asked.expires_ms)
    throw conflict(
      "offer_already_asked",
      `offer.args: request ${asked.id} asks for just these; decide that one, and deny this without an offer`,
    );
}

function settleOffer(
  core: Core,
  tx: Tx,
  run: RunDoc,
  voted: ApprovalDoc,
  { vote, denied, facts }: { vote: Vote; denied: ApprovalDoc; facts: AuthorityFacts },
): LedgerRecord {
  const voters = countingVoters(voted, facts.four_eyes, core.today);
  const why = `offered in place of request ${denied.id}`;
  const now = core.env.now();
  if (!needsMet(voted.internal.needs, voters)) {
    tx.put("approvals", voted.id, voted);
    const detail = `request ${voted.id} (${voters.length} of ${voted.approvers.quorum}): ${why}`;
    return appendApprovalRecord(tx, run, voted, { event: "approved", actor: vote.by, ts_ms: now, detail });
  }
  const decided: ApprovalDoc = { ...voted, decided_by: vote.by, decided_ms: vote.at_ms };
  const moved = moveApproval(tx, run, decided, "approved");
  return appendApprovalRecord(tx, run, moved, {
    event: "approved",
    actor: vote.by,
    ts_ms: now,
    detail: `pre-approved: ${why}`,
  });
}
