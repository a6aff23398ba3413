/**
 * Decides one call of the proxy and reports its outcome. Nothing is sent without a recorded intent, and an answer ends
 * only after its outcome is recorded.
 */
import type { z } from "zod";
import type { ApproversGuard } from "../auth/approvers-guard.ts";
import { OPEN_APPROVAL_STATUSES, pendingApprovalId } from "../govern/approvals/approval.ts";
import type { CardRead } from "../govern/decide/before-state.ts";
import { type EffectCheckRead, observeEffect } from "../govern/decide/effect-check.ts";
import { ALREADY_REPORTED } from "../govern/decide/outcome.ts";
import type { EffectFinding, OutcomeStatus } from "../govern/runs/run.ts";
import { systemEnv } from "../kernel/env.ts";
import { SvcError } from "../kernel/errors.ts";
import type { JsonObject, JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { getApproval } from "../operations/approvals/approvals.ts";
import type { ServiceOperation } from "../operations/pipeline/operation.ts";
import {
  type BeforeReader,
  type BeforeReading,
  readAfter,
  readBefore,
  readForCard,
} from "../operations/runs/before-reads.ts";
import { previewIntent, reportStepOutcome, submitIntent } from "../operations/runs/intents-and-outcomes.ts";
import { getSignatures } from "../operations/signing/signatures.ts";
import type { ReadRequest } from "../rollback/ports.ts";
import type { HttpToolSet } from "../rules/http/routes.ts";
import { ProxyRefusal } from "./wire.ts";

/** The agent behind a connection: its run, and the service that decides. */
export interface ProxyCaller {
  readonly run_id: string;
  /** Stores the run if necessary. */
  open(): Promise<void>;
  /** Whether the credential still holds. */
  isCurrent(): boolean;
  perform<I extends z.ZodType, O>(
    op: ServiceOperation<I, O>,
    input: z.input<I>,
    more?: { seen?: CardRead; signal?: AbortSignal },
  ): Promise<O>;
}

export interface ProxyRules {
  manifests(): HttpToolSet;
  /** Whether the state before a call of this tool is read for the card of its request. */
  showsBefore(tool: string): boolean;
  /** How long a call that needs approval is held. */
  readonly wait_ms: number;
  readonly reads: BeforeReader;
  /** Verifies signed approvals; null without an approvers file. */
  readonly guard: ApproversGuard | null;
}

export interface ProxyCall {
  readonly tool: string;
  readonly args: JsonObject;
  readonly reason: string;
  /** Aborts when the client is gone. */
  readonly gone: AbortSignal;
}

interface EndedCall {
  status: OutcomeStatus;
  result?: JsonValue;
  error?: string;
}

/** An accepted call, between its intent and its outcome. */
export interface AcceptedCall {
  readonly step: number;
  /** Reports how the call ended, after the reads that its manifest may ask for. Returns what the effect check found. */
  end(outcome: EndedCall): Promise<EffectFinding | undefined>;
}

const OUTCOME_TRIES = 4;
const OUTCOME_RETRY_MS = 250;

/** Records the intent, and holds a call that waits for approval. Throws a refusal for a blocked call. */
export async function acceptCall(
  rules: ProxyRules,
  caller: ProxyCaller,
  call: ProxyCall,
): Promise<AcceptedCall> {
  const until = performance.now() + rules.wait_ms;
  await caller.open();
  for (;;) {
    const { decision, reading } = await decideOnce(rules, caller, call);
    if (decision.decision !== "block") {
      await assertSigned(rules, caller, call, decision);
      return accepted(rules, caller, { ...decision, args: call.args }, reading);
    }
    const id = pendingApprovalId(decision.reasons);
    const left_s = Math.ceil((until - performance.now()) / 1_000);
    const refusal = blockedRefusal(decision.reasons, decision.hints ?? [], id);
    if (id === null || left_s <= 0 || call.gone.aborted) throw refusal;
    if (!(await isApproved(caller, id, until, call.gone))) throw refusal;
  }
}

/** Throws a refusal if the approvers file does not permit the call. */
async function assertSigned(
  { guard }: ProxyRules,
  caller: ProxyCaller,
  { tool, args }: ProxyCall,
  decision: { step: number; approval_id?: string | undefined },
): Promise<void> {
  if (guard === null) return;
  const { step, approval_id } = decision;
  const evidence = async () =>
    approval_id === undefined ? undefined : caller.perform(getSignatures, { approval_id });
  const objection = await guard.objection({ run_id: caller.run_id, tool, args }, evidence);
  if (objection === null) return;
  await reportOutcome(caller, { step, status: "failed", error: objection });
  throw new ProxyRefusal("forbidden", objection, { headers: { "svc-decision": "block" } });
}

/** Waits for the request. False if it was not approved in time, or the client is gone: the approval then stays unused. */
async function isApproved(caller: ProxyCaller, approval_id: string, until: number, gone: AbortSignal) {
  for (;;) {
    const left_s = Math.ceil((until - performance.now()) / 1_000);
    if (left_s <= 0 || gone.aborted) return false;
    const wait = Math.min(left_s, SERVICE_LIMITS.approval_wait_s);
    const { status } = await caller.perform(getApproval, { approval_id, wait }, { signal: gone });
    if (gone.aborted) return false;
    if (!OPEN_APPROVAL_STATUSES.has(status)) return status === "approved" || status === "consumed";
  }
}

function blockedRefusal(reasons: readonly string[], hints: readonly string[], approval_id: string | null) {
  const text = [...reasons, ...hints.map((hint) => `hint: ${hint}`)].join("; ");
  return new ProxyRefusal("forbidden", text, {
    headers: { "svc-decision": "block", ...(approval_id === null ? {} : { "svc-approval-id": approval_id }) },
  });
}

async function decideOnce(rules: ProxyRules, caller: ProxyCaller, { tool, args, reason }: ProxyCall) {
  const input = { run_id: caller.run_id, tool, args, reason };
  if (!rules.showsBefore(tool)) return { decision: await caller.perform(submitIntent, input), reading: null };
  const preview = await caller.perform(previewIntent, input);
  const { seen, reading } = await readForCard(rules.reads, preview, new AbortController().signal);
  return { decision: await caller.perform(submitIntent, input, { seen }), reading };
}

interface AcceptedDecision {
  readonly step: number;
  readonly args: JsonObject;
  readonly before?: Parameters<typeof readBefore>[1] | undefined;
  readonly effect_check?: EffectCheckRead | undefined;
}

async function accepted(
  rules: ProxyRules,
  caller: ProxyCaller,
  decision: AcceptedDecision,
  already: BeforeReading | null,
): Promise<AcceptedCall> {
  const { step, before: asked } = decision;
  const signal = new AbortController().signal;
  const report = (outcome: Omit<Parameters<typeof reportOutcome>[1], "step">) =>
    reportOutcome(caller, { step, ...outcome });
  const checked = async (outcome: EndedCall, before?: JsonValue) => {
    const observed =
      outcome.status === "succeeded"
        ? await observeCall(rules.reads, decision, outcome.result, before)
        : undefined;
    return { ...outcome, observed };
  };
  if (asked === undefined) return { step, end: async (outcome) => report(await checked(outcome)) };
  const reading = already ?? (await readBefore(rules.reads, asked, signal));
  if ("problem" in reading) {
    await report({ status: "failed", error: reading.problem });
    throw new ProxyRefusal("delivery_failed", reading.problem);
  }
  const { value: before } = reading;
  return {
    step,
    async end(outcome) {
      const isRead = before !== undefined && outcome.status === "succeeded";
      const after = isRead ? await readAfter(rules.reads, asked, signal) : undefined;
      return report({ ...(await checked(outcome, before)), before, after });
    },
  };
}

/** Reads whether the request took effect. Undefined without a declared check, or if it cannot be run. */
async function observeCall(
  { reader, objection }: BeforeReader,
  { effect_check: check, args }: AcceptedDecision,
  result: JsonValue | undefined,
  before: JsonValue | undefined,
): Promise<JsonValue | undefined> {
  if (check === undefined || (await objection([check.tool])) !== null) return undefined;
  const read = (request: ReadRequest) => reader(request, new AbortController().signal);
  return observeEffect(systemEnv, read, check, { args, result, before });
}

/** Reports an outcome, again if the service is away for a moment: the request itself cannot be repeated. */
async function reportOutcome(
  caller: ProxyCaller,
  outcome: {
    step: number;
    status: OutcomeStatus;
    result?: JsonValue | undefined;
    error?: string | undefined;
    before?: JsonValue | undefined;
    after?: JsonValue | undefined;
    observed?: JsonValue | undefined;
  },
): Promise<EffectFinding | undefined> {
  const { run_id } = caller;
  const input = { run_id, ...outcome, error: outcome.error?.slice(0, SERVICE_LIMITS.error_read_chars) };
  for (let attempt = 1; ; attempt++) {
    try {
      return (await caller.perform(reportStepOutcome, input)).effect_check;
    } catch (error) {
      if (error instanceof SvcError && error.cause_code === ALREADY_REPORTED) return undefined;
      const isAway = error instanceof SvcError && error.code === "unavailable";
      if (!isAway || attempt >= OUTCOME_TRIES)
        throw new SvcError(
          "unavailable",
          `the request ended as ${outcome.status}, but this could not be recorded; step ${outcome.step} of run ${run_id} is unresolved`,
          { cause: error },
        );
      await new Promise((resolve) => setTimeout(resolve, OUTCOME_RETRY_MS * 2 ** (attempt - 1)));
    }
  }
}
