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
import { anyJson, ofRun, ofStep, runId } from "../schemas.ts";

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
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: planView,
  errors: { not_found: "unknown run" },
  async run({ app }, { run_id }) {
    await readRun(app, run_id);
    return loadPlan(app.core.store, run_id);
  },
});

export const rollbackPlanned = z.strictObject({ dry_run: z.literal(true), plan: planView });
export const rollbackStarted = z.strictObject({ job: startedJob });

export const startRollback = operation({
  id: "start_rollback",
  summary: "Roll the run back with the server's compensator; without confirm, show the plan",
  role: "operator",
  input: z.strictObject({
    run_id: runId,
    confirm: z.boolean().optional(),
    retries: z
      .int()
      .min(LIMITS.rollback_retries.min, "from 1 to 10")
      .max(LIMITS.rollback_retries.max, "from 1 to 10")
      .optional(),
    approve_compensations: z.boolean().optional(),
  }),
  output: z.union([rollbackPlanned, rollbackStarted]),
  errors: {
    not_found: "unknown run, or no compensator on this server",
    conflict: "a rollback of this run is under way",
  },
  run_of: ({ run_id }) => run_id,
  async run({ app, principal }, { run_id, ...body }) {
    await readRun(app, run_id);
    if (body.confirm !== true)
      return { dry_run: true as const, plan: await loadPlan(app.core.store, run_id) };
    if (app.jobTools === null) {
      throw new SvcError(
        "not_enabled",
        "rollback jobs are not enabled on this server: set SVC_COMPENSATOR_CMD, or use svc rollback",
      );
    }
    const input = { ...body, by: principal.name, authority: keptOf(principal) };
    const { job, done } = await startJob(app.core, run_id, input, app.jobTools);
    app.background.track(done.then(() => {}));
    const { state, started_ms, by } = job;
    return { job: { run_id, state, started_ms, by } };
  },
});

export const getRollback = operation({
  id: "get_rollback",
  summary: "Progress and result of the run's rollback job",
  role: "auditor",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({ job: jobShape }),
  errors: { not_found: "unknown run, or one without a rollback job" },
  async run({ app }, { run_id }) {
    return { job: jobView(await getJob(app.core.store, run_id)) };
  },
});

export const beginUndo = operation({
  id: "begin_compensation",
  summary: "Begin the undo of a step as a remote worker",
  role: "operator",
  input: ofStep,
  run_of: ({ run_id }) => run_id,
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
  errors: {
    not_found: "unknown run or step",
    conflict: "not its turn, already compensated, not compensable, or awaiting approval",
  },
  run: ({ app, principal }, { run_id, step }) => beginCompensation(app.core, principal, run_id, step),
});

export const completeUndo = operation({
  id: "complete_compensation",
  summary: "Report how the undo of a step ended",
  role: "operator",
  input: z.strictObject({
    ...ofStep.shape,
    status: z.enum(["succeeded", "failed"]),
    error: z.string().max(LIMITS.body_bytes).optional(),
    attempts: z.int().min(1).max(1_000_000).optional(),
    observed: anyJson.optional(),
  }),
  output: z.strictObject({ step: z.int(), status: z.enum(STEP_STATUSES) }),
  errors: { not_found: "unknown run or step", conflict: "not begun by this worker" },
  run_of: ({ run_id }) => run_id,
  run: ({ app, principal }, { run_id, step, ...body }) =>
    completeCompensation(app.core, principal, run_id, step, {
      ...body,
      observed: body.observed as Json | undefined,
    }),
});
