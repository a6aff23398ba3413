/** Everything that a run's page shows, read in one go. */
import type { AnswerTo } from "../../app/door/operation.ts";
import { listApprovals } from "../../app/operations/approvals.ts";
import { exportRun } from "../../app/operations/export.ts";
import { getRollback, plan as planOp } from "../../app/operations/rollback.ts";
import { getRun } from "../../app/operations/runs.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { ApprovalView } from "../../model/approval.ts";
import { nextTurn } from "../../process/turns.ts";
import type { RollbackPlan } from "../../rollback/plan.ts";
import type { Ctx } from "../ctx.ts";
import { type Trailed, trailOf } from "../parts/records.ts";

export type RunView = AnswerTo<typeof getRun>;
export type StepView = RunView["steps"][number];
export type JobView = AnswerTo<typeof getRollback>["job"];

export const TRAIL_PAGE = 200;

export interface RunPageData {
  run_id: string;
  /** Null once retention has deleted the run's working data. */
  run: RunView | null;
  plan: RollbackPlan | null;
  job: JobView | null;
  approvals: ApprovalView[];
  trail: Trailed[];
  trail_from: number;
  trail_more: boolean;
}

/** Throws not_found for a run of which nothing is known at all. */
export async function readRunPage(ctx: Ctx): Promise<RunPageData> {
  const id = ctx.params["id"]!;
  const trail_from = Math.max(0, Number.parseInt(ctx.query["trail"] ?? "0", 10) || 0);
  const run = await orMissing(ctx.call(getRun, { run_id: id }));
  // Both ends of the trail must be asked as this person; the operation also knows runs that were deleted.
  if (run === null) await ctx.call(exportRun, { run_id: id });
  // A run may have very many steps: what is read of it is read a part at a time.
  await nextTurn();
  const lines = await trailLines(ctx, id, trail_from);
  await nextTurn();
  const [plan, job, approvals] =
    run === null
      ? [null, null, []]
      : await Promise.all([
          ctx.call(planOp, { run_id: id }),
          orMissing(ctx.call(getRollback, { run_id: id })),
          ctx.call(listApprovals, { run_id: id, limit: 100 }).then((found) => found.approvals),
        ]);
  return {
    run_id: id,
    run,
    plan,
    job: job?.job ?? null,
    approvals,
    trail: trailOf(lines.slice(0, TRAIL_PAGE)),
    trail_from,
    trail_more: lines.length > TRAIL_PAGE,
  };
}

/** A page of the run's own records; the store counts by ledger position, the page by the run's own number. */
async function trailLines(ctx: Ctx, run_id: string, skip: number): Promise<string[]> {
  const { store } = ctx.app.core;
  const lines: string[] = [];
  let left = skip;
  let from: number | undefined;
  while (lines.length <= TRAIL_PAGE) {
    const page = await store.records({ run_id, from, limit: 1_000 });
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
