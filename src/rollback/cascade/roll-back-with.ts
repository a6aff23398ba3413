/**
 * Rolls back a run together with steps of other runs that were built on it: all undos in one order, newest first. Each
 * run has its own lease and report.
 */
import type { EngineCore } from "../../govern/core.ts";
import { stepKey } from "../../govern/document-keys.ts";
import type { DocKey, StoreTx } from "../../govern/port/store.ts";
import {
  type LeaseHeartbeat,
  leaseNeed,
  newHolder,
  releaseLease,
  startHeartbeat,
  takeLeases,
  type WorkLease,
} from "../lease.ts";
import { ledgerPlace, type RunToUndo, rollBackInOrder } from "../plan/multi-run.ts";
import { assembleReport, type ChildReport, type RollbackReport, type TreeReport } from "../plan/report.ts";
import { undoOtherRun } from "../tree/roll-back-tree.ts";
import { executeRollback, type RollbackOptions } from "../undo/execute.ts";

/** A step of another run that is undone, too. */
export interface ChosenStep {
  run_id: string;
  step: number;
}

export interface CascadeOptions extends RollbackOptions {
  with: readonly ChosenStep[];
  /** Leases of all runs, if the caller holds and releases them. */
  leases?: readonly WorkLease[] | undefined;
}

/** The chosen steps by run, without those of the run itself, which is undone whole. */
export function stepsByRun(run_id: string, chosen: readonly ChosenStep[]): Map<string, Set<number>> {
  const runs = new Map<string, Set<number>>();
  for (const one of chosen)
    if (one.run_id !== run_id) runs.set(one.run_id, (runs.get(one.run_id) ?? new Set()).add(one.step));
  return runs;
}

/** Takes the leases of all runs in one unit. Throws a conflict if a rollback of one of them is in progress. */
function takeAllLeases(core: EngineCore, run_ids: readonly string[]): Promise<WorkLease[]> {
  const holder = newHolder(core);
  return core.store.transact({
    needs: run_ids.flatMap((id): DocKey[] => [["runs", id], leaseNeed(id)]),
    run: (tx: StoreTx) => takeLeases(core, tx, run_ids, holder),
  });
}

/** The options apply to every run. `onBegin` belongs to the run itself. */
export async function executeCascade(
  core: EngineCore,
  run_id: string,
  { with: chosen, leases: given, ...options }: CascadeOptions,
): Promise<TreeReport> {
  const others = stepsByRun(run_id, chosen);
  const leases = given ?? (await takeAllLeases(core, [run_id, ...others.keys()]));
  const beats = leases.map((lease) => startHeartbeat(core, lease));
  try {
    return await undoTogether(core, run_id, others, { ...options, leases });
  } finally {
    await Promise.all(beats.map((beat: LeaseHeartbeat) => beat.stop()));
    if (given === undefined) for (const lease of leases) await releaseLease(core, lease);
  }
}

async function undoTogether(
  core: EngineCore,
  run_id: string,
  others: ReadonlyMap<string, ReadonlySet<number>>,
  { leases, ...options }: Omit<CascadeOptions, "with"> & { leases: readonly WorkLease[] },
): Promise<TreeReport> {
  const [own_lease, ...other_leases] = leases;
  const lease_of = new Map([...others.keys()].map((id, i) => [id, other_leases[i]]));
  let own: RollbackReport = assembleReport(new Map());
  const undone: ChildReport[] = [];
  // The run itself opens first. It then waits for the newer undos of the others.
  const order: RunToUndo[] = [{ run_id, newest_seq: Number.POSITIVE_INFINITY }];
  for (const [id, steps] of others) order.push({ run_id: id, newest_seq: await newestOf(core, id, steps) });
  await rollBackInOrder(order, async (id, turn) => {
    if (id === run_id) own = await executeRollback(core, run_id, { ...options, lease: own_lease, turn });
    else {
      const asked = { ...options, lease: lease_of.get(id), only: others.get(id), turn };
      undone.push(await undoOtherRun(core, id, asked));
    }
  });
  const place = new Map(order.map(({ run_id: id, newest_seq }) => [id, newest_seq]));
  const reports = undone.sort((a, b) => place.get(b.run_id)! - place.get(a.run_id)!);
  return { ...own, with: reports, complete: own.complete && reports.every(({ complete }) => complete) };
}

/** Ledger position of the newest of these steps; before all others without one. */
async function newestOf({ store }: EngineCore, run_id: string, steps: ReadonlySet<number>): Promise<number> {
  const docs = await Promise.all([...steps].map((step) => store.get("steps", stepKey(run_id, step))));
  return Math.max(-1, ...docs.flatMap((doc) => (doc === undefined ? [] : [ledgerPlace(doc)])));
}
