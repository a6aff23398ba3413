/** Processes an intent in one atomic unit: load facts, decide, commit. */
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { PolicyCall } from "../../rules/policy/call.ts";
import type { RefundableCharge } from "../../rules/policy/checks/counters.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import {
  approvedReason,
  consumeApproval,
  expireApproval,
  type NewApproval,
  openApproval,
  renewTerms,
} from "../approvals/requests.ts";
import { undeclaredPaths } from "../cards/declared.ts";
import { cardLine } from "../cards/line.ts";
import { visibleArgs, visibleBefore, visiblePaths } from "../cards/visible-values.ts";
import { ENGINE_ACTOR, type EngineCore, type IntentCaller } from "../core.ts";
import { compensationKey, runToolKey, stepKey } from "../document-keys.ts";
import { noteEarlierCall } from "../flows/earlier-calls.ts";
import { consumeGrant, grantsFor } from "../grants/resolve.ts";
import { advancePlan, endPlan } from "../plans/plan-progress.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { appendRunRecord } from "../records.ts";
import { assertRunOwner, loadRun } from "../runs/load-run.ts";
import type { RunDoc, StepDoc, StepFeed } from "../runs/run.ts";
import { noteFeeds } from "../traces/built-on.ts";
import { noteAcceptedCall } from "../traces/follow.ts";
import { coveredBy, STATE_CHANGED_NOTE } from "./approval-stage.ts";
import type { BeforeRead } from "./before-state.ts";
import { decideCall } from "./decide.ts";
import type { DecisionFacts } from "./facts.ts";
import { askedReads, decisionOf, signedApprovalOf } from "./intent-answer.ts";
import {
  hashArgsOnce,
  type IntentInput,
  intentNeeds,
  type LoadedIntent,
  loadIntentFacts,
  type RunFacts,
} from "./load-facts.ts";
import { notePrefetchKeys } from "./outcome.ts";
import type { CallVerdict, IntentDecision } from "./verdict.ts";

export interface IntentResult {
  decision: IntentDecision;
  tool: string;
  depends_on: readonly number[];
  run: RunDoc;
  manifest: ToolManifest | null;
  verdict: CallVerdict;
  /** The call with the facts that its decision used. */
  call: PolicyCall;
  /** Request opened by this intent, for notifications. */
  opened: ApprovalDoc | null;
  records: LedgerRecord[];
}

/** `known` has the run's immutable facts, if the caller has them; they only save round trips. */
export function intentUnit(
  core: EngineCore,
  asking: IntentCaller,
  run_id: string,
  input: IntentInput,
  known?: RunFacts,
): UnitOfWork<IntentResult> {
  const fresh_approval_id = `apr_${core.env.uuid()}`;
  const hashArgs = hashArgsOnce(input.args);
  return {
    needs: () => (known === undefined ? [["runs", run_id]] : intentNeeds(core, known, input, hashArgs)),
    share: asking.tenant ?? undefined,
    keeps_places: true,
    run(tx) {
      const run = loadRun(tx, run_id);
      assertRunOwner(run, asking);
      const gathered = loadIntentFacts(core, tx, { run, caller: asking, input, fresh_approval_id, hashArgs });
      const verdict = withGrants(core, tx, gathered, decideCall(gathered.facts));
      return commit(core, tx, gathered, input, verdict);
    },
  };
}

/** `card_read` is the read that the call's card needs now; null if it needs none. */
interface Previewed {
  verdict: CallVerdict;
  card_read: BeforeRead | null;
}

/** Returns the decision that the intent would get now; writes nothing. */
export function previewUnit(
  core: EngineCore,
  asking: IntentCaller,
  run_id: string,
  input: IntentInput,
): UnitOfWork<Previewed> {
  const hashArgs = hashArgsOnce(input.args);
  return {
    needs: [["runs", run_id]],
    share: asking.tenant ?? undefined,
    run(tx) {
      const run = loadRun(tx, run_id);
      assertRunOwner(run, asking);
      const fresh_approval_id = `apr_${core.env.uuid()}`;
      const gathered = loadIntentFacts(core, tx, { run, caller: asking, input, fresh_approval_id, hashArgs });
      const verdict = withGrants(core, tx, gathered, decideCall(gathered.facts));
      return { verdict, card_read: cardRead(gathered.facts, verdict) };
    },
  };
}

/**
 * Read for the card, if only an approval is missing and a request would be opened, or was approved for a shown state.
 */
function cardRead({ before, policy, request }: DecisionFacts, { approval }: CallVerdict): BeforeRead | null {
  if (policy.approvals.show === "names") return null;
  const wanted = approval.move === "open" || (approval.move === "wait" && request?.status === "approved");
  return wanted ? (before?.read ?? null) : null;
}

/** Loads grants only if nothing but an approval is missing, so that other calls do not pay for it. */
function withGrants(
  core: EngineCore,
  tx: StoreTx,
  { facts }: LoadedIntent,
  verdict: CallVerdict,
): CallVerdict {
  if (!verdict.needs_approval) return verdict;
  const grants = grantsFor(core, tx, facts);
  return grants.length === 0 ? verdict : decideCall({ ...facts, grants });
}

function commit(
  core: EngineCore,
  tx: StoreTx,
  gathered: LoadedIntent,
  input: IntentInput,
  verdict: CallVerdict,
): IntentResult {
  const { facts } = gathered;
  const { run, manifest, now } = facts;
  const reason = core.redact(input.reason);
  const { approval } = verdict;
  const recorded = (approval.move === "consume" && approvedReason(tx, approval.id)) || reason;
  const accepted = verdict.decision !== "block";
  const step = accepted ? run.next_step++ : undefined;
  if (verdict.approval.move === "open") core.mayOpen?.(run, verdict.approval.id);
  const opened = moveApprovals(core, tx, gathered, verdict, { input, reason, step });
  const records = verdict.records.map((part) =>
    appendRunRecord(tx, run, {
      event: part.event,
      actor: part.by_engine ? ENGINE_ACTOR : run.actor,
      ts_ms: now,
      step,
      tool: input.tool,
      reason: recorded,
      detail: part.detail ?? undefined,
      effect: manifest?.effect,
      args_hash: gathered.args_hash,
      manifest_version: manifest?.version,
    }),
  );
  if (step !== undefined) {
    const intended_seq = records[records.length - 1]!.seq;
    acceptStep(
      core,
      tx,
      gathered,
      newStep(facts, gathered, verdict, {
        step,
        reason: recorded,
        intended_seq,
        depends_on: gathered.depends_on,
        ref: input.ref,
      }),
      verdict.charges.flatMap(({ refund }) => refund ?? []),
    );
  }
  records.push(...movePlan(tx, gathered, step));
  for (const charge of verdict.charges) tx.put("counters", charge.key, charge.doc);
  run.called_ms = now;
  tx.put("runs", run.run_id, run);
  const { tool } = input;
  const { depends_on } = gathered;
  const { call } = facts;
  const decision = {
    ...decisionOf(verdict, step, askedReads(core, facts)),
    ...signedApprovalOf(tx, verdict),
  };
  return { decision, tool, depends_on, run, manifest, verdict, call, opened, records };
}

/**
 * Advances the plan of an accepted call. A planned call that is not accepted ends its plan, even if approval is still
 * possible, because the plan assumed otherwise.
 */
function movePlan(tx: StoreTx, { facts, planned }: LoadedIntent, step: number | undefined): LedgerRecord[] {
  if (planned === null) return [];
  const { run, now } = facts;
  if (step !== undefined) {
    advancePlan(tx, run, planned.plan, step);
    return [];
  }
  return endPlan(tx, run, planned.plan, {
    status: "ended",
    note: `call ${planned.plan.next} was refused`,
    now,
  });
}

function moveApprovals(
  core: EngineCore,
  tx: StoreTx,
  { facts, args_hash }: LoadedIntent,
  verdict: CallVerdict,
  { input, reason, step }: { input: IntentInput; reason: string; step: number | undefined },
): ApprovalDoc | null {
  if (verdict.expired !== null) expireApproval(tx, facts.run, verdict.expired);
  const { approval } = verdict;
  if (approval.move === "consume") {
    consumeApproval(tx, facts.run, approval.id, step ?? null);
    if (approval.closes !== null)
      expireApproval(tx, facts.run, approval.closes, coveredBy(`request ${approval.id}`));
  }
  if (approval.move === "grant") {
    consumeGrant(tx, approval.grant);
    if (approval.closes !== null)
      expireApproval(tx, facts.run, approval.closes, coveredBy(`grant ${approval.grant.id}`));
  }
  if (approval.move === "wait" && approval.terms !== null) {
    const { four_eyes } = facts.policy.approvals;
    renewTerms(tx, approval.id, approval.terms, verdict.risk_score, four_eyes);
  }
  if (approval.move !== "open") return null;
  if (approval.replaces !== null) expireApproval(tx, facts.run, approval.replaces, STATE_CHANGED_NOTE);
  return openApproval(tx, facts.run, {
    id: approval.id,
    spec: approval.spec,
    rule: approval.rule,
    tool: facts.tool,
    args: facts.args,
    args_hash,
    reason,
    now: facts.now,
    kind: "call",
    step: null,
    risk_score: verdict.risk_score,
    because: approval.because,
    ...shownOf(core, facts, input),
    flood: facts.policy.approvals.flood,
    irreversible: facts.manifest?.effect === "irreversible",
  });
}

/** Values and state for the card, and the hash to compare at use. */
function shownOf(
  core: EngineCore,
  facts: DecisionFacts,
  { seen, input_schema }: Pick<IntentInput, "seen" | "input_schema">,
): Pick<NewApproval, "shown" | "before_hash"> {
  const { policy, manifest } = facts;
  if (policy.approvals.show === "names") return { shown: null };
  const line = cardLine(facts.args, manifest);
  const args = {
    args: visibleArgs(facts.args, manifest),
    ...(line === undefined ? {} : { line }),
    ...(input_schema === undefined
      ? {}
      : { undeclared: visiblePaths(undeclaredPaths(facts.args, input_schema)) }),
  };
  const declared = manifest?.before;
  if (declared === undefined || seen === undefined) return { shown: args };
  if (seen?.value === undefined) return { shown: { ...args, unread: true }, before_hash: null };
  const reader = core.rules().manifests.active(declared.tool) ?? null;
  const before = visibleBefore(seen.value, manifest, reader);
  return { shown: { ...args, before }, before_hash: facts.seen_hash ?? null };
}

interface StepParts {
  step: number;
  reason: string;
  intended_seq: number;
  depends_on: readonly number[];
  ref: string | undefined;
}

function newStep(
  facts: DecisionFacts,
  gathered: LoadedIntent,
  verdict: CallVerdict,
  parts: StepParts,
): StepDoc {
  const { run, manifest } = facts;
  return {
    run_id: run.run_id,
    step: parts.step,
    tool: facts.tool,
    reason: parts.reason,
    effect: manifest?.effect ?? null,
    status: "intended",
    depends_on: [...parts.depends_on],
    requires: manifest?.requires ?? [],
    compensation_tool: manifest?.compensation?.tool ?? null,
    handle: manifest?.compensation ? compensationKey(run.run_id, parts.step) : null,
    error: null,
    manifest_version: manifest?.version ?? null,
    manifest_hash: null,
    risk_score: verdict.risk_score,
    args_hash: gathered.args_hash,
    result_hash: null,
    intended_ms: facts.now,
    finished_ms: null,
    intended_seq: parts.intended_seq,
    succeeded_seq: null,
    compensated_seq: null,
    idempotency: gathered.idempotency,
    repeat_of: facts.repeat_of ?? undefined,
    undo_request: undefined,
    undo_covers: undefined,
    unverified: undefined,
    ...(gathered.planned === null ? {} : { plan: gathered.planned.plan.id }),
    before_by: undefined,
    before_hash: undefined,
    after_hash: undefined,
    effect_check: undefined,
    effect_check_by: undefined,
    closes_ms: undefined,
    ref: parts.ref,
    fed_by: fedBy(facts.call),
    line: cardLine(facts.args, manifest),
  };
}

function acceptStep(
  core: EngineCore,
  tx: StoreTx,
  { facts }: LoadedIntent,
  step: StepDoc,
  refunds: readonly RefundableCharge[],
): void {
  const { run, manifest } = facts;
  run.open++;
  if (manifest !== null) {
    step.manifest_hash = core.rules().manifests.hashOf(manifest);
    // Stored by content: thousands of steps under one manifest share one copy.
    if (tx.get("manifests", step.manifest_hash) === undefined)
      tx.put("manifests", step.manifest_hash, manifest);
  }
  const { policy } = core.rules();
  noteAcceptedCall(core, tx, run, step, { call: facts.call, manifest });
  noteEarlierCall(core, tx, policy, { call: facts.call, manifest, at_ms: facts.now });
  const key = stepKey(run.run_id, step.step);
  tx.put("steps", key, step);
  noteFeeds(tx, step);
  notePrefetchKeys(core, step);
  // Stored in full until the outcome, so that echoes of values can be removed from an error.
  tx.put("payloads", key, { args: facts.args, refs: {}, ...(refunds.length === 0 ? {} : { refunds }) });
  const used = runToolKey(run.run_id, step.tool);
  const tool = tx.get("run_tools", used);
  tx.put("run_tools", used, {
    run_id: run.run_id,
    tool: step.tool,
    calls: (tool?.calls ?? 0) + 1,
    standing: tool?.standing ?? 0,
  });
  if (step.idempotency !== null)
    tx.put("idempotency", step.idempotency, { run_id: run.run_id, step: step.step });
}

/** Maximum feeds that a step lists. */
const MAX_FEEDS = 100;

function fedBy({ carried, shared }: PolicyCall): StepDoc["fed_by"] {
  const values = [...(carried?.values ?? []), ...(shared?.values ?? [])];
  if (values.length === 0) return undefined;
  const feeds = new Map<string, StepFeed>();
  for (const { path, kind, from } of values) {
    const feed = { run_id: from.run_id, step: from.step, path, kind };
    feeds.set(JSON.stringify(feed), feed);
  }
  return [...feeds.values()].slice(0, MAX_FEEDS);
}
