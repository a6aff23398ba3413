/** Everything that a run's page shows, read in one go. */
import { listApprovals } from "../../app/operations/approvals.ts";
import { exportRun } from "../../app/operations/export.ts";
import { getRollback, plan as planOp } from "../../app/operations/rollback.ts";
import { getRun } from "../../app/operations/runs.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { ApprovalView } from "../../model/approval.ts";
import type { Mode, StepStatus } from "../../model/run.ts";
import type { RollbackPlan } from "../../rollback/plan.ts";
import type { RollbackReport } from "../../rollback/report.ts";
import type { Ctx } from "../ctx.ts";
import { type Trailed, trailOf } from "../parts/records.ts";

export interface StepView {
  step: number;
  tool: string;
  reason: string;
  effect: string | null;
  status: StepStatus;
  depends_on: number[];
  compensation_tool: string | null;
  handle: string | null;
  error: string | null;
  manifest_version: string | null;
  risk_score: number;
  args_hash: string;
  result_hash: string | null;
  intended_ms: number;
  finished_ms: number | null;
}

export interface RunView {
  run_id: string;
  actor: string;
  mode: Mode;
  tenant: string | null;
  environment: string | null;
  reason: string | null;
  scope: { permissions: string[]; seal: string };
  created_ms: number;
  steps: StepView[];
  unresolved: number[];
}

export interface JobView {
  run_id: string;
  state: "running" | "done" | "failed";
  started_ms: number;
  finished_ms: number | null;
  by: string;
  current_step: number | null;
  report: RollbackReport | null;
  error: string | null;
}

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
  const lines = await trailLines(ctx, id, trail_from);
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
