/** Loads all data of a run's page. */

import { nextEventLoopTurn } from "../../../child-process/event-loop-slices.ts";
import type { ApprovalView } from "../../../govern/approvals/approval.ts";
import type { RunState } from "../../../govern/runs/run.ts";
import { RunStates } from "../../../govern/runs/run-state.ts";
import { SvcError } from "../../../kernel/errors.ts";
import { listApprovals } from "../../../operations/approvals/approvals.ts";
import { findRun } from "../../../operations/documents.ts";
import { exportRun } from "../../../operations/evidence/export.ts";
import { ledgerOf } from "../../../operations/ledger-reader.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { getRollback, getRollbackPlan as planOp } from "../../../operations/rollback/rollback.ts";
import { getRun } from "../../../operations/runs/runs.ts";
import { getLineage } from "../../../operations/runs/values.ts";
import type { RollbackPlan } from "../../../rollback/plan/plan.ts";
import type { PageContext } from "../../page-context.ts";
import { type CheckedRecord, checkRecordLines } from "../../parts/records.ts";

export type LineageView = ResponseOf<typeof getLineage>;
export type RunView = ResponseOf<typeof getRun>;
export type StepView = RunView["steps"][number];
export type JobView = ResponseOf<typeof getRollback>["job"];

export const TRAIL_PAGE = 200;

export interface RunPageData {
  run_id: string;
  /** Null once retention has deleted the run's working data. */
  run: RunView | null;
  /** As in the list of runs. */
  state: RunState | null;
  plan: RollbackPlan | null;
  job: JobView | null;
  approvals: ApprovalView[];
  lineage: LineageView;
  trail: CheckedRecord[];
  trail_from: number;
  trail_more: boolean;
}

/** Throws `not_found` if neither the store nor the ledger knows the run. */
export async function readRunPage(ctx: PageContext): Promise<RunPageData> {
  const id = ctx.params["id"]!;
  const trail_from = Math.max(0, Number.parseInt(ctx.query["trail"] ?? "0", 10) || 0);
  const run = await orMissing(ctx.call(getRun, { run_id: id }));
  // For a deleted run, this call checks that the user is allowed to see its trail.
  if (run === null) await ctx.call(exportRun, { run_id: id });
  // A run can have very many steps, so let other requests run in between.
  await nextEventLoopTurn();
  const lines = await trailLines(ctx, id, trail_from);
  await nextEventLoopTurn();
  const [plan, job, approvals, lineage] =
    run === null
      ? [null, null, [], { edges: [] }]
      : await Promise.all([
          ctx.call(planOp, { run_id: id }),
          orMissing(ctx.call(getRollback, { run_id: id })),
          ctx.call(listApprovals, { run_id: id, limit: 100 }).then((found) => found.approvals),
          ctx.call(getLineage, { run_id: id }),
        ]);
  const doc = run === null ? undefined : await findRun(ctx.app, id);
  return {
    run_id: id,
    run,
    state: doc === undefined ? null : await new RunStates(ctx.app.core).stateOf(doc),
    plan,
    job: job?.job ?? null,
    approvals,
    lineage,
    trail: checkRecordLines(lines.slice(0, TRAIL_PAGE)),
    trail_from,
    trail_more: lines.length > TRAIL_PAGE,
  };
}

/** Returns one page of the run's records. The store pages by ledger position, the page by position within the run. */
async function trailLines(ctx: PageContext, run_id: string, skip: number): Promise<string[]> {
  const ledger = ledgerOf(ctx.app);
  const lines: string[] = [];
  let left = skip;
  let from: number | undefined;
  while (lines.length <= TRAIL_PAGE) {
    const page = await ledger.records({ run_id, from, limit: 1_000 });
    lines.push(...page.slice(left));
    left = Math.max(0, left - page.length);
    if (page.length < 1_000) break;
    from = (JSON.parse(page.at(-1)!) as { seq: number }).seq + 1;
  }
  return lines.slice(0, TRAIL_PAGE + 1);
}

async function orMissing<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof SvcError && error.code === "not_found") return null;
    throw error;
  }
}
