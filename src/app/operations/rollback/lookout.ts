/** Who can look, from here, at what the tools of a run show now; and whether a person's word still fits that. */
import { conflict, invalid, notFound } from "../../../kernel/errors.ts";
import { hasRole } from "../../../model/roles.ts";
import { doInTurns } from "../../../process/turns.ts";
import { loadPlan } from "../../../rollback/load.ts";
import type { Lookout } from "../../../rollback/look.ts";
import type { RollbackPlan } from "../../../rollback/plan.ts";
import type { Overwrite } from "../../../rollback/ports.ts";
import type { App } from "../../app.ts";
import { readRun } from "../../door/access.ts";
import type { Caller } from "../../door/operation.ts";
import { commandReader } from "./job-tools.ts";

/** Null where this process has neither a reader command nor upstreams. */
export function lookoutOf({ jobTools, lookout, settings }: App): Lookout | null {
  if (lookout !== undefined) return lookout;
  if (jobTools?.reader) return { reader: jobTools.reader, objection: jobTools.objection };
  const reader = commandReader(settings);
  return reader && { reader };
}

/** The plan as the caller may see it: what was there is shown from the role operator on. */
export async function planFor({ app, principal, undo }: Caller, run_id: string): Promise<RollbackPlan> {
  await readRun(app, run_id);
  const { store, env } = app.core;
  const lookout = throughSurface(undo) ?? lookoutOf(app);
  const mask = !hasRole(principal, "operator");
  return loadPlan(store, run_id, { now_ms: env.now(), mask, lookout, pace: doInTurns });
}

/** Null where the surface has no reader of its own. */
export function throughSurface(undo: Caller["undo"]): Lookout | null {
  return undo?.reader ? { reader: undo.reader, objection: undo.objection } : null;
}

/** Throws a conflict where what is there is no longer what the person saw, or cannot be looked at. */
export async function checkOverwrite(
  { core: { store, env } }: App,
  run_id: string,
  { step, current_hash }: Overwrite,
  lookout: Lookout | null,
): Promise<void> {
  const { actions } = await loadPlan(store, run_id, { now_ms: env.now(), lookout, pace: doInTurns });
  const action = actions.find((one) => one.step === step);
  if (action === undefined) throw notFound(`overwrite: run ${run_id} has no standing step ${step}`);
  if (action.kind !== "compensate" || action.before === undefined)
    throw invalid(`overwrite: step ${step} is ${action.kind}, with nothing that could be overwritten`);
  if (action.current_hash === undefined)
    throw conflict(
      "not_readable_here",
      `conflict: not checked: what step ${step} would overwrite cannot be read from here`,
    );
  if (action.current_hash !== current_hash)
    throw conflict(
      "plan_outdated",
      `conflict: what is there now is no longer what the plan showed for step ${step}; look at the plan again`,
      { conflict: true, current_hash: action.current_hash },
    );
}
