/** Journaling on a run: intents, outcomes, and an operator's resolution of unknown outcomes. */
import * as z from "zod";
import { runAnyInSlices } from "../../child-process/event-loop-slices.ts";
import { type IntentResult, intentUnit, previewUnit } from "../../govern/decide/intent.ts";
import { type OutcomeResult, outcomeUnit, resolveUnit } from "../../govern/decide/outcome.ts";
import { precomputingOutcome } from "../../govern/decide/precompute-values.ts";
import type { UnitOfWork } from "../../govern/port/store.ts";
import { OUTCOME_STATUSES } from "../../govern/runs/run.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { PREVIEW_DECISIONS, plainReasons, toPreviewDecision } from "../../simulate/recorded-call.ts";
import { announceRecords } from "../app.ts";
import { requireOwnRun } from "../pipeline/access.ts";
import { type ReplyScope, withReply } from "../pipeline/idempotency.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import {
  anyJson,
  beforeView,
  boundedText,
  decisionView,
  noteSchema,
  ofStep,
  outcomeView,
  runId,
  toolSchema,
} from "../schemas.ts";
import { precomputeCall } from "../values/threads.ts";
import { assertUnique } from "./runs.ts";

const intentFields = {
  tool: toolSchema,
  args: anyJson,
  reason: boundedText(SERVICE_LIMITS.reason_chars),
  depends_on: z
    .array(z.int().min(0, "must be an earlier step number"))
    .max(SERVICE_LIMITS.depends_on, `at most ${SERVICE_LIMITS.depends_on} steps`)
    .optional(),
  ref: z
    .string()
    .min(1, "must not be empty")
    .max(SERVICE_LIMITS.call_ref_chars, `at most ${SERVICE_LIMITS.call_ref_chars} characters`)
    .optional(),
  sandboxed: z
    .strictObject({ run_id: runId, secret: boundedText(SERVICE_LIMITS.sandbox_secret_chars) })
    .optional(),
};
/** A repeated request with the same key gets the first response. */
const idempotency_key = z.string().optional();

export const submitIntent = defineOperation({
  id: "intent",
  summary: "Ask for a call; execute it only on allow or would_block",
  role: "agent",
  input: z.strictObject({ run_id: runId, ...intentFields, idempotency_key }),
  run_of: ({ run_id }) => run_id,
  output: decisionView,
  errors: {
    not_found: "unknown run, or another agent's",
    conflict: "the Idempotency-Key was used with a different request",
  },
  async run(call, given) {
    const known = requireOwnRun(call.app, call.principal, given.run_id);
    const run = known instanceof Promise ? await known : known;
    const input = {
      tool: given.tool,
      args: given.args as JsonValue,
      reason: given.reason,
      depends_on: given.depends_on ?? [],
      ref: given.ref,
      sandboxed: given.sandboxed,
      objections: call.objections,
      drill: call.drill,
      seen: call.seen,
      input_schema: call.input_schema,
    };
    assertUnique(input.depends_on, "depends_on");
    const learning = precomputeCall(call.app.core, { ...input, read: input.seen?.value });
    if (learning !== undefined) await learning;
    const unit = intentUnit(call.app.core, call.principal, run.run_id, input, run);
    const arrived = performance.now();
    const ask = () =>
      answered(
        call,
        given.idempotency_key === undefined ? null : keyed(given, "intent", run),
        unit,
        (result) => result.decision,
        (result) => intentDone(call, input.args, result, performance.now() - arrived),
      );
    const { openRequests } = call.app;
    return await (openRequests === undefined ? ask() : openRequests.around(run, ask));
  },
});

export const previewIntent = defineOperation({
  id: "preview_intent",
  summary: "Preview the decision on a call in this run; nothing is requested, stored or recorded",
  role: "agent",
  input: z.strictObject({ run_id: runId, ...intentFields }),
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({
    decision: z.enum(PREVIEW_DECISIONS),
    reasons: z.array(z.string()),
    hints: z.array(z.string()),
    risk_score: z.int(),
    before: beforeView
      .optional()
      .meta({ description: "at the gateway: the read to make now, for the card of the call" }),
  }),
  errors: { not_found: "unknown run, or another agent's" },
  async run({ app, principal, objections, drill, reads_by }, { run_id, ...body }) {
    await requireOwnRun(app, principal, run_id);
    const input = {
      ...body,
      args: body.args as JsonValue,
      depends_on: body.depends_on ?? [],
      objections,
      drill,
    };
    assertUnique(input.depends_on, "depends_on");
    const { core } = app;
    await precomputeCall(core, input);
    const { verdict, card_read } = await core.store.transact(previewUnit(core, principal, run_id, input));
    // A preview opens no request, so name a request only if it already exists.
    const { reasons: all, approval, risk_score } = verdict;
    const reasons = approval.move === "wait" ? all : plainReasons(all);
    const decision = verdict.decision === "block" ? toPreviewDecision(verdict) : "allow";
    const before = reads_by === "gateway" && card_read !== null ? { before: card_read } : {};
    return { decision, reasons, hints: [...verdict.hints], risk_score, ...before };
  },
});

function intentDone(
  { app, traceparent }: ApiCaller,
  args: JsonValue,
  result: IntentResult,
  took_ms: number,
): void {
  const { listeners } = app.core;
  announceRecords(listeners, result.records, traceparent);
  if (result.opened !== null) listeners.approvalRequested(result.opened);
  listeners.intentDecided({
    run: result.run,
    tool: result.tool,
    args,
    decision: result.decision,
    needs_approval: result.verdict.needs_approval,
    manifest: result.manifest,
    risk_score: result.verdict.risk_score,
    sandboxed: result.call.sandboxed,
    depends_on: result.depends_on,
    took_ms,
  });
}

export const reportStepOutcome = defineOperation({
  id: "outcome",
  summary: "Report the outcome of an accepted step",
  role: "agent",
  input: z.strictObject({
    ...ofStep.shape,
    idempotency_key,
    status: z.enum(OUTCOME_STATUSES),
    result: z.unknown().optional(),
    error: z.string().max(SERVICE_LIMITS.body_bytes).optional(),
    before: z
      .unknown()
      .optional()
      .meta({ description: "result of the decision's `before` read, from before the call" }),
    after: z.unknown().optional().meta({ description: "result of the same read after the call" }),
    observed: z
      .unknown()
      .optional()
      .meta({ description: "last answer of the decision's `effect_check` read, after a success" }),
  }),
  output: outcomeView,
  errors: { not_found: "unknown run or step", conflict: "an outcome was already reported" },
  run_of: ({ run_id }) => run_id,
  async run(call, given) {
    const known = requireOwnRun(call.app, call.principal, given.run_id);
    const run = known instanceof Promise ? await known : known;
    const input = {
      status: given.status,
      result: given.result as JsonValue | undefined,
      error: given.error,
      before: given.before as JsonValue | undefined,
      after: given.after as JsonValue | undefined,
      observed: given.observed as JsonValue | undefined,
      read_by: call.reads_by,
    };
    const learning = runAnyInSlices(
      precomputingOutcome(call.app.core, run, input.result, input.before, input.after),
    );
    if (learning !== undefined) await learning;
    const unit = outcomeUnit(call.app.core, call.principal, run.run_id, given.step, input);
    return await answered(
      call,
      given.idempotency_key === undefined ? null : keyed(given, `outcome ${given.step}`, run),
      unit,
      (result) => result.answer,
      (result) => outcomeDone(call, input.result, result),
    );
  },
});

function outcomeDone({ app }: ApiCaller, result: JsonValue | undefined, done: OutcomeResult): void {
  const { listeners } = app.core;
  announceRecords(listeners, done.records);
  listeners.outcomeReported({
    run: done.run,
    step: done.step,
    status: done.answer.status,
    result,
    manifest: done.manifest,
  });
}

/** Scope of a stored response: the client's key and the request. */
function keyed(
  {
    run_id,
    step,
    idempotency_key,
    ...body
  }: { run_id: string; step?: number; idempotency_key?: string | undefined },
  operation: string,
  run: ReplyScope["run"],
): ReplyScope {
  return { key: idempotency_key!, operation, run, request: body as JsonValue };
}

/**
 * Runs the transaction, stores its response under the client's Idempotency-Key, and notifies the side channels once.
 */
async function answered<T, A extends JsonValue>(
  caller: ApiCaller,
  scope: ReplyScope | null,
  unit: UnitOfWork<T>,
  bodyOf: (result: T) => A,
  done: (result: T) => void,
): Promise<A> {
  const { core } = caller.app;
  if (scope === null) {
    const result = await core.store.transact(unit);
    done(result);
    return bodyOf(result);
  }
  const replied = await core.store.transact(withReply(core, unit, scope, bodyOf));
  if (replied.replayed) {
    caller.replayed?.();
    return replied.body as A;
  }
  done(replied.result);
  return bodyOf(replied.result);
}

export const resolveOutcome = defineOperation({
  id: "resolve",
  summary: "Resolve a step with an unknown outcome",
  role: "operator",
  input: z.strictObject({
    ...ofStep.shape,
    status: z.enum(["succeeded", "failed"]),
    note: noteSchema.refine((value) => value.trim() !== "", "is required: explain how you know"),
    result: z.unknown().optional(),
  }),
  output: outcomeView,
  errors: { not_found: "unknown run or step", conflict: "the step's outcome is already known" },
  run_of: ({ run_id }) => run_id,
  async run(call, { run_id, step, ...body }) {
    const { core } = call.app;
    const input = { ...body, result: body.result as JsonValue | undefined };
    await runAnyInSlices(precomputingOutcome(core, null, input.result));
    const done = await core.store.transact(resolveUnit(core, call.principal.name, run_id, step, input));
    outcomeDone(call, input.result, done);
    return done.answer;
  },
});
