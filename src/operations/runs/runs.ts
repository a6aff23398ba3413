/** Runs: open, list and read. */

import * as z from "zod";
import type { EngineCore } from "../../govern/core.ts";
import { rowPages } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { type CallerPrincipal, hasRole, seesTenant } from "../../govern/roles.ts";
import { childRunsOf } from "../../govern/runs/child-runs.ts";
import { stepDependencies } from "../../govern/runs/dependencies.ts";
import { isRunOwner, unknownRun } from "../../govern/runs/load-run.ts";
import { newRun, openChildRunUnit, openRunUnit } from "../../govern/runs/open-run.ts";
import {
  countedRun,
  RUN_MODES,
  type RunDoc,
  type StepDoc,
  UNKNOWN_OUTCOME_STATUSES,
} from "../../govern/runs/run.ts";
import { RunStates } from "../../govern/runs/run-state.ts";
import { conflictError, forbiddenError, invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { unconfinedStore } from "../../store/tenant-store.ts";
import type { ServiceApp } from "../app.ts";
import { cutPage, positionOf } from "../cursor.ts";
import { readRun, runFacts } from "../pipeline/access.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, ofRun, pagingFields, runId, runView } from "../schemas.ts";
import { addGivenTexts, assertMayGive, givenTexts } from "./values.ts";

export const openRun = defineOperation({
  id: "open_run",
  summary: "Open a run with a fixed scope of permissions",
  role: "agent",
  within_tenant: true,
  input: z.strictObject({
    permissions: z
      .array(boundedText(SERVICE_LIMITS.permission_chars))
      .max(SERVICE_LIMITS.permissions, `at most ${SERVICE_LIMITS.permissions} permissions`),
    run_id: runId.optional(),
    parent: runId.optional(),
    mode: z.enum(RUN_MODES).optional(),
    reason: z.string().max(SERVICE_LIMITS.reason_chars).optional(),
    given: givenTexts.optional(),
    sandbox: z
      .string()
      .regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hexadecimal")
      .optional(),
  }),
  output: z.strictObject({ run_id: z.string(), mode: z.enum(RUN_MODES), scope_seal: z.string() }),
  errors: { not_found: "unknown parent run, or another agent's", conflict: "the run id exists" },
  async run({ app, principal }, { given = [], ...body }) {
    if (given.length > 0) assertMayGive(principal);
    if (body.sandbox !== undefined && principal.may_sandbox !== true)
      throw forbiddenError("a sandboxed run needs a key with may_sandbox", "may_sandbox_required");
    const parent = body.parent === undefined ? undefined : await ownParent(app, principal, body.parent);
    const run = newRun(app.core, principal, body, parent);
    // Run ids are unique in the entire ledger, so an id of another tenant is taken too.
    const whole = { ...app.core, store: unconfinedStore(app.core.store) };
    await (body.run_id === undefined ? storeRun(whole, run) : createStoredRun(whole, run));
    if (given.length > 0) await addGivenTexts(app.core, run.run_id, principal, given);
    return { run_id: run.run_id, mode: run.mode, scope_seal: run.scope.seal };
  },
});

/** The run that opens a child. Another principal's run does not exist for any caller. */
async function ownParent(app: ServiceApp, principal: CallerPrincipal, run_id: string): Promise<RunDoc> {
  const facts = await runFacts(app, run_id);
  if (facts === undefined || !isRunOwner(facts, principal) || !seesTenant(principal, facts.tenant))
    throw unknownRun(run_id);
  return readRun(app, run_id);
}

export function storeRun(core: EngineCore, run: RunDoc): Promise<RunDoc> {
  const { child_of } = run;
  return core.store.transact(
    child_of === undefined ? openRunUnit(run) : openChildRunUnit(core, run, child_of),
  );
}

/** Undo keys derive from the run id, so the id of a deleted run cannot be used again. */
export async function createStoredRun(core: EngineCore, run: RunDoc): Promise<RunDoc> {
  const [record] = await core.store.records({ run_id: run.run_id, limit: 1 });
  if (record !== undefined)
    throw conflictError("run_exists", `run ${run.run_id} already exists on the ledger`);
  return storeRun(core, run);
}

export const listRuns = defineOperation({
  id: "list_runs",
  summary: "List run ids, oldest first; an agent sees its own",
  role: "agent",
  within_tenant: true,
  any_role: true,
  input: z.strictObject(pagingFields),
  output: z.strictObject({
    runs: z.array(z.string()),
    next_cursor: z.string().optional(),
  }),
  async run({ app, principal }, query) {
    const all = hasRole(principal, "auditor");
    const limit = query.limit ?? SERVICE_LIMITS.page_max;
    const rows = await app.core.store.list("runs", {
      owner: all ? undefined : principal.id,
      limit: limit + 1,
      after: positionOf(query.cursor),
    });
    const { page, next } = cutPage(rows, limit);
    const runs = page.map((row) => row.key);
    return next === null ? { runs } : { runs, next_cursor: next };
  },
});

export const getRun = defineOperation({
  id: "get_run",
  summary: "Read a run with its steps",
  role: "agent",
  any_role: true,
  input: ofRun,
  run_of: ({ run_id }) => run_id,
  output: runView,
  errors: { not_found: "unknown run, or another agent's" },
  async run({ app }, { run_id }) {
    const run = await readRun(app, run_id);
    const { store } = app.core;
    const [steps, trace] = await Promise.all([
      allSteps(store, run.run_id),
      store.get("traces", countedRun(run)),
    ]);
    const body = runBody(run, steps);
    const attention = (await new RunStates(app.core).needsAttention(run)) ? { attention: true as const } : {};
    return { ...body, ...attention, given: trace?.texts, ...(await placeInTree(store, run)) };
  },
});

/** The run's parent and the child runs that it opened; empty for most runs. */
async function placeInTree(store: StateStore, run: RunDoc) {
  const { child_of } = run;
  const children = await childRunsOf(store, run);
  return {
    ...(child_of === undefined ? {} : { parent: child_of.parent }),
    ...(children.length === 0 ? {} : { children }),
  };
}

async function allSteps(store: StateStore, run_id: string): Promise<StepDoc[]> {
  const steps: StepDoc[] = [];
  for await (const rows of rowPages(store, "steps", { owner: run_id }))
    for (const row of rows) steps.push(row.doc);
  return steps;
}

function runBody(run: RunDoc, steps: readonly StepDoc[]) {
  const needs = stepDependencies(steps);
  return {
    run_id: run.run_id,
    actor: run.actor,
    ...(run.acting === undefined ? {} : { acting: [...run.acting] }),
    mode: run.mode,
    tenant: run.tenant,
    environment: run.environment,
    reason: run.reason,
    scope: run.scope,
    created_ms: run.created_ms,
    steps: steps.map((step) => stepBody(step, needs(step))),
    unresolved: steps.filter((step) => UNKNOWN_OUTCOME_STATUSES.has(step.status)).map((step) => step.step),
  };
}

function stepBody(step: StepDoc, depends_on: number[]) {
  return {
    step: step.step,
    tool: step.tool,
    reason: step.reason,
    effect: step.effect,
    status: step.status,
    depends_on,
    compensation_tool: step.compensation_tool,
    handle: step.handle,
    error: step.error,
    manifest_version: step.manifest_version,
    risk_score: step.risk_score,
    args_hash: step.args_hash,
    result_hash: step.result_hash,
    intended_ms: step.intended_ms,
    finished_ms: step.finished_ms,
    ...(step.before_by === undefined ? {} : { before_by: step.before_by }),
    ...(step.before_hash === undefined ? {} : { before_hash: step.before_hash }),
    ...(step.after_hash === undefined ? {} : { after_hash: step.after_hash }),
    ...(step.effect_check === undefined ? {} : { effect_check: step.effect_check }),
    ...(step.effect_check_by === undefined ? {} : { effect_check_by: step.effect_check_by }),
    ...(step.closes_ms === undefined ? {} : { closes_ms: step.closes_ms }),
    ...(step.line === undefined ? {} : { line: step.line }),
  };
}

export function assertUnique(numbers: readonly number[], what: string): void {
  if (new Set(numbers).size !== numbers.length) throw invalidError(`${what}: a step is named twice`);
}
