/**
 * Rolls back a run together with all runs below it: the undos of all of them, newest first. Each run has its own lease
 * and report.
 */
import type { EngineCore } from "../../govern/core.ts";
import { runsBelow } from "../../govern/runs/child-runs.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { LeaseLostError } from "../lease.ts";
import { loadRunDoc } from "../plan/load-run.ts";
import { ledgerPlace, type RunToUndo, rollBackInOrder, type UndoStepFn } from "../plan/multi-run.ts";
import { assembleReport, type ChildReport, type RollbackReport, type TreeReport } from "../plan/report.ts";
import { executeRollback, type RollbackOptions, type RollbackProgress } from "../undo/execute.ts";

/** Limit on rounds over runs that were opened during the rollback. */
const MAX_ROUNDS = 20;

/** The options apply to every run. The lease and `onBegin` belong to the run itself. */
export async function executeTreeRollback(
  core: EngineCore,
  run_id: string,
  options: RollbackOptions,
): Promise<TreeReport> {
  let own: RollbackReport = assembleReport(new Map());
  const children = new Map<string, ChildReport>();
  const undo = async (id: string, turn: UndoStepFn): Promise<void> => {
    if (id === run_id) own = await executeRollback(core, run_id, { ...options, turn });
    else children.set(id, await undoOtherRun(core, id, { ...options, lease: undefined, turn }));
  };
  // The run itself opens first, so that its lease is renewed while it waits for newer undos below it.
  const listed: string[] = [];
  let order: RunToUndo[] = [{ run_id, newest_seq: Number.POSITIVE_INFINITY }];
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const below = await runsBelow(core.store, await loadRunDoc(core.store, run_id));
    const news = below.filter((id) => !listed.includes(id));
    if (round > 0 && news.length === 0) break;
    for (const id of news) order.push({ run_id: id, newest_seq: await newestCall(core, id) });
    listed.push(...news);
    await rollBackInOrder(order, undo);
    order = [];
  }
  const reports = listed.toReversed().flatMap((id) => children.get(id) ?? []);
  return { ...own, children: reports, complete: own.complete && reports.every(({ complete }) => complete) };
}

/** Ledger position of the run's newest call; before all others without one. */
async function newestCall({ store }: EngineCore, run_id: string): Promise<number> {
  const [newest] = await store.list("steps", { owner: run_id, order: "desc", limit: 1 });
  return newest === undefined ? -1 : ledgerPlace(newest.doc);
}

/** A failure of another run does not block the others, unless the whole rollback has to stop. */
export async function undoOtherRun(
  core: EngineCore,
  run_id: string,
  { onBegin: _, onProgress, ...options }: RollbackOptions,
): Promise<ChildReport> {
  const progress = onProgress && ((one: RollbackProgress) => onProgress({ ...one, run_id }));
  try {
    const report = await executeRollback(core, run_id, { ...options, onProgress: progress });
    return { run_id, ...report };
  } catch (error) {
    if (stopsAll(error)) throw error;
    const error_text = core.redact(messageOf(error));
    return { run_id, ...assembleReport(new Map()), complete: false, error: error_text };
  }
}

function stopsAll(error: unknown): boolean {
  if (error instanceof LeaseLostError || !(error instanceof SvcError)) return true;
  return error.code === "unavailable" || error.code === "forbidden";
}
