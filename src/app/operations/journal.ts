/** Journaling on a run: intents, outcomes, and an operator's word on what was not reported. */
import * as z from "zod";
import { type IntentResult, intentUnit, previewUnit } from "../../engine/intent.ts";
import { learningCall, learningHashes } from "../../engine/learn-values.ts";
import { type OutcomeResult, outcomeUnit, resolveUnit } from "../../engine/outcome.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { OUTCOMES } from "../../model/run.ts";
import type { Unit } from "../../port/store.ts";
import { doAnyInTurns } from "../../process/turns.ts";
import { plainReasons, RULINGS, rulingOf } from "../../sandbox/past-call.ts";
import { announce } from "../app.ts";
import { ownRun } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { type ReplyScope, withReply } from "../door/replies.ts";
import { assertUnique } from "./runs.ts";
import {
  anyJson,
  beforeView,
  decisionView,
  note,
  ofStep,
  outcomeView,
  runId,
  text,
  tool,
} from "./schemas.ts";

const intentFields = {
  tool,
  args: anyJson,
  reason: text(LIMITS.reason_chars),
  depends_on: z
    .array(z.int().min(0, "must be an earlier step number"))
    .max(LIMITS.depends_on, `at most ${LIMITS.depends_on} steps`)
    .optional(),
};
/** The same request under the same key is answered as the first time. */
const idempotency_key = z.string().optional();

export const intent = operation({
  id: "intent",
  summary: "Ask for a call; execute it only on allow or would_block",
  role: "agent",
  input: z.strictObject({ run_id: runId, ...intentFields, idempotency_key }),
  run_of: ({ run_id }) => run_id,
  output: decisionView,
  errors: {
    not_found: "unknown run, or another agent's",
    conflict: "the Idempotency-Key was used with another request",
  },
  async run(call, given) {
    const known = ownRun(call.app, call.principal, given.run_id);
    const run = known instanceof Promise ? await known : known;
    const input = {
      tool: given.tool,
      args: given.args as Json,
      reason: given.reason,
      depends_on: given.depends_on ?? [],
      objections: call.objections,
      drill: call.drill,
      seen: call.seen,
      input_schema: call.input_schema,
    };
    assertUnique(input.depends_on, "depends_on");
    const learning = doAnyInTurns(learningCall(call.app.core, input.tool, input.args, input.seen));
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

export const previewIntent = operation({
  id: "preview_intent",
  summary: "What a call would be answered now, in this run; nothing is asked, kept or recorded",
  role: "agent",
  input: z.strictObject({ run_id: runId, ...intentFields }),
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({
    decision: z.enum(RULINGS),
    reasons: z.array(z.string()),
    hints: z.array(z.string()),
    risk_score: z.int(),
    before: beforeView
      .optional()
      .meta({ description: "at the gateway: what is to be read now, for the card of the call" }),
  }),
  errors: { not_found: "unknown run, or another agent's" },
  async run({ app, principal, objections, drill, reads_by }, { run_id, ...body }) {
    await ownRun(app, principal, run_id);
    const input = { ...body, args: body.args as Json, depends_on: body.depends_on ?? [], objections, drill };
    assertUnique(input.depends_on, "depends_on");
    const { core } = app;
    await doAnyInTurns(learningCall(core, input.tool, input.args));
    const { verdict, card_read } = await core.store.transact(previewUnit(core, principal, run_id, input));
    // A request that a preview would have opened does not exist; one that waits does.
    const { reasons: all, approval, risk_score } = verdict;
    const reasons = approval.move === "wait" ? all : plainReasons(all);
    const decision = verdict.decision === "block" ? rulingOf(verdict) : "allow";
    const before = reads_by === "gateway" && card_read !== null ? { before: card_read } : {};
    return { decision, reasons, hints: [...verdict.hints], risk_score, ...before };
  },
});

function intentDone({ app, traceparent }: Caller, args: Json, result: IntentResult, took_ms: number): void {
  const { listeners } = app.core;
  announce(listeners, result.records, traceparent);
  if (result.opened !== null) listeners.approvalRequested(result.opened);
  listeners.intentDecided({
    run: result.run,
    tool: result.tool,
    args,
    decision: result.decision,
    needs_approval: result.verdict.needs_approval,
    manifest: result.manifest,
    risk_score: result.verdict.risk_score,
    depends_on: result.depends_on,
    took_ms,
  });
}

export const outcome = operation({
  id: "outcome",
  summary: "Report what became of an accepted step",
  role: "agent",
  input: z.strictObject({
    ...ofStep.shape,
    idempotency_key,
    status: z.enum(OUTCOMES),
    result: z.unknown().optional(),
    error: z.string().max(LIMITS.body_bytes).optional(),
    before: z
      .unknown()
      .optional()
      .meta({ description: "what the decision's `before` showed before the call" }),
    after: z.unknown().optional().meta({ description: "what the same read showed after it" }),
  }),
  output: outcomeView,
  errors: { not_found: "unknown run or step", conflict: "an outcome was already reported" },
  run_of: ({ run_id }) => run_id,
  async run(call, given) {
    const known = ownRun(call.app, call.principal, given.run_id);
    const run = known instanceof Promise ? await known : known;
    const input = {
      status: given.status,
      result: given.result as Json | undefined,
      error: given.error,
      before: given.before as Json | undefined,
      after: given.after as Json | undefined,
      read_by: call.reads_by,
    };
    const learning = doAnyInTurns(learningHashes(input.result, input.before, input.after));
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

function outcomeDone({ app }: Caller, result: Json | undefined, done: OutcomeResult): void {
  const { listeners } = app.core;
  announce(listeners, done.records);
  listeners.outcomeReported({
    run: done.run,
    step: done.step,
    status: done.answer.status,
    result,
    manifest: done.manifest,
  });
}

/** What the answer is kept under: the client's key, and what it asked for. */
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
  return { key: idempotency_key!, operation, run, request: body as Json };
}

/** Runs the unit, remembers its answer under the client's Idempotency-Key, and tells the side channels once. */
async function answered<T, A extends Json>(
  caller: Caller,
  scope: ReplyScope | null,
  unit: Unit<T>,
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

export const resolve = operation({
  id: "resolve",
  summary: "Say what became of a step whose outcome is unknown",
  role: "operator",
  input: z.strictObject({
    ...ofStep.shape,
    status: z.enum(["succeeded", "failed"]),
    note: note.refine((value) => value.trim() !== "", "is required: say how you know"),
    result: z.unknown().optional(),
  }),
  output: outcomeView,
  errors: { not_found: "unknown run or step", conflict: "the step's outcome is known" },
  run_of: ({ run_id }) => run_id,
  async run(call, { run_id, step, ...body }) {
    const { core } = call.app;
    const input = { ...body, result: body.result as Json | undefined };
    await doAnyInTurns(learningHashes(input.result));
    const done = await core.store.transact(resolveUnit(core, call.principal.name, run_id, step, input));
    outcomeDone(call, input.result, done);
    return done.answer;
  },
});
