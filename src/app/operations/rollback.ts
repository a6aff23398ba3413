/** Rollback: the plan, the server's job, and the routes of a remote worker. */
import * as z from "zod";
import { forbidden, invalid, SvcError } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { hasRole, keptOf, type Principal } from "../../model/roles.ts";
import { STEP_STATUSES } from "../../model/run.ts";
import { OVERWRITE_TARGETS } from "../../port/docs.ts";
import { executeRollback } from "../../rollback/execute.ts";
import { getJob, jobView, startJob } from "../../rollback/job.ts";
import { ownOverwrite } from "../../rollback/own.ts";
import type { Overwrite } from "../../rollback/ports.ts";
import { beginCompensation, completeCompensation } from "../../rollback/remote.ts";
import { readRun } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { checkOverwrite, lookoutOf, planFor, throughSurface } from "./rollback/lookout.ts";
import { anyJson, nullable, ofRun, ofStep, runId, text } from "./schemas.ts";

export const undoPlanShape = z.strictObject({
  run_id: z.string(),
  actions: z.array(z.looseObject({ step: z.int(), tool: z.string(), kind: z.string() })),
  fully_reversible: z.boolean(),
});

const jobShape = z.strictObject({
  run_id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_ms: z.int(),
  finished_ms: nullable(z.int()),
  by: z.string(),
  current_step: nullable(z.int()),
  report: z.unknown(),
  error: nullable(z.string()),
});

const startedJob = jobShape.pick({ run_id: true, state: true, started_ms: true, by: true });

export const plan = operation({
  id: "plan",
  summary: "What a rollback of the run would do; changes nothing",
  role: "auditor",
  role_or_owner: true,
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: undoPlanShape,
  errors: { not_found: "unknown run" },
  run: (caller, { run_id }) => planFor(caller, run_id),
});

/** Where the run's own agent has a session or holds the engine, it may look without `self_rollback`. */
export const planOwn = operation({
  id: "plan_own",
  summary: "What a rollback of one's own run would do; changes nothing",
  role: "agent",
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: undoPlanShape,
  errors: { not_found: "unknown run, or another agent's" },
  run: (caller, { run_id }) => planFor(caller, run_id),
});

const why = text(LIMITS.reason_chars).meta({ description: "why a step is undone over a conflict" });
const currentHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, "must be the current_hash that the plan shows for the step")
  .meta({ description: "what the plan showed for the step that is overwritten" });
const overwriteTarget = z.enum(OVERWRITE_TARGETS).meta({
  description:
    "what is restored: the state before the step's call (the default), or before_run, the state before this run changed the resource; that undoes the run's older steps on it too",
});
/** The word that lets one step be undone over a conflict. */
export const overwriteFields = {
  overwrite: z
    .int()
    .min(0, "must be a step number")
    .optional()
    .meta({ description: "a step to undo although it conflicts" }),
  reason: why.optional(),
  current_hash: currentHash.optional(),
  to: overwriteTarget.optional(),
};

/** Undefined where no step is named; throws where the word is not whole. */
export function overwriteOf(
  step: number | undefined,
  { reason, current_hash, to }: { [K in keyof Omit<Overwrite, "step">]?: Overwrite[K] | undefined },
): Overwrite | undefined {
  if (step === undefined) {
    if (reason === undefined && current_hash === undefined && to === undefined) return undefined;
    throw invalid("overwrite: which step? reason and current_hash are for the one that is overwritten");
  }
  if (reason === undefined || reason.trim() === "")
    throw invalid("reason: is required to overwrite what was written since: say why");
  if (current_hash === undefined)
    throw invalid(
      "current_hash: is required to overwrite: look at the plan and send what it shows for the step",
    );
  return { step, reason, current_hash, ...(to === undefined ? {} : { to }) };
}

const rollbackFields = {
  run_id: runId,
  retries: z
    .int()
    .min(LIMITS.rollback_retries.min, "from 1 to 10")
    .max(LIMITS.rollback_retries.max, "from 1 to 10")
    .optional(),
  approve_compensations: z.boolean().optional(),
  ...overwriteFields,
};
const stale =
  "a rollback of this run is under way, or what is to be overwritten is no longer as the plan showed";

export const rollbackPlanned = z.strictObject({ dry_run: z.literal(true), plan: undoPlanShape });
export const rollbackStarted = z.strictObject({ job: startedJob });

export const startRollback = operation({
  id: "start_rollback",
  summary: "Roll the run back with the server's compensator; without confirm, show the plan",
  role: "operator",
  role_or_owner: true,
  input: z.strictObject({ ...rollbackFields, confirm: z.boolean().optional() }),
  output: z.union([rollbackPlanned, rollbackStarted]),
  errors: { not_found: "unknown run, or no compensator on this server", conflict: stale },
  run_of: ({ run_id }) => run_id,
  async run(caller, { run_id, confirm, overwrite: step, reason, current_hash, to, ...body }) {
    const { app, principal } = caller;
    await readRun(app, run_id);
    const overwrite = overwriteOf(step, { reason, current_hash, to });
    const own = !hasRole(principal, "operator");
    if (own && overwrite !== undefined) throw ownOverwrite();
    if (own && body.approve_compensations === true)
      throw forbidden(
        "approve_compensations: the rollback of one's own run waits for approvals; leave it out",
      );
    if (confirm !== true) return { dry_run: true as const, plan: await planFor(caller, run_id) };
    if (app.jobTools === null) {
      throw new SvcError(
        "not_enabled",
        "rollback jobs are not enabled on this server: set SVC_COMPENSATOR_CMD, or use svc rollback",
      );
    }
    if (overwrite !== undefined) await checkOverwrite(app, run_id, overwrite, lookoutOf(app));
    const input = { ...body, overwrite, by: principal.name, authority: keptOf(principal), own };
    const { job, done } = await startJob(app.core, run_id, input, app.jobTools);
    app.background.track(done.then(() => {}));
    const { state, started_ms, by } = job;
    return { job: { run_id, state, started_ms, by } };
  },
});

/** For surfaces that undo by themselves: the gateway's tool, the command line on its data, the embedded library. */
export const rollbackHere = operation({
  id: "rollback_here",
  summary: "Roll the run back with what the surface undoes with, and answer with the report",
  role: "operator",
  input: z.strictObject(rollbackFields),
  output: z.looseObject({ complete: z.boolean() }),
  errors: { not_found: "unknown run, or nothing to undo with", conflict: stale },
  run_of: ({ run_id }) => run_id,
  waits: true,
  feature: (_, caller) => (caller?.undo === undefined ? "this surface has nothing to undo with" : null),
  async run(caller, { run_id, overwrite: step, reason, current_hash, to, ...body }) {
    const { app, principal, undo } = caller;
    await readRun(app, run_id);
    const overwrite = overwriteOf(step, { reason, current_hash, to });
    if (overwrite !== undefined) await checkOverwrite(app, run_id, overwrite, throughSurface(undo));
    return executeRollback(app.core, run_id, {
      stop: app.background.signal,
      ...undo!,
      ...body,
      overwrite,
      actor: principal.name,
      authorised: () => isStillOperator(caller),
    });
  },
});

/** A rollback may take long; each of its steps needs the role as it is by then. */
async function isStillOperator({ principal, again }: Caller): Promise<boolean> {
  try {
    return hasRole((await again?.()) ?? principal, "operator");
  } catch {
    return false;
  }
}

export const getRollback = operation({
  id: "get_rollback",
  summary: "Progress and result of the run's rollback job",
  role: "auditor",
  role_or_owner: true,
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: z.strictObject({ job: jobShape }),
  errors: { not_found: "unknown run, or one without a rollback job" },
  async run({ app }, { run_id }) {
    return { job: jobView(await getJob(app.core.store, run_id)) };
  },
});

/** Without the role it is the run's own agent, whose word counts as such. */
const workerOf = (principal: Principal) => ({ ...principal, self_reports: !hasRole(principal, "operator") });

const coveredSteps = z.array(z.int()).optional().meta({
  description: "newer steps that are undone with it, where what was there before the run is restored",
});
const undoTask = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  tool: z.string(),
  original_tool: z.string(),
  args: z.unknown(),
  idempotency_key: z.string(),
  covers: coveredSteps,
  verification: nullable(z.strictObject({ tool: z.string(), arguments: z.unknown(), expect: z.unknown() })),
});
/** All is already as before the call: recorded as undone, and nothing is to be called. */
const alreadyUndone = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  status: z.literal("compensated"),
  covers: coveredSteps,
});

export const beginUndo = operation({
  id: "begin_compensation",
  summary: "Begin the undo of a step as a remote worker",
  role: "operator",
  role_or_owner: true,
  input: z.strictObject({
    ...ofStep.shape,
    current: z.unknown().optional().meta({ description: "what the plan's `before` of the step shows now" }),
    overwrite: z.boolean().optional(),
    reason: why.optional(),
    current_hash: currentHash.optional(),
    to: overwriteTarget.optional(),
  }),
  run_of: ({ run_id }) => run_id,
  output: z.union([undoTask, alreadyUndone]),
  errors: {
    not_found: "unknown run or step",
    conflict:
      "not its turn, already compensated, not compensable, awaiting approval, or changed since the call",
  },
  run: ({ app, principal }, { run_id, step, current, overwrite, ...word }) =>
    beginCompensation(app.core, workerOf(principal), run_id, step, {
      current: current as Json | undefined,
      overwrite: overwriteOf(overwrite === true ? step : undefined, word),
    }),
});

export const completeUndo = operation({
  id: "complete_compensation",
  summary: "Report how the undo of a step ended",
  role: "operator",
  role_or_owner: true,
  input: z.strictObject({
    ...ofStep.shape,
    status: z.enum(["succeeded", "failed"]),
    error: z.string().max(LIMITS.body_bytes).optional(),
    attempts: z.int().min(1).max(1_000_000).optional(),
    observed: anyJson.optional(),
  }),
  output: z.strictObject({
    step: z.int(),
    status: z.enum(STEP_STATUSES),
    unverified: z.literal(true).optional(),
  }),
  errors: { not_found: "unknown run or step", conflict: "not begun by this worker" },
  run_of: ({ run_id }) => run_id,
  run: ({ app, principal }, { run_id, step, ...body }) =>
    completeCompensation(app.core, workerOf(principal), run_id, step, {
      ...body,
      observed: body.observed as Json | undefined,
    }),
});
