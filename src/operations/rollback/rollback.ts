/** Rollback: the plan, the server's job, and the routes of a remote worker. */
import * as z from "zod";
import { OVERWRITE_TARGETS } from "../../govern/port/docs.ts";
import { type CallerPrincipal, hasRole, toStoredPrincipal } from "../../govern/roles.ts";
import { type RunDoc, STEP_STATUSES } from "../../govern/runs/run.ts";
import { passkeyRequired } from "../../govern/signing/signature.ts";
import { forbiddenError, invalidError, notFoundError, SvcError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { beginCompensation, completeCompensation } from "../../rollback/backend/remote-worker.ts";
import { type ChosenStep, executeCascade } from "../../rollback/cascade/roll-back-with.ts";
import { getJob, jobView, startJob } from "../../rollback/job.ts";
import type { OverwriteDecision } from "../../rollback/ports.ts";
import { executeTreeRollback } from "../../rollback/tree/roll-back-tree.ts";
import { executeRollback, type RollbackOptions } from "../../rollback/undo/execute.ts";
import { selfOverwriteError } from "../../rollback/undo/self-rollback.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { dependentShape } from "../contain/report.ts";
import { readRun } from "../pipeline/access.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { anyJson, boundedText, ofRun, ofStep, runId } from "../schemas.ts";
import { checkOverwrite, planFor, stateReaderFor, surfaceStateReader } from "./state-reader.ts";

const onePlan = {
  run_id: z.string(),
  actions: z.array(z.looseObject({ step: z.int(), tool: z.string(), kind: z.string() })),
  fully_reversible: z.boolean(),
};
export const undoPlanShape = z.strictObject({
  ...onePlan,
  children: z.array(z.strictObject(onePlan)).optional().meta({
    description: "plans of all runs below, newest first; present if the request covers them",
  }),
  dependents: z.array(dependentShape).optional().meta({
    description: "calls of other runs that were built on the steps to be undone, newest first",
  }),
  dependents_cut: z.literal(true).optional().meta({
    description: "present if there are more such calls than one rollback can cover",
  }),
});
const withChildren = z.boolean().meta({ description: "true (1 in a query) covers all runs below too" });
const withDependents = z
  .boolean()
  .meta({ description: "true (1 in a query) adds the calls of other runs that were built on this one's" });
const planInput = z.strictObject({
  ...ofRun.shape,
  children: withChildren.optional(),
  dependents: withDependents.optional(),
});

const jobShape = z.strictObject({
  run_id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  started_ms: z.int(),
  finished_ms: nullableSchema(z.int()),
  by: z.string(),
  current_step: nullableSchema(z.int()),
  report: z.unknown(),
  error: nullableSchema(z.string()),
});

const startedJob = jobShape.pick({ run_id: true, state: true, started_ms: true, by: true });

export const getRollbackPlan = defineOperation({
  id: "plan",
  summary: "Preview a rollback of the run; changes nothing",
  role: "auditor",
  role_or_owner: true,
  input: planInput,
  run_of: ({ run_id }) => run_id,
  output: undoPlanShape,
  errors: { not_found: "unknown run" },
  run(caller, { run_id, ...covers }) {
    if (covers.dependents === true && !hasRole(caller.principal, "auditor"))
      throw forbiddenError("dependents: needs the auditor role, because it names other agents' runs");
    return planFor(caller, run_id, covers);
  },
});

/** For surfaces that serve the run's own agent, such as the gateway or the library. It needs no `self_rollback`. */
export const getOwnRollbackPlan = defineOperation({
  id: "plan_own",
  summary: "Preview a rollback of your own run; changes nothing",
  role: "agent",
  input: planInput.omit({ dependents: true }),
  run_of: ({ run_id }) => run_id,
  output: undoPlanShape,
  errors: { not_found: "unknown run, or another agent's" },
  run: (caller, { run_id, children }) => planFor(caller, run_id, { children }),
});

const why = boundedText(SERVICE_LIMITS.reason_chars).meta({
  description: "why a step is undone despite a conflict",
});
const currentHash = z
  .string()
  .regex(/^sha256:[0-9a-f]{64}$/, "must be the current_hash that the plan shows for the step")
  .meta({ description: "the state hash that the plan shows for the step" });
const overwriteTarget = z.enum(OVERWRITE_TARGETS).meta({
  description:
    "state to restore: before this call (default), or before_run, which also undoes older steps of this run on the resource",
});
/** Input fields of a decision to undo one step despite a conflict. */
export const overwriteFields = {
  overwrite: z
    .int()
    .min(0, "must be a step number")
    .optional()
    .meta({ description: "a step to undo despite a conflict" }),
  reason: why.optional(),
  current_hash: currentHash.optional(),
  to: overwriteTarget.optional(),
};

/** Undefined if no step is named. Throws if the decision is incomplete. */
export function overwriteOf(
  step: number | undefined,
  {
    reason,
    current_hash,
    to,
  }: { [K in keyof Omit<OverwriteDecision, "step">]?: OverwriteDecision[K] | undefined },
): OverwriteDecision | undefined {
  if (step === undefined) {
    if (reason === undefined && current_hash === undefined && to === undefined) return undefined;
    throw invalidError("overwrite: is required with reason, current_hash or to; name the step to undo");
  }
  if (reason === undefined || reason.trim() === "")
    throw invalidError("reason: is required to overwrite later changes");
  if (current_hash === undefined)
    throw invalidError("current_hash: is required to overwrite; take it from the step in the plan");
  return { step, reason, current_hash, ...(to === undefined ? {} : { to }) };
}

export const chosenSteps = z
  .array(z.strictObject({ run_id: runId, step: z.int().min(0, "must be a step number") }))
  .max(SERVICE_LIMITS.cascade_steps, `at most ${SERVICE_LIMITS.cascade_steps} steps`)
  .meta({ description: "steps of other runs to undo too, such as those that the plan lists as dependents" });

const rollbackFields = {
  run_id: runId,
  retries: z
    .int()
    .min(SERVICE_LIMITS.rollback_retries.min, "from 1 to 10")
    .max(SERVICE_LIMITS.rollback_retries.max, "from 1 to 10")
    .optional(),
  approve_compensations: z.boolean().optional(),
  skip: z
    .array(z.string().min(1).max(4_096))
    .max(1_000)
    .optional()
    .meta({ description: "full paths of files and directories that no undo touches" }),
  children: withChildren.optional(),
  with: chosenSteps.optional(),
  ...overwriteFields,
};

interface Covered {
  children?: boolean | undefined;
  with?: readonly ChosenStep[] | undefined;
}

function assertOneRun({ children, with: chosen }: Covered, overwrite: OverwriteDecision | undefined): void {
  if (children === true && overwrite !== undefined)
    throw invalidError("overwrite: names a step of this run alone; omit children");
  if (chosen !== undefined && overwrite !== undefined)
    throw invalidError("overwrite: names a step of this run alone; omit with");
  if (chosen !== undefined && children === true)
    throw invalidError("with: cannot be combined with children; name the steps of runs below in with");
}
const stale =
  "a rollback of one of these runs is in progress, or the state to overwrite differs from the plan";

/**
 * Throws not_found for steps that do not exist or belong to another tenant than the run, because everybody in its
 * tenant can read the job's report.
 */
async function assertChosen(
  app: ServiceApp,
  { tenant }: Pick<RunDoc, "tenant">,
  chosen: readonly ChosenStep[] = [],
): Promise<void> {
  const runs = new Map<string, number>();
  for (const { run_id, step } of chosen) {
    const known = runs.get(run_id) ?? (await countSteps(app, tenant, run_id));
    runs.set(run_id, known);
    if (step >= known) throw notFoundError(`with: run ${run_id} has no step ${step}`);
  }
}

async function countSteps(app: ServiceApp, tenant: string | null, run_id: string): Promise<number> {
  const run = await readRun(app, run_id);
  if (run.tenant !== tenant) throw notFoundError(`with: run ${run_id} belongs to another tenant`);
  return run.next_step;
}

export const rollbackPlanned = z.strictObject({ dry_run: z.literal(true), plan: undoPlanShape });
export const rollbackStarted = z.strictObject({ job: startedJob });

/** Refuses to approve all undos at once if each approval has to be signed. */
function assertMayApproveAll({ core }: ServiceApp, all: boolean | undefined): void {
  if (all === true && core.rules().policy.approvals.signed === true) throw passkeyRequired();
}

export const startRollback = defineOperation({
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
    const run = await readRun(app, run_id);
    const overwrite = overwriteOf(step, { reason, current_hash, to });
    assertOneRun(body, overwrite);
    const own = !hasRole(principal, "operator");
    if (own && body.with !== undefined)
      throw forbiddenError("with: steps of other runs need the operator role; omit this field");
    await assertChosen(app, run, body.with);
    if (confirm !== true && (body.children === true || body.with !== undefined))
      return {
        dry_run: true as const,
        plan: await planFor(caller, run_id, { ...body, dependents: body.with && true }),
      };
    if (own && overwrite !== undefined) throw selfOverwriteError();
    if (own && body.approve_compensations === true)
      throw forbiddenError(
        "approve_compensations: a rollback of your own run waits for approvals; omit this field",
      );
    assertMayApproveAll(app, body.approve_compensations);
    if (confirm !== true) return { dry_run: true as const, plan: await planFor(caller, run_id) };
    if (app.jobTools === null) {
      throw new SvcError(
        "not_enabled",
        "rollback jobs are not enabled on this server: set SVC_COMPENSATOR_CMD, or use svc rollback",
      );
    }
    if (overwrite !== undefined) await checkOverwrite(app, run_id, overwrite, stateReaderFor(app));
    const input = { ...body, overwrite, by: principal.name, authority: toStoredPrincipal(principal), own };
    const { job, done } = await startJob(app.core, run_id, input, app.jobTools);
    app.background.track(done.then(() => {}));
    const { state, started_ms, by } = job;
    return { job: { run_id, state, started_ms, by } };
  },
});

/** For surfaces with their own undo tools: the gateway, the CLI on local data, the embedded library. */
export const rollbackHere = defineOperation({
  id: "rollback_here",
  summary: "Roll the run back with the surface's own tools, and return the report",
  role: "operator",
  input: z.strictObject(rollbackFields),
  output: z.looseObject({ complete: z.boolean() }),
  errors: { not_found: "unknown run, or no undo tools", conflict: stale },
  run_of: ({ run_id }) => run_id,
  waits: true,
  feature: (_, caller) => (caller?.undo === undefined ? "this surface has no undo tools" : null),
  async run(caller, { run_id, overwrite: step, reason, current_hash, to, children, with: chosen, ...body }) {
    const { app, principal, undo } = caller;
    const run = await readRun(app, run_id);
    assertMayApproveAll(app, body.approve_compensations);
    const overwrite = overwriteOf(step, { reason, current_hash, to });
    assertOneRun({ children, with: chosen }, overwrite);
    await assertChosen(app, run, chosen);
    if (overwrite !== undefined) await checkOverwrite(app, run_id, overwrite, surfaceStateReader(undo));
    const asked: RollbackOptions = {
      stop: app.background.signal,
      ...undo!,
      ...body,
      overwrite,
      actor: principal.name,
      authorised: () => isStillOperator(caller),
    };
    if (chosen !== undefined) return executeCascade(app.core, run_id, { ...asked, with: chosen });
    return (children === true ? executeTreeRollback : executeRollback)(app.core, run_id, asked);
  },
});

/** Checks the role again before each step, because a rollback can take long. */
async function isStillOperator({ principal, again }: ApiCaller): Promise<boolean> {
  try {
    return hasRole((await again?.()) ?? principal, "operator");
  } catch {
    return false;
  }
}

export const getRollback = defineOperation({
  id: "get_rollback",
  summary: "Read the progress and result of the run's rollback job",
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

/** Without the operator role, the caller is the run's own agent, and its results are self-reported. */
const workerOf = (principal: CallerPrincipal) => ({
  ...principal,
  self_reports: !hasRole(principal, "operator"),
});

const coveredSteps = z.array(z.int()).optional().meta({
  description: "newer steps that are undone with it, if the state from before the run is restored",
});
const undoTask = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  tool: z.string(),
  original_tool: z.string(),
  args: z.unknown(),
  idempotency_key: z.string(),
  approval_id: z.string().optional().meta({
    description: "approval that the undo used; you may read its signatures until you report the result",
  }),
  covers: coveredSteps,
  verification: nullableSchema(
    z.strictObject({ tool: z.string(), arguments: z.unknown(), expect: z.unknown() }),
  ),
});
/** Response if the state already equals the one before the call: the step is recorded as undone. */
const alreadyUndone = z.strictObject({
  run_id: z.string(),
  step: z.int(),
  status: z.literal("compensated"),
  covers: coveredSteps,
});

export const beginUndo = defineOperation({
  id: "begin_compensation",
  summary: "Begin the undo of a step as a remote worker",
  role: "operator",
  role_or_owner: true,
  input: z.strictObject({
    ...ofStep.shape,
    current: z
      .unknown()
      .optional()
      .meta({ description: "current result of the plan's `before` read for the step" }),
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
      current: current as JsonValue | undefined,
      overwrite: overwriteOf(overwrite === true ? step : undefined, word),
    }),
});

export const completeUndo = defineOperation({
  id: "complete_compensation",
  summary: "Report the result of a step's undo",
  role: "operator",
  role_or_owner: true,
  input: z.strictObject({
    ...ofStep.shape,
    status: z.enum(["succeeded", "failed"]),
    error: z.string().max(SERVICE_LIMITS.body_bytes).optional(),
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
      observed: body.observed as JsonValue | undefined,
    }),
});
