/**
 * One rollback of a run at a time, over all processes. A lease in the store names who it is; it lapses
 * unless renewed, so that another can take over from the dead. Every write of a rollback checks the lease
 * inside its own unit: one that was paused and taken over can no longer write.
 */

import type { Core } from "../engine/core.ts";
import { loadSealedRun } from "../engine/load-run.ts";
import { conflict, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Key, Tx } from "../store/port.ts";

export interface Lease {
  run_id: string;
  holder: string;
  epoch: number;
}

export class LostLease extends SvcError {
  constructor(run_id: string) {
    super("conflict", `the rollback of run ${run_id} was taken over by another worker`);
    this.name = "LostLease";
  }
}

const leaseKey = (run_id: string): string => `rollback/${run_id}`;

export const leaseNeed = (run_id: string): Key => ["leases", leaseKey(run_id)];

/** Takes the lease where it is free or has lapsed; throws a conflict where somebody holds it. */
export function takeLease(tx: Tx, run_id: string, holder: string, now: number, lasts_ms: number): Lease {
  const held = tx.get("leases", leaseKey(run_id));
  if (held !== undefined && held.expires_ms > now) {
    throw conflict(`a rollback of run ${run_id} is already under way`);
  }
  const epoch = (held?.epoch ?? 0) + 1;
  tx.put("leases", leaseKey(run_id), { holder, epoch, expires_ms: now + lasts_ms });
  return { run_id, holder, epoch };
}

/** Throws where the lease is no longer ours; otherwise it lasts anew. */
export function renewLease(tx: Tx, lease: Lease, now: number): void {
  assertHeld(tx, lease);
  const { holder, epoch, run_id } = lease;
  tx.put("leases", leaseKey(run_id), { holder, epoch, expires_ms: now + LIMITS.lease_ms });
}

export function assertHeld(tx: Tx, { run_id, holder, epoch }: Lease): void {
  const held = tx.get("leases", leaseKey(run_id));
  // The holder's name is new each time, so it still tells apart when a released lease starts counting anew.
  if (held?.holder !== holder || held.epoch !== epoch) throw new LostLease(run_id);
}

export function dropLease(tx: Tx, lease: Lease): void {
  assertHeld(tx, lease);
  tx.delete("leases", leaseKey(lease.run_id));
}

/** Who holds the lease now, lapsed or not. */
export function leaseHolder(tx: Tx, run_id: string): Lease | undefined {
  const held = tx.get("leases", leaseKey(run_id));
  return held && { run_id, holder: held.holder, epoch: held.epoch };
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

/** Lets go, so that another need not wait. A lease that cannot be released lapses by itself. */
export async function releaseLease(core: Core, lease: Lease): Promise<void> {
  await endLease(core, lease).catch(() => {});
}

/** The same at a good end; throws where it was no longer ours. */
export async function endLease(core: Core, lease: Lease): Promise<void> {
  const unit = { needs: [leaseNeed(lease.run_id)], run: (tx: Tx) => dropLease(tx, lease) };
  await core.store.transact(unit).catch((error: unknown) => {
    if (error instanceof LostLease) throw error;
  });
}

export interface Heartbeat {
  /** Aborts when the lease was taken over. */
  lost: AbortSignal;
  stop(): Promise<void>;
}

/** Renews the lease until stopped. Trouble with the store is left to the next beat: writes are fenced anyway. */
export function keepLease(core: Core, lease: Lease): Heartbeat {
  const stopping = new AbortController();
  const lost = new AbortController();
  const unit = {
    needs: [leaseNeed(lease.run_id)],
    run: (tx: Tx) => renewLease(tx, lease, core.env.now()),
  };
  const beat = async (): Promise<void> => {
    while (!stopping.signal.aborted && !lost.signal.aborted) {
      await core.env.sleep(LIMITS.lease_heartbeat_ms, stopping.signal);
      await core.store.transact(unit).catch((error: unknown) => {
        if (error instanceof LostLease && !stopping.signal.aborted) lost.abort(error);
      });
    }
  };
  const beating = beat().catch(() => {});
  return {
    lost: lost.signal,
    async stop() {
      stopping.abort();
      await beating;
    },
  };
}
