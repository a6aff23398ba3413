/** One rollback of a run at a time, over all processes: the lease whose subject is the run. */
import type { Core } from "../engine/core.ts";
import { type Lease, type LeaseSubject, leaseHeldOn, needOfLease, takeLeaseOf } from "../engine/lease.ts";
import { loadSealedRun } from "../engine/load-run.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Key, Tx } from "../port/store.ts";

export type { Heartbeat, Lease } from "../engine/lease.ts";
export {
  assertHeld,
  dropLease,
  endLease,
  keepLease,
  LostLease,
  releaseLease,
  renewLease,
} from "../engine/lease.ts";

const subjectOf = (run_id: string): LeaseSubject => ({
  key: `rollback/${run_id}`,
  what: `rollback of run ${run_id}`,
});

export const leaseNeed = (run_id: string): Key => needOfLease(subjectOf(run_id));

/** Takes the lease where it is free or has lapsed; throws a conflict where another process holds it. */
export function takeLease(tx: Tx, run_id: string, holder: string, now: number, lasts_ms: number): Lease {
  return takeLeaseOf(tx, subjectOf(run_id), holder, now, lasts_ms);
}

/** Who holds the lease now, lapsed or not. */
export function leaseHolder(tx: Tx, run_id: string): Lease | undefined {
  return leaseHeldOn(tx, subjectOf(run_id));
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
      return takeLease(tx, run_id, holder, core.env.now(), LIMITS.lease_ms);
    },
  });
}
