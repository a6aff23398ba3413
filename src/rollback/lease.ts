/** Allows one rollback of a run at a time, across all processes: the lease whose subject is the run. */
import type { EngineCore } from "../govern/core.ts";
import {
  acquireLeaseOn,
  isLeaseHeld,
  type LeaseSubject,
  leaseKey,
  type WorkLease,
  waitForLease,
} from "../govern/lease.ts";
import type { LeaseDoc } from "../govern/port/docs.ts";
import type { DocKey, StoreTx } from "../govern/port/store.ts";
import { loadSealedRun } from "../govern/runs/load-run.ts";
import { markUnfinished } from "./plan/leftovers.ts";

export type { LeaseHeartbeat, WorkLease } from "../govern/lease.ts";
export {
  assertLeaseHeld,
  dropLease,
  endLease,
  LeaseHeldError,
  LeaseLostError,
  releaseLease,
  renewLease,
  startHeartbeat,
  WORKER_LEASE_MS,
} from "../govern/lease.ts";

const subjectOf = (run_id: string): LeaseSubject => ({
  key: `rollback/${run_id}`,
  what: `rollback of run ${run_id}`,
});

export const leaseNeed = (run_id: string): DocKey => leaseKey(subjectOf(run_id));

/** Takes the lease if it is free or abandoned. Throws a conflict if another process holds it. */
export function takeLease(
  core: EngineCore,
  tx: StoreTx,
  run_id: string,
  holder: string,
  lasts_ms?: number,
): WorkLease {
  return acquireLeaseOn(core, tx, subjectOf(run_id), holder, lasts_ms);
}

/** Takes the leases of several runs, or none of them. */
export function takeLeases(
  core: EngineCore,
  tx: StoreTx,
  run_ids: readonly string[],
  holder: string,
): WorkLease[] {
  return run_ids.map((run_id) => {
    loadSealedRun(tx, run_id);
    const lease = takeLease(core, tx, run_id, holder);
    markUnfinished(tx, run_id);
    return lease;
  });
}

/** Returns the stored lease to a caller that knows the holder's name, or undefined if another holder has it. */
export function leaseOfHolder(tx: StoreTx, run_id: string, holder: string): WorkLease | undefined {
  const held: LeaseDoc | undefined = tx.get("leases", subjectOf(run_id).key);
  if (held?.holder !== holder) return undefined;
  return { subject: subjectOf(run_id), holder, epoch: held.epoch, taken: 0 };
}

/** Name of the holder of the run's lease, if any. It may have fallen silent. */
export async function leaseHolder({ store }: EngineCore, run_id: string): Promise<string | undefined> {
  return (await store.get("leases", subjectOf(run_id).key))?.holder;
}

/** Whether a rollback of the run may be in progress: this process has not seen its holder silent for long enough. */
export function mayBeRollingBack(core: EngineCore, tx: StoreTx, run_id: string): boolean {
  return isLeaseHeld(core, tx, subjectOf(run_id));
}

export function newHolder(core: EngineCore): string {
  return `rollback/${core.env.uuid()}`;
}

/** Throws not_found for an unknown run, and a conflict while another rollback of it is in progress. */
export function acquireLease(core: EngineCore, run_id: string): Promise<WorkLease> {
  const holder = newHolder(core);
  return core.store.transact({
    needs: [["runs", run_id], leaseNeed(run_id)],
    run(tx) {
      loadSealedRun(tx, run_id);
      const lease = takeLease(core, tx, run_id, holder);
      markUnfinished(tx, run_id);
      return lease;
    },
  });
}

/** Like `acquireLease`, but waits for a silent holder to lapse. `waiting` gets the longest possible wait, once. */
export function awaitLease(
  core: EngineCore,
  run_id: string,
  waiting: (wait_ms: number) => void,
  signal?: AbortSignal,
): Promise<WorkLease> {
  return waitForLease(
    core,
    () => acquireLease(core, run_id),
    ({ wait_ms }) => waiting(wait_ms),
    signal,
  );
}
