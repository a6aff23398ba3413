/** Finds this process's reader of the current state, and checks an overwrite decision against that state. */
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import { hasRole } from "../../govern/roles.ts";
import { conflictError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { type DependentStep, findDependents } from "../../rollback/cascade/dependents.ts";
import type { StateReader } from "../../rollback/plan/current-state.ts";
import { loadPlan } from "../../rollback/plan/load-run.ts";
import type { OverwriteDecision } from "../../rollback/ports.ts";
import { loadTreePlan, type TreePlan } from "../../rollback/tree/plan-tree.ts";
import type { ServiceApp } from "../app.ts";
import { readRun } from "../pipeline/access.ts";
import type { ApiCaller } from "../pipeline/operation.ts";
import { commandReader } from "./job-tools.ts";

/** Null if this process has neither a reader command nor upstreams. */
export function stateReaderFor({ jobTools, stateReader, settings }: ServiceApp): StateReader | null {
  if (stateReader !== undefined) return stateReader;
  if (jobTools?.reader) return { reader: jobTools.reader, objection: jobTools.objection };
  const reader = commandReader(settings);
  return reader && { reader };
}

/** The plan for this caller. Earlier values are shown only to operators and admins. */
export async function planFor(
  { app, principal, undo }: ApiCaller,
  run_id: string,
  { children, dependents }: { children?: boolean | undefined; dependents?: boolean | undefined } = {},
): Promise<PlanWithDependents> {
  const run = await readRun(app, run_id);
  const { store, env } = app.core;
  const stateReader = surfaceStateReader(undo) ?? stateReaderFor(app);
  const mask = !hasRole(principal, "operator");
  const options = { now_ms: env.now(), mask, stateReader, pace: runInSlices };
  const plan: TreePlan = await (children === true
    ? loadTreePlan(store, run, options)
    : loadPlan(store, run_id, options));
  return dependents === true ? { ...plan, ...(await dependentsOf(app, plan)) } : plan;
}

export interface PlanWithDependents extends TreePlan {
  dependents?: DependentStep[];
  dependents_cut?: true;
}

/** Calls of other runs that were built on the steps that the plan undoes. */
async function dependentsOf(
  { core: { store, env } }: ServiceApp,
  plan: TreePlan,
): Promise<Pick<PlanWithDependents, "dependents" | "dependents_cut">> {
  const roots = [plan, ...(plan.children ?? [])].flatMap(({ run_id, actions }) =>
    actions.filter(({ kind }) => kind === "compensate").map(({ step }) => ({ run_id, step })),
  );
  const whole = [plan, ...(plan.children ?? [])].map(({ run_id }) => run_id);
  const { dependents, cut } = await findDependents(store, { roots, whole }, env.now());
  return { dependents, ...(cut ? { dependents_cut: true as const } : {}) };
}

/** Null if the surface has no reader. */
export function surfaceStateReader(undo: ApiCaller["undo"]): StateReader | null {
  return undo?.reader ? { reader: undo.reader, objection: undo.objection } : null;
}

/** Throws a conflict if the current state differs from the one the operator saw, or cannot be read. */
export async function checkOverwrite(
  { core: { store, env } }: ServiceApp,
  run_id: string,
  { step, current_hash }: OverwriteDecision,
  stateReader: StateReader | null,
): Promise<void> {
  const { actions } = await loadPlan(store, run_id, { now_ms: env.now(), stateReader, pace: runInSlices });
  const action = actions.find((one) => one.step === step);
  if (action === undefined) throw notFoundError(`overwrite: run ${run_id} has no active step ${step}`);
  if (action.kind !== "compensate" || action.before === undefined)
    throw invalidError(`overwrite: step ${step} is ${action.kind}; there is nothing to overwrite`);
  if (action.current_hash === undefined)
    throw conflictError(
      "not_readable_here",
      `conflict: not checked: the state that step ${step} would overwrite cannot be read from here`,
    );
  if (action.current_hash !== current_hash)
    throw conflictError(
      "plan_outdated",
      `conflict: the state for step ${step} has changed since the plan; check the plan again`,
      { conflict: true, current_hash: action.current_hash },
    );
}
