/** Runs: opening, listing and reading them. */
import * as z from "zod";
import { newRun, openRunUnit } from "../../engine/open-run.ts";
import { conflict, invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { dependencies } from "../../model/dependencies.ts";
import { hasRole } from "../../model/roles.ts";
import { MODES, type RunDoc, type StepDoc, UNKNOWN } from "../../model/run.ts";
import { rowPages } from "../../port/pages.ts";
import type { Store } from "../../port/store.ts";
import { wholeOf } from "../../store/confined.ts";
import { readRun } from "../door/access.ts";
import { operation } from "../door/operation.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { ofRun, paging, runId, runView, text } from "./schemas.ts";

export const openRun = operation({
  id: "open_run",
  summary: "Open a run with a fixed scope of permissions",
  role: "agent",
  within_tenant: true,
  input: z.strictObject({
    permissions: z
      .array(text(LIMITS.permission_chars))
      .max(LIMITS.permissions, `at most ${LIMITS.permissions} permissions`),
    run_id: runId.optional(),
    mode: z.enum(MODES).optional(),
    reason: z.string().max(LIMITS.reason_chars).optional(),
  }),
  output: z.strictObject({ run_id: z.string(), mode: z.enum(MODES), scope_seal: z.string() }),
  errors: { conflict: "the run id exists" },
  async run({ app, principal }, body) {
    const run = newRun(app.core, principal, body);
    // Ids are the ledger's: one that another tenant has is taken, too.
    const store = wholeOf(app.core.store);
    await (body.run_id === undefined ? store.transact(openRunUnit(run)) : storeNamed(store, run));
    return { run_id: run.run_id, mode: run.mode, scope_seal: run.scope.seal };
  },
});

/** Undo keys follow from the run id: one that retention deleted must not come back as another run. */
export async function storeNamed(store: Store, run: RunDoc): Promise<RunDoc> {
  const [record] = await store.records({ run_id: run.run_id, limit: 1 });
  if (record !== undefined) throw conflict("run_exists", `run ${run.run_id} already exists on the ledger`);
  return store.transact(openRunUnit(run));
}

export const listRuns = operation({
  id: "list_runs",
  summary: "List run ids, oldest first; an agent sees its own",
  role: "agent",
  within_tenant: true,
  any_role: true,
  input: z.strictObject(paging),
  output: z.strictObject({
    runs: z.array(z.string()),
    next_cursor: z.string().optional(),
  }),
  async run({ app, principal }, query) {
    const all = hasRole(principal, "auditor");
    const limit = query.limit ?? LIMITS.page_max;
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

export const getRun = operation({
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
    return runBody(run, await allSteps(app.core.store, run.run_id));
  },
});

async function allSteps(store: Store, run_id: string): Promise<StepDoc[]> {
  const steps: StepDoc[] = [];
  for await (const rows of rowPages(store, "steps", { owner: run_id }))
    for (const row of rows) steps.push(row.doc);
  return steps;
}

function runBody(run: RunDoc, steps: readonly StepDoc[]) {
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

export function assertUnique(numbers: readonly number[], what: string): void {
  if (new Set(numbers).size !== numbers.length) throw invalid(`${what}: a step is named twice`);
}
