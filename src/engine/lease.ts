/**
 * One worker at a time on a subject, over all processes. A lease in the store names who it is; it lapses
 * unless renewed, so that another can take over from the dead. Every write of the work checks the lease
 * inside its own unit: one that was paused and taken over can no longer write.
 */
import { conflict, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Key, Tx } from "../port/store.ts";
import type { Core } from "./core.ts";

/** What is worked on: its key in the store, and its name in a sentence (`rollback of run r1`). */
export interface LeaseSubject {
  key: string;
  what: string;
}

export interface Lease {
  subject: LeaseSubject;
  holder: string;
  epoch: number;
}

export class LostLease extends SvcError {
  constructor({ what }: LeaseSubject) {
    super("conflict", `the ${what} was taken over by another worker`, { cause_code: "job_taken_over" });
    this.name = "LostLease";
  }
}

export const needOfLease = ({ key }: LeaseSubject): Key => ["leases", key];

/** Takes the lease where it is free or has lapsed; null where another process holds it. */
export function tryLease(
  tx: Tx,
  subject: LeaseSubject,
  holder: string,
  now: number,
  lasts_ms: number,
): Lease | null {
  const held = tx.get("leases", subject.key);
  if (held !== undefined && held.expires_ms > now) return null;
  const epoch = (held?.epoch ?? 0) + 1;
  tx.put("leases", subject.key, { holder, epoch, expires_ms: now + lasts_ms });
  return { subject, holder, epoch };
}

/** The same; throws a conflict where another process holds it. */
export function takeLeaseOf(
  tx: Tx,
  subject: LeaseSubject,
  holder: string,
  now: number,
  lasts_ms: number,
): Lease {
  const lease = tryLease(tx, subject, holder, now, lasts_ms);
  if (lease === null) throw conflict("job_running", `a ${subject.what} is already under way`);
  return lease;
}

/** Throws where the lease is no longer ours; otherwise it lasts anew. */
export function renewLease(tx: Tx, lease: Lease, now: number): void {
  assertHeld(tx, lease);
  const { holder, epoch, subject } = lease;
  tx.put("leases", subject.key, { holder, epoch, expires_ms: now + LIMITS.lease_ms });
}

export function assertHeld(tx: Tx, { subject, holder, epoch }: Lease): void {
  const held = tx.get("leases", subject.key);
  // The holder's name is new each time, so it still tells apart when a released lease starts counting anew.
  if (held?.holder !== holder || held.epoch !== epoch) throw new LostLease(subject);
}

export function dropLease(tx: Tx, lease: Lease): void {
  assertHeld(tx, lease);
  tx.delete("leases", lease.subject.key);
}

/** Who holds the lease now, lapsed or not. */
export function leaseHeldOn(tx: Tx, subject: LeaseSubject): Lease | undefined {
  const held = tx.get("leases", subject.key);
  return held && { subject, holder: held.holder, epoch: held.epoch };
}

/** Lets go, so that another need not wait. A lease that cannot be released lapses by itself. */
export async function releaseLease(core: Core, lease: Lease): Promise<void> {
  await endLease(core, lease).catch(() => {});
}

/** The same at a good end; throws where it was no longer ours. */
export async function endLease(core: Core, lease: Lease): Promise<void> {
  const unit = { needs: [needOfLease(lease.subject)], run: (tx: Tx) => dropLease(tx, lease) };
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
    needs: [needOfLease(lease.subject)],
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
