/**
 * Counter-proposals: a denial that approves the same tool with other arguments. It is one vote of the denier for those
 * arguments, subject to the groups, quorum and four eyes that they require.
 */

import { conflictError, invalidError, SvcError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import { toCanonicalJsonInSteps } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { cachedResult, cacheResult } from "../../kernel/json/large-value-cache.ts";
import { type PausableWork, runAtOnce } from "../../kernel/pausable-work.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { scanningJson } from "../../rules/detect/json.ts";
import { mergeTerms, needsMet } from "../../rules/policy/checks/approvals.ts";
import { evaluatePolicy } from "../../rules/policy/evaluate.ts";
import { findMasks } from "../../rules/redact/mask.ts";
import { computingVisibleArgs, visibleArgs } from "../cards/visible-values.ts";
import type { EngineCore } from "../core.ts";
import { policyCall, readCounters } from "../decide/load-facts.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import type { RunDoc } from "../runs/run.ts";
import { callDraft } from "../signing/draft.ts";
import { type StoredSignature, signedDetail } from "../signing/payload.ts";
import {
  type CheckedSignature,
  passkeyRequired,
  signedVoter,
  ttlOf,
  useSignature,
} from "../signing/signature.ts";
import type { ApprovalDoc, ApprovalVote } from "./approval.ts";
import { type AuthorityFacts, authoritiesOver } from "./authority.ts";
import { countingVoters, toVoter } from "./count-approvals.ts";
import { addApprovalVote, offerSlot, openApproval, settleApproval, slotOf } from "./requests.ts";

export interface OfferInput {
  /** Id of the new request. */
  id: string;
  args: JsonValue;
}

export interface CreatedOffer {
  approval: ApprovalDoc;
  record: LedgerRecord;
}

interface OfferGiven {
  principal: CallerPrincipal;
  facts: AuthorityFacts;
  input: OfferInput;
  signature: CheckedSignature | undefined;
}

/**
 * Creates the counter-proposal. Changes `run` in place; the caller stores it. Throws, without any decision, if the
 * counter-proposal is invalid.
 */
export function makeOffer(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  denied: ApprovalDoc,
  { principal, facts, input, signature: given }: OfferGiven,
): CreatedOffer {
  assertOffer(denied, run, input.args);
  const { manifests, policy } = core.rules();
  const manifest = manifests.active(denied.tool) ?? null;
  const args_hash = keyedHash(run.salt, input.args);
  assertNotAsked(tx, denied, args_hash, facts.now);
  const call = policyCall(run, denied.tool, input.args, manifest);
  const judged = evaluatePolicy(policy, call, facts.now, readCounters(tx, policy, call));
  if (judged.action === "deny")
    throw invalidError(
      `offer.args: the policy denies them, regardless of approvals: ${judged.reasons.join("; ")}`,
    );
  const spec = judged.approval ?? mergeTerms([policy.approvals]);
  const required = spec.signed === true;
  if (required && given === undefined) throw passkeyRequired();
  const ttl_ms = ttlOf(given, denied.expires_ms - denied.requested_ms, facts.now);
  const offered_call = { id: input.id, tool: denied.tool, args_hash, expires_ms: facts.now + ttl_ms };
  const signature = signatureOf({ core, tx, run }, principal, given, offered_call);
  const { score, factors } = judged.risk;
  const opened = openApproval(tx, run, {
    id: input.id,
    spec: {
      ...spec,
      ttl_ms,
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
    // Stores the arguments in full for the agent that uses them, even if the policy shows approvers only names.
    shown: { args: visibleArgs(input.args, manifest), offer: input.args },
  });
  const found = authoritiesOver(opened, principal, { ...facts, signed: required });
  if (found instanceof SvcError) throw found;
  const authority = found[0]!;
  const vote: ApprovalVote = {
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
      ...signedVoter(toVoter(principal, authority, core.today), signature),
      offer_for: slotOf(denied),
    },
  };
  tx.put("approval_slots", offerSlot(slotOf(denied)), { id: input.id });
  return { approval: voted, record: settleOffer(core, tx, run, voted, { vote, denied, facts, signature }) };
}

interface OfferedCall {
  id: string;
  tool: string;
  args_hash: string;
  expires_ms: number;
}

function signatureOf(
  { core, tx, run }: { core: EngineCore; tx: StoreTx; run: RunDoc },
  principal: CallerPrincipal,
  given: CheckedSignature | undefined,
  call: OfferedCall,
): StoredSignature | null {
  if (given === undefined) return null;
  const offered = { kind: "offer", by: principal.name, ...call } as const;
  return useSignature(core, tx, principal, given, (nonce) => ({ ...callDraft(core, run, offered), nonce }));
}

function assertOffer(denied: ApprovalDoc, run: RunDoc, args: JsonValue): void {
  if (denied.kind === "compensation") throw invalidError("offer: you cannot change the arguments of an undo");
  if (keyedHash(run.salt, args) === denied.args_hash)
    throw invalidError("offer.args: are the arguments of this request; approve it instead");
  const { problem } = cachedResult<OfferReading>(args, readingOffer) ?? runAtOnce(readingOffer(args));
  if (problem !== null) throw invalidError(problem);
}

/** Problem that prevents storing the arguments of a counter-proposal; null if there is none. */
export interface OfferReading {
  problem: string | null;
}

export function* readingOffer(args: JsonValue): PausableWork<OfferReading> {
  // Catches masks copied from the card, which would replace the real value.
  const [masked] = yield* scanningJson(args, findMasks, "offer.args", 1);
  if (masked !== undefined)
    return { problem: `${masked.path}: the value is a mask from the card; write the real value` };
  const kept = yield* computingVisibleArgs(args, null);
  if ((yield* toCanonicalJsonInSteps(kept)) !== (yield* toCanonicalJsonInSteps(args)))
    return { problem: "offer.args: contain a credential, which is never stored; offer arguments without it" };
  return { problem: null };
}

/** Caches the reading of a large counter-proposal, which another thread did. */
export function cacheOfferReading(args: JsonValue, reading: OfferReading): void {
  cacheResult(args, readingOffer, reading);
}

/** Throws if the same call already has a request. A second one would replace it and its votes. */
function assertNotAsked(tx: StoreTx, denied: ApprovalDoc, args_hash: string, now: number): void {
  const slot = tx.get("approval_slots", slotOf({ ...denied, args_hash }));
  const asked = slot === undefined ? undefined : tx.get("approvals", slot.id);
  if (asked !== undefined && !isExpired(asked, now))
    throw conflictError(
      "offer_already_asked",
      `offer.args: request ${asked.id} already has these arguments; decide that request, and deny this one without an offer`,
    );
}

function settleOffer(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  voted: ApprovalDoc,
  {
    vote,
    denied,
    facts,
    signature,
  }: { vote: ApprovalVote; denied: ApprovalDoc; facts: AuthorityFacts; signature: StoredSignature | null },
): LedgerRecord {
  const voters = countingVoters(voted, facts.four_eyes, core.today);
  const why = signedDetail(`offered instead of request ${denied.id}`, signature);
  const now = core.env.now();
  if (!needsMet(voted.internal.needs, voters)) {
    const detail = `request ${voted.id} (${voters.length} of ${voted.approvers.quorum}): ${why}`;
    return addApprovalVote(tx, run, voted, { by: vote.by, at_ms: now, detail });
  }
  const decided: ApprovalDoc = { ...voted, decided_by: vote.by, decided_ms: vote.at_ms };
  const detail = `pre-approved: ${why}`;
  return settleApproval(tx, run, decided, { status: "approved", by: vote.by, at_ms: now, detail }).record;
}
