/** One rollback of a run at a time, over all processes: the lease whose subject is the run. */
import type { Core } from "../engine/core.ts";
import {
  isLeaseHeld,
  type Lease,
  type LeaseSubject,
  needOfLease,
  takeLeaseOf,
  waitForLease,
} from "../engine/lease.ts";
import { loadSealedRun } from "../engine/load-run.ts";
import type { LeaseDoc } from "../port/docs.ts";
import type { Key, Tx } from "../port/store.ts";
import { markUnfinished } from "./left.ts";

export type { Heartbeat, Lease } from "../engine/lease.ts";
export {
  assertHeld,
  dropLease,
  endLease,
  HeldLease,
  keepLease,
  LostLease,
  releaseLease,
  renewLease,
  WORKER_LEASE_MS,
} from "../engine/lease.ts";

const subjectOf = (run_id: string): LeaseSubject => ({
  key: `rollback/${run_id}`,
  what: `rollback of run ${run_id}`,
});

export const leaseNeed = (run_id: string): Key => needOfLease(subjectOf(run_id));

/** Takes the lease where it is free or was left behind; throws a conflict where another process holds it. */
export function takeLease(core: Core, tx: Tx, run_id: string, holder: string, lasts_ms?: number): Lease {
  return takeLeaseOf(core, tx, subjectOf(run_id), holder, lasts_ms);
}

/** The lease as it is stored, for a caller who knows its holder's name; undefined where another holds it. */
export function leaseOfHolder(tx: Tx, run_id: string, holder: string): Lease | undefined {
  const held: LeaseDoc | undefined = tx.get("leases", subjectOf(run_id).key);
  if (held?.holder !== holder) return undefined;
  return { subject: subjectOf(run_id), holder, epoch: held.epoch, taken: 0 };
}

/** Whether a rollback of the run may be under way: one that this process has not seen silent for long enough. */
export function mayBeRollingBack(core: Core, tx: Tx, run_id: string): boolean {
  return isLeaseHeld(core, tx, subjectOf(run_id));
}

export function newHolder(core: Core): string {
  return `rollback/${core.env.uuid()}`;
}

/** Throws not_found for an unknown run, a conflict while another rollback of it is under way. */
export function acquireLease(core: Core, run_id: string): Promise<Lease> {
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

/** The same, but waits for a holder that is silent; `waiting` gets how long that may take, once. */
export function awaitLease(
  core: Core,
  run_id: string,
  waiting: (wait_ms: number) => void,
  signal?: AbortSignal,
): Promise<Lease> {
  return waitForLease(
    core,
    () => acquireLease(core, run_id),
    ({ wait_ms }) => waiting(wait_ms),
    signal,
  );
}
