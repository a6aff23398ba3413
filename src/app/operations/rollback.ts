/** Rollback: the plan, the server's job, and the routes of a remote worker. */
import { z } from "zod";
import { SvcError } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { keptOf } from "../../model/roles.ts";
import { STEP_STATUSES } from "../../model/run.ts";
import { getJob, jobView, startJob } from "../../rollback/job.ts";
import { loadPlan } from "../../rollback/load.ts";
import { beginCompensation, completeCompensation } from "../../rollback/remote.ts";
import { readRun } from "../access.ts";
import { operation } from "../operation.ts";
import { anyJson, emptyQuery, runParams, stepParams } from "../schemas.ts";

export const planView = z.strictObject({
  run_id: z.string(),
  actions: z.array(z.looseObject({ step: z.int(), tool: z.string(), kind: z.string() })),
  fully_reversible: z.boolean(),
});

const jobShape = z.strictObject({
  run_id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_ms: z.int(),
  finished_ms: z.union([z.int(), z.null()]),
  by: z.string(),
  current_step: z.union([z.int(), z.null()]),
  report: z.unknown(),
  error: z.union([z.string(), z.null()]),
});

const startedJob = jobShape.pick({ run_id: true, state: true, started_ms: true, by: true });

export const plan = operation({
  id: "plan",
  summary: "What a rollback of the run would do; changes nothing",
  method: "GET",
  path: "/v1/runs/{id}/plan",
  role: "auditor",
  params: runParams,
  query: emptyQuery,
  output: planView,
  status: 200,
  errors: { 404: "unknown run" },
  async run({ app }, { params }) {
    await readRun(app, params.id);
    return loadPlan(app.core.store, params.id);
  },
});

export const startRollback = operation({
  id: "start_rollback",
  summary: "Roll the run back with the server's compensator; without confirm, show the plan",
  method: "POST",
  path: "/v1/runs/{id}/rollback",
  role: "operator",
  params: runParams,
  query: emptyQuery,
  body: z.strictObject({
    confirm: z.boolean().optional(),
    retries: z
      .int()
      .min(LIMITS.rollback_retries.min, "from 1 to 10")
      .max(LIMITS.rollback_retries.max, "from 1 to 10")
      .optional(),
    approve_compensations: z.boolean().optional(),
  }),
  output: z.strictObject({ dry_run: z.literal(true), plan: planView }),
  status: 200,
  also: { 202: { description: "the job was started", output: z.strictObject({ job: startedJob }) } },
  errors: {
    404: "unknown run, or no compensator on this server",
    409: "a rollback of this run is under way",
  },
  async run(call, { params, body }) {
    const { app, principal } = call;
    await readRun(app, params.id);
    if (body.confirm !== true) return { dry_run: true, plan: await loadPlan(app.core.store, params.id) };
    if (app.jobTools === null) {
      throw new SvcError(
        "not_enabled",
        "rollback jobs are not enabled on this server: set SVC_COMPENSATOR_CMD, or use svc rollback",
      );
    }
    const input = { ...body, by: principal.name, authority: keptOf(principal) };
    const { job, done } = await startJob(app.core, params.id, input, app.jobTools);
    app.background.track(done.then(() => {}));
    const { run_id, state, started_ms, by } = job;
    call.status = 202;
    return { job: { run_id, state, started_ms, by } };
  },
});

export const getRollback = operation({
  id: "get_rollback",
  summary: "Progress and result of the run's rollback job",
  method: "GET",
  path: "/v1/runs/{id}/rollback",
  role: "auditor",
  params: runParams,
  query: emptyQuery,
  output: z.strictObject({ job: jobShape }),
  status: 200,
  errors: { 404: "unknown run, or one without a rollback job" },
  async run({ app }, { params }) {
    return { job: jobView(await getJob(app.core.store, params.id)) };
  },
});

export const beginUndo = operation({
  id: "begin_compensation",
  summary: "Begin the undo of a step as a remote worker",
  method: "POST",
  path: "/v1/runs/{id}/steps/{n}/compensation",
  role: "operator",
  params: stepParams,
  query: emptyQuery,
  body: z.strictObject({}),
  output: z.strictObject({
    run_id: z.string(),
    step: z.int(),
    tool: z.string(),
    original_tool: z.string(),
    args: z.unknown(),
    idempotency_key: z.string(),
    verification: z.union([
      z.strictObject({ tool: z.string(), arguments: z.unknown(), expect: z.unknown() }),
      z.null(),
    ]),
  }),
  status: 200,
  errors: {
    404: "unknown run or step",
    409: "not its turn, already compensated, not compensable, or awaiting approval",
  },
  run: ({ app, principal }, { params }) => beginCompensation(app.core, principal, params.id, params.n),
});

export const completeUndo = operation({
  id: "complete_compensation",
  summary: "Report how the undo of a step ended",
  method: "POST",
  path: "/v1/runs/{id}/steps/{n}/compensation/outcome",
  role: "operator",
  params: stepParams,
  query: emptyQuery,
  body: z.strictObject({
    status: z.enum(["succeeded", "failed"]),
    error: z.string().max(LIMITS.body_bytes).optional(),
    attempts: z.int().min(1).max(1_000_000).optional(),
    observed: anyJson.optional(),
  }),
  output: z.strictObject({ step: z.int(), status: z.enum(STEP_STATUSES) }),
  status: 200,
  errors: { 404: "unknown run or step", 409: "not begun by this worker" },
  run: ({ app, principal }, { params, body }) =>
    completeCompensation(app.core, principal, params.id, params.n, {
      ...body,
      observed: body.observed as Json | undefined,
    }),
});
