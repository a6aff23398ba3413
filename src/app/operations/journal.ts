/** Journaling on a run: intents, outcomes, and an operator's word on what nobody reported. */
import { z } from "zod";
import type { RunFacts } from "../../engine/gather.ts";
import { type IntentResult, intentUnit } from "../../engine/intent.ts";
import { type OutcomeResult, outcomeUnit, resolveUnit } from "../../engine/outcome.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { OUTCOMES } from "../../model/run.ts";
import type { Unit } from "../../store/port.ts";
import { ownRun } from "../access.ts";
import { announce } from "../app.ts";
import { type Call, operation } from "../operation.ts";
import { withReply } from "../replies.ts";
import {
  anyJson,
  decisionView,
  emptyQuery,
  note,
  outcomeView,
  runParams,
  stepParams,
  text,
  tool,
} from "../schemas.ts";
import { assertUnique } from "./runs.ts";

const intentBody = z.strictObject({
  tool,
  args: anyJson,
  reason: text(LIMITS.reason_chars),
  depends_on: z
    .array(z.int().min(0, "must be an earlier step number"))
    .max(LIMITS.depends_on, `at most ${LIMITS.depends_on} steps`)
    .optional(),
});

export const intent = operation({
  id: "intent",
  summary: "Ask for a call; execute it only on allow or would_block",
  method: "POST",
  path: "/v1/runs/{id}/intents",
  role: "agent",
  params: runParams,
  query: emptyQuery,
  body: intentBody,
  output: decisionView,
  status: 200,
  headers: ["Idempotency-Key"],
  errors: {
    404: "unknown run, or another agent's",
    409: "the Idempotency-Key was used with another request",
  },
  async run(call, { params, body }) {
    const run = await ownRun(call.app, call.principal, params.id);
    const input = {
      tool: body.tool,
      args: body.args as Json,
      reason: body.reason,
      depends_on: body.depends_on ?? [],
      objections: call.objections,
    };
    assertUnique(input.depends_on, "depends_on");
    const unit = intentUnit(call.app.core, call.principal, run.run_id, input, run);
    const arrived = performance.now();
    return answered(
      call,
      run,
      "intent",
      body as Json,
      unit,
      (result) => result.decision,
      (result) => intentDone(call, input.args, result, performance.now() - arrived),
    );
  },
});

function intentDone({ app }: Call, args: Json, result: IntentResult, took_ms: number): void {
  const { listeners } = app.core;
  announce(listeners, result.records);
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
  method: "POST",
  path: "/v1/runs/{id}/steps/{n}/outcome",
  role: "agent",
  params: stepParams,
  query: emptyQuery,
  body: z.strictObject({
    status: z.enum(OUTCOMES),
    result: z.unknown().optional(),
    error: z.string().max(LIMITS.body_bytes).optional(),
  }),
  output: outcomeView,
  status: 200,
  headers: ["Idempotency-Key"],
  errors: { 404: "unknown run or step", 409: "an outcome was already reported" },
  async run(call, { params, body }) {
    const run = await ownRun(call.app, call.principal, params.id);
    const input = {
      status: body.status,
      result: body.result as Json | undefined,
      error: body.error,
    };
    const unit = outcomeUnit(call.app.core, call.principal, run.run_id, params.n, input);
    const operation = `outcome ${params.n}`;
    return answered(
      call,
      run,
      operation,
      body as Json,
      unit,
      (result) => result.answer,
      (result) => outcomeDone(call, input.result, result),
    );
  },
});

function outcomeDone({ app }: Call, result: Json | undefined, done: OutcomeResult): void {
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

/** Runs the unit, remembers its answer under the client's Idempotency-Key, and tells the side channels once. */
async function answered<T>(
  call: Call,
  run: RunFacts,
  operation: string,
  request: Json,
  unit: Unit<T>,
  bodyOf: (result: T) => Json,
  done: (result: T) => void,
): Promise<Json> {
  const { core } = call.app;
  const key = call.headers.idempotency_key;
  if (key === undefined) {
    const result = await core.store.transact(unit);
    done(result);
    return bodyOf(result);
  }
  const replied = await core.store.transact(withReply(core, unit, { key, operation, run, request }, bodyOf));
  if (replied.replayed) return replied.body;
  done(replied.result);
  return bodyOf(replied.result);
}

export const resolve = operation({
  id: "resolve",
  summary: "Say what became of a step whose outcome is unknown",
  method: "POST",
  path: "/v1/runs/{id}/steps/{n}/resolve",
  role: "operator",
  params: stepParams,
  query: emptyQuery,
  body: z.strictObject({
    status: z.enum(["succeeded", "failed"]),
    note: note.refine((value) => value.trim() !== "", "is required: say how you know"),
    result: z.unknown().optional(),
  }),
  output: outcomeView,
  status: 200,
  errors: { 404: "unknown run or step", 409: "the step's outcome is known" },
  async run(call, { params, body }) {
    const { core } = call.app;
    const input = { ...body, result: body.result as Json | undefined };
    const done = await core.store.transact(
      resolveUnit(core, call.principal.name, params.id, params.n, input),
    );
    outcomeDone(call, input.result, done);
    return done.answer;
  },
});
