/** An intent, from the question to the answer: gather, decide, commit, in one atomic unit. */
import type { LedgerRecord } from "../ledger/record.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import { undeclaredPaths } from "../model/card/declared.ts";
import { keptArgs, keptBefore, keptPaths } from "../model/card/kept.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { Refundable } from "../model/policy/counters.ts";
import type { RunDoc, StepDoc } from "../model/run.ts";
import type { Tx, Unit } from "../port/store.ts";
import {
  expireApproval,
  type NewApproval,
  newApproval,
  renewTerms,
  takeApproval,
} from "./approvals/requests.ts";
import type { BeforeFacts, BeforeRead } from "./before.ts";
import { type Core, ENGINE, type IntentCaller } from "./core.ts";
import { CHANGED_SINCE, coveredBy } from "./decide/approval-stage.ts";
import { decide } from "./decide/decide.ts";
import type { Facts } from "./decide/facts.ts";
import type { Decision, Verdict } from "./decide/verdict.ts";
import {
  type Gathered,
  gather,
  hashArgsOnce,
  type IntentInput,
  intentNeeds,
  type RunFacts,
} from "./gather.ts";
import { grantsFor, spendGrant } from "./grants/hand.ts";
import { compensationKey, runToolKey, stepKey } from "./keys.ts";
import { loadRun, unknownRun } from "./load-run.ts";
import { awaitOutcome } from "./outcome.ts";
import { advancePlan, endPlan } from "./plans/order.ts";
import { appendRunRecord } from "./records.ts";

export interface IntentResult {
  decision: Decision;
  tool: string;
  depends_on: readonly number[];
  run: RunDoc;
  manifest: Manifest | null;
  verdict: Verdict;
  /** The request that was opened by this intent, for notifications. */
  opened: ApprovalDoc | null;
  records: LedgerRecord[];
}

/** `known` holds the run's unchanging facts where the caller has them; they only save round trips. */
export function intentUnit(
  core: Core,
  asking: IntentCaller,
  run_id: string,
  input: IntentInput,
  known?: RunFacts,
): Unit<IntentResult> {
  const fresh_approval_id = `apr_${core.env.uuid()}`;
  const hashArgs = hashArgsOnce(input.args);
  return {
    needs: () => (known === undefined ? [["runs", run_id]] : intentNeeds(core, known, input, hashArgs)),
    share: asking.tenant ?? undefined,
    keeps_places: true,
    run(tx) {
      const run = loadRun(tx, run_id);
      // To an agent, another's run is as unknown as one that does not exist.
      if (run.principal !== asking.id) throw unknownRun(run_id);
      const gathered = gather(core, tx, { run, caller: asking, input, fresh_approval_id, hashArgs });
      const verdict = withGrants(core, tx, gathered, decide(gathered.facts));
      return commit(core, tx, gathered, input, verdict);
    },
  };
}

/** `card_read`: what the card of this call shows to be there, and is to be read now; null where nothing is. */
interface Previewed {
  verdict: Verdict;
  card_read: BeforeRead | null;
}

/** What the intent would be answered now; it writes nothing. */
export function previewUnit(
  core: Core,
  asking: IntentCaller,
  run_id: string,
  input: IntentInput,
): Unit<Previewed> {
  const hashArgs = hashArgsOnce(input.args);
  return {
    needs: [["runs", run_id]],
    share: asking.tenant ?? undefined,
    run(tx) {
      const run = loadRun(tx, run_id);
      if (run.principal !== asking.id) throw unknownRun(run_id);
      const fresh_approval_id = `apr_${core.env.uuid()}`;
      const gathered = gather(core, tx, { run, caller: asking, input, fresh_approval_id, hashArgs });
      const verdict = withGrants(core, tx, gathered, decide(gathered.facts));
      return { verdict, card_read: cardRead(gathered.facts, verdict) };
    },
  };
}

/** Read where nothing but an approval is missing, and a request is opened, or approved on what was there. */
function cardRead({ before, policy, request }: Facts, { approval }: Verdict): BeforeRead | null {
  if (policy.approvals.show === "names") return null;
  const wanted = approval.move === "open" || (approval.move === "wait" && request?.status === "approved");
  return wanted ? (before?.read ?? null) : null;
}

/** Grants are looked for only where nothing but an approval is missing: every other call costs what it did. */
function withGrants(core: Core, tx: Tx, { facts }: Gathered, verdict: Verdict): Verdict {
  if (!verdict.needs_approval) return verdict;
  const grants = grantsFor(core, tx, facts);
  return grants.length === 0 ? verdict : decide({ ...facts, grants });
}

function commit(core: Core, tx: Tx, gathered: Gathered, input: IntentInput, verdict: Verdict): IntentResult {
  const { facts } = gathered;
  const { run, manifest, now } = facts;
  const reason = core.redact(input.reason);
  const accepted = verdict.decision !== "block";
  const step = accepted ? run.next_step++ : undefined;
  if (verdict.approval.move === "open") core.mayOpen?.(run, verdict.approval.id);
  const opened = moveApprovals(core, tx, gathered, verdict, { ...input, reason, step });
  const records = verdict.records.map((part) =>
    appendRunRecord(tx, run, {
      event: part.event,
      actor: part.by_engine ? ENGINE : run.actor,
      ts_ms: now,
      step,
      tool: input.tool,
      reason,
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
      newStep(facts, gathered, verdict, { step, reason, intended_seq, depends_on: input.depends_on }),
      verdict.charges.flatMap(({ refund }) => refund ?? []),
    );
  }
  records.push(...movePlan(tx, gathered, step));
  for (const charge of verdict.charges) tx.put("counters", charge.key, charge.doc);
  run.called_ms = now;
  tx.put("runs", run.run_id, run);
  const { tool, depends_on } = input;
  const decision = answer(verdict, step, facts.before);
  return { decision, tool, depends_on, run, manifest, verdict, opened, records };
}

/**
 * A planned call that is not accepted ends its plan, also where a person could still approve it: it was planned
 * otherwise.
 */
function movePlan(tx: Tx, { facts, planned }: Gathered, step: number | undefined): LedgerRecord[] {
  if (planned === null) return [];
  const { run, now } = facts;
  if (step !== undefined) {
    advancePlan(tx, run, planned.plan);
    return [];
  }
  return endPlan(tx, run, planned.plan, {
    status: "ended",
    note: `call ${planned.plan.next} was refused`,
    now,
  });
}

function moveApprovals(
  core: Core,
  tx: Tx,
  { facts, args_hash }: Gathered,
  verdict: Verdict,
  {
    reason,
    step,
    ...known
  }: Pick<IntentInput, "reason" | "seen" | "input_schema"> & {
    step: number | undefined;
  },
): ApprovalDoc | null {
  if (verdict.expired !== null) expireApproval(tx, facts.run, verdict.expired);
  const { approval } = verdict;
  if (approval.move === "use") {
    takeApproval(tx, facts.run, approval.id, step ?? null);
    if (approval.closes !== null)
      expireApproval(tx, facts.run, approval.closes, coveredBy(`request ${approval.id}`));
  }
  if (approval.move === "grant") {
    spendGrant(tx, approval.grant);
    if (approval.closes !== null)
      expireApproval(tx, facts.run, approval.closes, coveredBy(`grant ${approval.grant.id}`));
  }
  if (approval.move === "wait" && approval.terms !== null) {
    const { four_eyes } = facts.policy.approvals;
    renewTerms(tx, approval.id, approval.terms, verdict.risk_score, four_eyes);
  }
  if (approval.move !== "open") return null;
  if (approval.replaces !== null) expireApproval(tx, facts.run, approval.replaces, CHANGED_SINCE);
  return newApproval(tx, facts.run, {
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
    ...shownOf(core, facts, known),
    flood: facts.policy.approvals.flood,
    irreversible: facts.manifest?.effect === "irreversible",
  });
}

/** What the card shows of the call's values and of what is there, and the hash that a use of it is held against. */
function shownOf(
  core: Core,
  facts: Facts,
  { seen, input_schema }: Pick<IntentInput, "seen" | "input_schema">,
): Pick<NewApproval, "shown" | "before_hash"> {
  const { policy, manifest } = facts;
  if (policy.approvals.show === "names") return { shown: null };
  const args = {
    args: keptArgs(facts.args, manifest),
    ...(input_schema === undefined
      ? {}
      : { undeclared: keptPaths(undeclaredPaths(facts.args, input_schema)) }),
  };
  const declared = manifest?.before;
  if (declared === undefined || seen === undefined) return { shown: args };
  if (seen?.value === undefined) return { shown: { ...args, unread: true }, before_hash: null };
  const reader = core.rules().manifests.active(declared.tool) ?? null;
  const before = keptBefore(seen.value, manifest, reader);
  return { shown: { ...args, before }, before_hash: facts.seen_hash ?? null };
}

interface StepParts {
  step: number;
  reason: string;
  intended_seq: number;
  depends_on: readonly number[];
}

function newStep(facts: Facts, gathered: Gathered, verdict: Verdict, parts: StepParts): StepDoc {
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
    closes_ms: undefined,
  };
}

function acceptStep(
  core: Core,
  tx: Tx,
  { facts }: Gathered,
  step: StepDoc,
  refunds: readonly Refundable[],
): void {
  const { run, manifest } = facts;
  run.open++;
  if (manifest !== null) {
    step.manifest_hash = core.rules().manifests.hashOf(manifest);
    // Kept by content: thousands of steps under one manifest share one copy.
    if (tx.get("manifests", step.manifest_hash) === undefined)
      tx.put("manifests", step.manifest_hash, manifest);
  }
  const key = stepKey(run.run_id, step.step);
  tx.put("steps", key, step);
  awaitOutcome(core, step);
  // Kept whole only until the outcome: an error that echoes a value can then be cleaned of it.
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

function answer(verdict: Verdict, step: number | undefined, before: BeforeFacts | undefined): Decision {
  const why = { reasons: verdict.reasons, ...(verdict.hints.length === 0 ? {} : { hints: verdict.hints }) };
  if (step === undefined) return { decision: "block", ...why };
  const asked = before === undefined || before.read === null ? {} : { before: before.read };
  if (verdict.decision === "would_block") return { decision: "would_block", step, ...why, ...asked };
  return { decision: "allow", step, ...asked };
}
