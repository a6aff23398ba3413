/** Proposes a plan: stores each call with its evaluation as a request would. No decision is made yet. */
import { conflictError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type MergedApproval, mergeTerms } from "../../rules/policy/checks/approvals.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import { countRequest } from "../approvals/request-bursts.ts";
import { buildApproval } from "../approvals/requests.ts";
import { toStoredValues } from "../cards/stored-values.ts";
import type { ApprovalCauses } from "../cards/types.ts";
import { visibleArgs } from "../cards/visible-values.ts";
import { ENGINE_ACTOR, type EngineCore, type OperationCaller } from "../core.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { appendRunRecord } from "../records.ts";
import { assertRunOwner, loadSealedRun } from "../runs/load-run.ts";
import type { RunDoc } from "../runs/run.ts";
import type { PlanCall, PlanDoc } from "./plan.ts";

export interface ProposedCall {
  tool: string;
  args: JsonValue;
  reason: string;
  depends_on: number[];
  decision: PlanCall["decision"];
  reasons: string[];
  risk_score: number;
  /** Required approval terms, if the call needs approval. */
  spec: MergedApproval | null;
  because: ApprovalCauses;
  rule: string | null;
}

interface Proposal {
  reason: string;
  calls: readonly ProposedCall[];
  fully_reversible: boolean;
  irreversible: string[];
  residue: string[];
}

type RecordedPlan = { plan: PlanDoc; records: LedgerRecord[] };

export function proposeUnit(
  core: EngineCore,
  asking: OperationCaller,
  run_id: string,
  input: Proposal,
): UnitOfWork<RecordedPlan> {
  const id = `pln_${core.env.uuid()}`;
  const ids = input.calls.map(() => `apr_${core.env.uuid()}`);
  return {
    needs: [["runs", run_id]],
    share: asking.tenant ?? undefined,
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      assertRunOwner(run, asking);
      const now = core.env.now();
      const expires_ms = now + timeToLive(core, input.calls);
      const refused = refusedCall(input.calls);
      const needing = input.calls.filter(({ decision }) => decision === "needs_approval").length;
      const asking_for = refused === null ? needing : 0;
      if (asking_for > 0) core.mayOpen?.(run, id);
      const in_digest = asking_for > 0 && isToldTogether(core, tx, run, input, now);
      const requests = input.calls.map((call, i) => requestOf(core, run, call, ids[i]!, now));
      const plan: PlanDoc = {
        id,
        run_id,
        actor: run.actor,
        ...(run.acting === undefined ? {} : { acting: [...run.acting] }),
        tenant: run.tenant,
        reason: core.redact(input.reason),
        status: "pending",
        calls: input.calls.map((call, i) => callOf(core, call, requests[i]!)),
        fully_reversible: input.fully_reversible,
        irreversible: input.irreversible,
        residue: input.residue,
        requested_ms: now,
        expires_ms,
        votes: [],
        decided_by: null,
        decided_ms: null,
        note: null,
        next: 0,
        internal: {
          principal: run.principal,
          requests: requests.map((request) => ({
            ...request,
            expires_ms,
            internal: { ...request.internal, plan: id, ...(in_digest ? { in_digest } : {}) },
          })),
        },
      };
      const record = appendRunRecord(tx, run, {
        event: "plan_proposed",
        actor: run.actor,
        ts_ms: now,
        reason: plan.reason,
        detail: `plan ${id}: ${plan.calls.length} calls, ${needing} need approval`,
      });
      if (refused !== null) return denyAtOnce(tx, run, plan, refused, record);
      const made: PlanDoc = asking_for > 0 ? plan : { ...plan, status: "approved" };
      addPlanToRun(run, id);
      keepValues(core, tx, run, input.calls, requests);
      tx.put("plans", id, made);
      tx.put("runs", run_id, run);
      return { plan: made, records: [record] };
    },
  };
}

/** First call that would be blocked regardless of approvals, with the reasons. */
function refusedCall(calls: readonly ProposedCall[]): { note: string; reasons: readonly string[] } | null {
  const at = calls.findIndex(({ decision }) => decision === "block");
  return at < 0 ? null : { note: `call ${at} is refused`, reasons: calls[at]!.reasons };
}

/** Denies a plan that cannot be executed, without requests, notifications or stored values. */
function denyAtOnce(
  tx: StoreTx,
  run: RunDoc,
  plan: PlanDoc,
  { note, reasons }: { note: string; reasons: readonly string[] },
  proposed: LedgerRecord,
): RecordedPlan {
  const { id, requested_ms: now } = plan;
  const denied: PlanDoc = {
    ...plan,
    status: "denied",
    decided_by: ENGINE_ACTOR,
    decided_ms: now,
    note,
    calls: plan.calls.map((call) => ({ ...call, approval_id: null })),
  };
  const record = appendRunRecord(tx, run, {
    event: "plan_denied",
    actor: ENGINE_ACTOR,
    ts_ms: now,
    reason: plan.reason,
    detail: `plan ${id}: ${note}: ${reasons.join("; ")}`,
  });
  tx.put("plans", id, denied);
  tx.put("runs", run.run_id, run);
  return { plan: denied, records: [proposed, record] };
}

/**
 * True if the plan's notification goes into a digest. A plan counts as one request of its actor's limit; plans with
 * irreversible calls always get their own notification.
 */
function isToldTogether(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  { irreversible }: Proposal,
  now: number,
): boolean {
  const { flood } = core.rules().policy.approvals;
  return flood !== null && countRequest(tx, run, flood, now) && irreversible.length === 0;
}

/** Registers the plan in its run. The number of plans is limited, since each call checks all of them. */
export function addPlanToRun(run: RunDoc, id: string): void {
  const plans = run.plans ?? [];
  if (plans.includes(id)) return;
  if (plans.length >= SERVICE_LIMITS.plans_under_way)
    throw conflictError(
      "plans_under_way",
      `this run has ${SERVICE_LIMITS.plans_under_way} plans in progress; withdraw one first`,
    );
  run.plans = [...plans, id];
}

function timeToLive(core: EngineCore, calls: readonly ProposedCall[]): number {
  const { ttl_ms } = core.rules().policy.approvals;
  return Math.min(ttl_ms, ...calls.flatMap(({ spec }) => (spec === null ? [] : [spec.ttl_ms])));
}

function requestOf(core: EngineCore, run: RunDoc, call: ProposedCall, id: string, now: number): ApprovalDoc {
  const { tool, args, rule, because, risk_score } = call;
  return buildApproval(run, {
    id,
    spec: call.spec ?? mergeTerms([core.rules().policy.approvals]),
    rule,
    tool,
    args,
    args_hash: keyedHash(run.salt, args),
    reason: core.redact(call.reason),
    now,
    kind: "call",
    step: null,
    risk_score,
    because,
    shown: null,
  });
}

/** Stores values for the approvers; deleted with the plan. */
function keepValues(
  core: EngineCore,
  tx: StoreTx,
  run: RunDoc,
  calls: readonly ProposedCall[],
  requests: readonly ApprovalDoc[],
): void {
  const { manifests, policy } = core.rules();
  if (policy.approvals.show === "names") return;
  for (const [i, { tool, args }] of calls.entries()) {
    const shown = { args: visibleArgs(args, manifests.active(tool) ?? null) };
    tx.put("approval_values", requests[i]!.id, toStoredValues(run.run_id, shown));
  }
}

function callOf(core: EngineCore, call: ProposedCall, request: ApprovalDoc): PlanCall {
  const { tool, depends_on, decision, reasons, risk_score } = call;
  const { args_hash, arg_names, id } = request;
  const approval_id = decision === "needs_approval" ? id : null;
  const reason = core.redact(call.reason);
  return { tool, args_hash, arg_names, reason, depends_on, decision, reasons, risk_score, approval_id };
}
