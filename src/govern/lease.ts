/**
 * Leases: one worker at a time on a subject, across processes. A lease in the store names its holder, which renews it.
 * Another process takes it over only after observing it unchanged for its full length by that process's monotonic
 * clock, so wall clocks do not matter. Each write of the work checks the lease in its unit, so that a paused holder
 * cannot write after a takeover.
 */
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { EngineCore } from "./core.ts";
import type { LeaseDoc } from "./port/docs.ts";
import { allRows } from "./port/pages.ts";
import type { DocKey, StateStore, StoreTx } from "./port/store.ts";

/** Subject of a lease: its key in the store, and its name in messages (`rollback of run r1`). */
export interface LeaseSubject {
  key: string;
  what: string;
}

export interface WorkLease {
  subject: LeaseSubject;
  holder: string;
  epoch: number;
  /** Start of the lease by this process's monotonic clock. */
  taken: number;
}

/** Dependencies of a lease, also used by background work outside the engine. */
export type LeaseDeps = Pick<EngineCore, "store" | "env" | "leases">;
type LeaseClock = Pick<EngineCore, "env" | "leases">;

/**
 * Length of a worker's lease. Workers send no heartbeat, so it covers the timeouts of one compensation and one read,
 * plus a margin.
 */
export const WORKER_LEASE_MS =
  SERVICE_LIMITS.compensation_timeout_ms + SERVICE_LIMITS.read_timeout_ms + SERVICE_LIMITS.lease_ms;

export class LeaseLostError extends SvcError {
  constructor({ what }: LeaseSubject) {
    super("conflict", `the ${what} was taken over by another worker`, { cause_code: "job_taken_over" });
    this.name = "LostLease";
  }
}

/** Thrown if another process holds the lease or has abandoned it. */
export class LeaseHeldError extends SvcError {
  /** Fingerprint of the lease. If it changes, the holder is alive. */
  readonly mark: string;
  /** How long the lease must still stay unchanged before this process can take it over. */
  readonly wait_ms: number;
  constructor({ what }: LeaseSubject, mark: string, wait_ms: number) {
    const seconds = Math.ceil(wait_ms / 1_000);
    super(
      "conflict",
      `a ${what} is already in progress; if its process has ended, try again in ${seconds} s to take it over`,
      { cause_code: "job_running" },
    );
    this.name = "HeldLease";
    this.mark = mark;
    this.wait_ms = wait_ms;
  }
}

export const leaseKey = ({ key }: LeaseSubject): DocKey => ["leases", key];

const markOf = ({ holder, epoch, beat, expires_ms }: LeaseDoc): string =>
  JSON.stringify([holder, epoch, beat ?? null, expires_ms]);

/** How long this process must still observe the lease unchanged before a takeover. */
function waitFor({ env, leases }: LeaseClock, key: string, held: LeaseDoc): number {
  // Documents of earlier versions do not store their length, so assume that of a worker.
  const lasts_ms = held.lasts_ms ?? WORKER_LEASE_MS;
  return lasts_ms - leases.silentFor(key, markOf(held), env.elapsed());
}

/** Acquires a free or abandoned lease; throws `HeldLease` otherwise. */
export function acquireLeaseOn(
  core: LeaseClock,
  tx: StoreTx,
  subject: LeaseSubject,
  holder: string,
  lasts_ms: number = SERVICE_LIMITS.lease_ms,
): WorkLease {
  const { key } = subject;
  const { env, leases } = core;
  const taken = env.elapsed();
  const held = tx.get("leases", key);
  const wait_ms = held === undefined ? 0 : waitFor(core, key, held);
  if (held !== undefined && wait_ms > 0) throw new LeaseHeldError(subject, markOf(held), wait_ms);
  leases.forget(key);
  const epoch = (held?.epoch ?? 0) + 1;
  // A worker's name does not change, so a random start distinguishes one lease from the next.
  const beat = Math.floor(env.random() * 2 ** 31);
  tx.put("leases", key, { holder, epoch, beat, lasts_ms, expires_ms: env.now() + lasts_ms });
  return { subject, holder, epoch, taken };
}

/** Like `takeLeaseOf`, but returns null if another process holds the lease. */
export function tryLease(
  core: LeaseClock,
  tx: StoreTx,
  subject: LeaseSubject,
  holder: string,
): WorkLease | null {
  try {
    return acquireLeaseOn(core, tx, subject, holder);
  } catch (error) {
    if (error instanceof LeaseHeldError) return null;
    throw error;
  }
}

/** True if the subject has a lease that this process cannot take over yet. */
export function isLeaseHeld(core: LeaseClock, tx: StoreTx, { key }: LeaseSubject): boolean {
  const held = tx.get("leases", key);
  return held !== undefined && waitFor(core, key, held) > 0;
}

/** Starts observing all leases in the store, so that this process can take over soon after a holder dies. */
export async function watchLeases({ store, ...clock }: LeaseDeps): Promise<void> {
  for await (const { key, doc } of allRows(store, "leases")) waitFor(clock, key, doc);
}

/** Restarts the length of the lease. Throws if this process no longer holds it. */
export function renewLease(tx: StoreTx, lease: WorkLease, now: number): void {
  const held = assertLeaseHeld(tx, lease);
  const lasts_ms = held.lasts_ms ?? SERVICE_LIMITS.lease_ms;
  tx.put("leases", lease.subject.key, {
    ...held,
    beat: (held.beat ?? 0) + 1,
    lasts_ms,
    expires_ms: now + lasts_ms,
  });
}

export function assertLeaseHeld(tx: StoreTx, { subject, holder, epoch }: WorkLease): LeaseDoc {
  const held = tx.get("leases", subject.key);
  // Epochs restart at 1 after a release, but the next holder has another name.
  if (held?.holder !== holder || held.epoch !== epoch) throw new LeaseLostError(subject);
  return held;
}

export function dropLease(tx: StoreTx, lease: WorkLease): void {
  assertLeaseHeld(tx, lease);
  tx.delete("leases", lease.subject.key);
}

/** Releases the lease so that others need not wait. If that fails, the lease expires. */
export async function releaseLease(core: Pick<EngineCore, "store">, lease: WorkLease): Promise<void> {
  await endLease(core, lease).catch(() => {});
}

/** Releases the lease after success; throws if this process no longer held it. */
export async function endLease({ store }: { store: StateStore }, lease: WorkLease): Promise<void> {
  const unit = { needs: [leaseKey(lease.subject)], run: (tx: StoreTx) => dropLease(tx, lease) };
  await store.transact(unit).catch((error: unknown) => {
    if (error instanceof LeaseLostError) throw error;
  });
}

/**
 * Retries until this process gets the lease. Waits while the holder is silent, until it releases the lease or the lease
 * expires. Throws a conflict if the holder is alive. Calls `waiting` once, before the first wait.
 */
export async function waitForLease(
  { env }: Pick<EngineCore, "env">,
  attempt: () => Promise<WorkLease>,
  waiting: (why: LeaseHeldError) => void,
  signal?: AbortSignal,
): Promise<WorkLease> {
  for (let first: LeaseHeldError | undefined; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof LeaseHeldError) || (first !== undefined && first.mark !== error.mark))
        throw error;
      if (first === undefined) waiting(error);
      first ??= error;
      await env.sleep(Math.min(error.wait_ms, LOOK_MS), signal);
    }
  }
}

const LOOK_MS = 500;

export interface LeaseHeartbeat {
  /** Aborts if another process took the lease over, or soon could because renewals fail. */
  lost: AbortSignal;
  stop(): Promise<void>;
}

/** A holder whose renewals fail for this long stops, one heartbeat before another process can take over. */
const STOP_AFTER_MS = SERVICE_LIMITS.lease_ms - SERVICE_LIMITS.lease_heartbeat_ms;

/** Renews the lease until stopped. Ignores single failures: the next heartbeat retries, and writes are fenced. */
export function startHeartbeat({ store, env }: LeaseDeps, lease: WorkLease): LeaseHeartbeat {
  const stopping = new AbortController();
  const lost = new AbortController();
  let renewed = lease.taken;
  let renewing: Promise<void> | undefined;
  const unit = {
    needs: [leaseKey(lease.subject)],
    run: (tx: StoreTx) => renewLease(tx, lease, env.now()),
  };
  const renew = async (): Promise<void> => {
    const began = env.elapsed();
    try {
      await store.transact(unit);
      renewed = began;
    } catch (error) {
      if (error instanceof LeaseLostError && !stopping.signal.aborted) lost.abort(error);
    } finally {
      renewing = undefined;
    }
  };
  const beat = async (): Promise<void> => {
    while (!stopping.signal.aborted && !lost.signal.aborted) {
      await env.sleep(SERVICE_LIMITS.lease_heartbeat_ms, stopping.signal);
      // Not awaited, so that an unresponsive store cannot delay the check below.
      renewing ??= renew();
      if (env.elapsed() - renewed >= STOP_AFTER_MS) lost.abort(new LeaseLostError(lease.subject));
    }
  };
  const beating = beat().catch(() => {});
  return {
    lost: lost.signal,
    async stop() {
      stopping.abort();
      await beating;
      await renewing;
    },
  };
}
