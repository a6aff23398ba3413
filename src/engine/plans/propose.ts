/** Proposing a plan: what was judged is kept with the call as it would be asked for, and nothing is decided yet. */
import { conflict } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import { keptArgs } from "../../model/card/kept.ts";
import type { Because } from "../../model/card/types.ts";
import type { PlanCall, PlanDoc } from "../../model/plan.ts";
import { type MergedApproval, mergeTerms } from "../../model/policy/approvals.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Tx, Unit } from "../../port/store.ts";
import { countRequest } from "../approvals/flood.ts";
import { madeApproval } from "../approvals/requests.ts";
import { type Asking, type Core, ENGINE } from "../core.ts";
import { loadSealedRun, unknownRun } from "../load-run.ts";
import { appendRunRecord } from "../records.ts";

export interface ProposedCall {
  tool: string;
  args: Json;
  reason: string;
  depends_on: number[];
  decision: PlanCall["decision"];
  reasons: string[];
  risk_score: number;
  /** What an approval must satisfy, where one is needed. */
  spec: MergedApproval | null;
  because: Because;
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

export function proposeUnit(core: Core, asking: Asking, run_id: string, input: Proposal): Unit<RecordedPlan> {
  const id = `pln_${core.env.uuid()}`;
  const ids = input.calls.map(() => `apr_${core.env.uuid()}`);
  return {
    needs: [["runs", run_id]],
    share: asking.tenant ?? undefined,
    run(tx) {
      const run = loadSealedRun(tx, run_id);
      if (run.principal !== asking.id) throw unknownRun(run_id);
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
      enterRun(run, id);
      keepValues(core, tx, run, input.calls, requests);
      tx.put("plans", id, made);
      tx.put("runs", run_id, run);
      return { plan: made, records: [record] };
    },
  };
}

/** The first call that would be refused, with why; no decision of a person could change that. */
function refusedCall(calls: readonly ProposedCall[]): { note: string; reasons: readonly string[] } | null {
  const at = calls.findIndex(({ decision }) => decision === "block");
  return at < 0 ? null : { note: `call ${at} is refused`, reasons: calls[at]!.reasons };
}

/** A plan that could not be carried out asks no person: no request, no notification, no values kept. */
function denyAtOnce(
  tx: Tx,
  run: RunDoc,
  plan: PlanDoc,
  { note, reasons }: { note: string; reasons: readonly string[] },
  proposed: LedgerRecord,
): RecordedPlan {
  const { id, requested_ms: now } = plan;
  const denied: PlanDoc = {
    ...plan,
    status: "denied",
    decided_by: ENGINE,
    decided_ms: now,
    note,
    calls: plan.calls.map((call) => ({ ...call, approval_id: null })),
  };
  const record = appendRunRecord(tx, run, {
    event: "plan_denied",
    actor: ENGINE,
    ts_ms: now,
    reason: plan.reason,
    detail: `plan ${id}: ${note}: ${reasons.join("; ")}`,
  });
  tx.put("plans", id, denied);
  tx.put("runs", run.run_id, run);
  return { plan: denied, records: [proposed, record] };
}

/**
 * A plan is one question more; one past the actor's flood is told with the others, unless it holds what nothing takes
 * back.
 */
function isToldTogether(core: Core, tx: Tx, run: RunDoc, { irreversible }: Proposal, now: number): boolean {
  const { flood } = core.rules().policy.approvals;
  return flood !== null && countRequest(tx, run, flood, now) && irreversible.length === 0;
}

/** A call looks at each plan of its run that is under way, decided or not, so they are few. */
export function enterRun(run: RunDoc, id: string): void {
  const plans = run.plans ?? [];
  if (plans.includes(id)) return;
  if (plans.length >= LIMITS.plans_under_way)
    throw conflict(
      "plans_under_way",
      `this run has ${LIMITS.plans_under_way} plans under way; withdraw one first`,
    );
  run.plans = [...plans, id];
}

function timeToLive(core: Core, calls: readonly ProposedCall[]): number {
  const { ttl_ms } = core.rules().policy.approvals;
  return Math.min(ttl_ms, ...calls.flatMap(({ spec }) => (spec === null ? [] : [spec.ttl_ms])));
}

function requestOf(core: Core, run: RunDoc, call: ProposedCall, id: string, now: number): ApprovalDoc {
  const { tool, args, rule, because, risk_score } = call;
  return madeApproval(run, {
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

/** For the eyes of those who decide; gone with the plan. */
function keepValues(
  core: Core,
  tx: Tx,
  run: RunDoc,
  calls: readonly ProposedCall[],
  requests: readonly ApprovalDoc[],
): void {
  const { manifests, policy } = core.rules();
  if (policy.approvals.show === "names") return;
  for (const [i, { tool, args }] of calls.entries()) {
    const shown = keptArgs(args, manifests.active(tool) ?? null);
    tx.put("approval_values", requests[i]!.id, { run_id: run.run_id, args: shown });
  }
}

function callOf(core: Core, call: ProposedCall, request: ApprovalDoc): PlanCall {
  const { tool, depends_on, decision, reasons, risk_score } = call;
  const { args_hash, arg_names, id } = request;
  const approval_id = decision === "needs_approval" ? id : null;
  const reason = core.redact(call.reason);
  return { tool, args_hash, arg_names, reason, depends_on, decision, reasons, risk_score, approval_id };
}
