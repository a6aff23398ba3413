/** What the interface shows of a run and its steps. */

import { dependencies } from "../model/dependencies.ts";
import { type RunDoc, type StepDoc, UNKNOWN } from "../model/run.ts";
import type { Store } from "../store/port.ts";

export async function allSteps(store: Store, run_id: string): Promise<StepDoc[]> {
  const steps: StepDoc[] = [];
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await store.list("steps", { owner: run_id, limit: 1_000, after });
    for (const row of rows) steps.push(row.doc);
    const last = rows[rows.length - 1];
    if (rows.length < 1_000 || last === undefined) return steps;
    after = { sort: last.sort, key: last.key };
  }
}

export function runBody(run: RunDoc, steps: readonly StepDoc[]) {
  const needs = dependencies(steps);
  return {
    run_id: run.run_id,
    actor: run.actor,
    mode: run.mode,
    tenant: run.tenant,
    environment: run.environment,
    reason: run.reason,
    scope: run.scope,
    created_ms: run.created_ms,
    steps: steps.map((step) => stepBody(step, needs(step))),
    unresolved: steps.filter((step) => UNKNOWN.has(step.status)).map((step) => step.step),
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
    ...(step.closes_ms === undefined ? {} : { closes_ms: step.closes_ms }),
  };
}
