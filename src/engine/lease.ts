/**
 * One worker at a time on a subject, over all processes. A lease in the store names the holder, who renews it. Another
 * process takes it over only after it has itself seen it unchanged for its whole length, by its monotonic clock: the
 * time of day of either does not matter. Every write of the work checks the lease inside its unit, so that a holder
 * that was paused and replaced can no longer write.
 */
import { SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { LeaseDoc } from "../port/docs.ts";
import { allRows } from "../port/pages.ts";
import type { Key, Store, Tx } from "../port/store.ts";
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
  /** When it was taken, by this process's monotonic clock. */
  taken: number;
}

/** What a lease needs of the engine: background work outside it holds leases, too. */
export type LeaseParts = Pick<Core, "store" | "env" | "leases">;
type LeaseClock = Pick<Core, "env" | "leases">;

/** A worker has no heartbeat: its lease lasts for one compensation and one read at their deadlines, and some. */
export const WORKER_LEASE_MS = LIMITS.compensation_timeout_ms + LIMITS.read_timeout_ms + LIMITS.lease_ms;

export class LostLease extends SvcError {
  constructor({ what }: LeaseSubject) {
    super("conflict", `the ${what} was taken over by another worker`, { cause_code: "job_taken_over" });
    this.name = "LostLease";
  }
}

/** Another process holds the lease, or has left it behind. */
export class HeldLease extends SvcError {
  /** What the lease looked like: another mark later means that its holder is alive. */
  readonly mark: string;
  /** How long it must still stay unchanged before this process may take it over. */
  readonly wait_ms: number;
  constructor({ what }: LeaseSubject, mark: string, wait_ms: number) {
    const seconds = Math.ceil(wait_ms / 1_000);
    super(
      "conflict",
      `a ${what} is already under way; if its process is gone, try again in ${seconds} s to take it over`,
      { cause_code: "job_running" },
    );
    this.name = "HeldLease";
    this.mark = mark;
    this.wait_ms = wait_ms;
  }
}

export const needOfLease = ({ key }: LeaseSubject): Key => ["leases", key];

const markOf = ({ holder, epoch, beat, expires_ms }: LeaseDoc): string =>
  JSON.stringify([holder, epoch, beat ?? null, expires_ms]);

/** How long this process still has to see the lease unchanged before it may take it over. */
function waitFor({ env, leases }: LeaseClock, key: string, held: LeaseDoc): number {
  // A document of an earlier version does not say how long it lasts: then it may be a worker's.
  const lasts_ms = held.lasts_ms ?? WORKER_LEASE_MS;
  return lasts_ms - leases.silentFor(key, markOf(held), env.elapsed());
}

/** Takes the lease where it is free, or was left behind; throws `HeldLease` otherwise. */
export function takeLeaseOf(
  core: LeaseClock,
  tx: Tx,
  subject: LeaseSubject,
  holder: string,
  lasts_ms: number = LIMITS.lease_ms,
): Lease {
  const { key } = subject;
  const { env, leases } = core;
  const taken = env.elapsed();
  const held = tx.get("leases", key);
  const wait_ms = held === undefined ? 0 : waitFor(core, key, held);
  if (held !== undefined && wait_ms > 0) throw new HeldLease(subject, markOf(held), wait_ms);
  leases.forget(key);
  const epoch = (held?.epoch ?? 0) + 1;
  // A worker's name is the same each time: where its count starts distinguishes one lease from the next.
  const beat = Math.floor(env.random() * 2 ** 31);
  tx.put("leases", key, { holder, epoch, beat, lasts_ms, expires_ms: env.now() + lasts_ms });
  return { subject, holder, epoch, taken };
}

/** The same; null where another process holds it. */
export function tryLease(core: LeaseClock, tx: Tx, subject: LeaseSubject, holder: string): Lease | null {
  try {
    return takeLeaseOf(core, tx, subject, holder);
  } catch (error) {
    if (error instanceof HeldLease) return null;
    throw error;
  }
}

/** Whether a lease on the subject is there that this process may not take over yet. */
export function isLeaseHeld(core: LeaseClock, tx: Tx, { key }: LeaseSubject): boolean {
  const held = tx.get("leases", key);
  return held !== undefined && waitFor(core, key, held) > 0;
}

/** Notes every lease of the store, so that this process can take over soon after a holder has died. */
export async function watchLeases({ store, ...clock }: LeaseParts): Promise<void> {
  for await (const { key, doc } of allRows(store, "leases")) waitFor(clock, key, doc);
}

/** Throws where the lease is no longer ours; otherwise its length starts again. */
export function renewLease(tx: Tx, lease: Lease, now: number): void {
  const held = assertHeld(tx, lease);
  const lasts_ms = held.lasts_ms ?? LIMITS.lease_ms;
  tx.put("leases", lease.subject.key, {
    ...held,
    beat: (held.beat ?? 0) + 1,
    lasts_ms,
    expires_ms: now + lasts_ms,
  });
}

export function assertHeld(tx: Tx, { subject, holder, epoch }: Lease): LeaseDoc {
  const held = tx.get("leases", subject.key);
  // The holder's name is new each time, so it still differs when a released lease starts counting from one.
  if (held?.holder !== holder || held.epoch !== epoch) throw new LostLease(subject);
  return held;
}

export function dropLease(tx: Tx, lease: Lease): void {
  assertHeld(tx, lease);
  tx.delete("leases", lease.subject.key);
}

/** Lets go, so that another need not wait. A lease that cannot be released is taken over in time. */
export async function releaseLease(core: Pick<Core, "store">, lease: Lease): Promise<void> {
  await endLease(core, lease).catch(() => {});
}

/** The same at a good end; throws where it was no longer ours. */
export async function endLease({ store }: { store: Store }, lease: Lease): Promise<void> {
  const unit = { needs: [needOfLease(lease.subject)], run: (tx: Tx) => dropLease(tx, lease) };
  await store.transact(unit).catch((error: unknown) => {
    if (error instanceof LostLease) throw error;
  });
}

/**
 * Tries until it gets the lease. A silent holder is waited for, until it lets go or was silent for as long as its lease
 * lasts; one that shows life is a conflict. `waiting` gets the reason once, before the first wait.
 */
export async function waitForLease(
  { env }: Pick<Core, "env">,
  attempt: () => Promise<Lease>,
  waiting: (why: HeldLease) => void,
  signal?: AbortSignal,
): Promise<Lease> {
  for (let first: HeldLease | undefined; ; ) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof HeldLease) || (first !== undefined && first.mark !== error.mark)) throw error;
      if (first === undefined) waiting(error);
      first ??= error;
      await env.sleep(Math.min(error.wait_ms, LOOK_MS), signal);
    }
  }
}

const LOOK_MS = 500;

export interface Heartbeat {
  /** Aborts when the lease was taken over, or may be soon because it could not be renewed. */
  lost: AbortSignal;
  stop(): Promise<void>;
}

/** A holder that could not renew for so long stops its work, one beat before another process may take over. */
const STOP_AFTER_MS = LIMITS.lease_ms - LIMITS.lease_heartbeat_ms;

/** Renews the lease until stopped. Short trouble with the store is left to the next beat: writes are fenced anyway. */
export function keepLease({ store, env }: LeaseParts, lease: Lease): Heartbeat {
  const stopping = new AbortController();
  const lost = new AbortController();
  let renewed = lease.taken;
  let renewing: Promise<void> | undefined;
  const unit = {
    needs: [needOfLease(lease.subject)],
    run: (tx: Tx) => renewLease(tx, lease, env.now()),
  };
  const renew = async (): Promise<void> => {
    const began = env.elapsed();
    try {
      await store.transact(unit);
      renewed = began;
    } catch (error) {
      if (error instanceof LostLease && !stopping.signal.aborted) lost.abort(error);
    } finally {
      renewing = undefined;
    }
  };
  const beat = async (): Promise<void> => {
    while (!stopping.signal.aborted && !lost.signal.aborted) {
      await env.sleep(LIMITS.lease_heartbeat_ms, stopping.signal);
      // A store that does not answer must not keep the holder from noticing how late it is.
      renewing ??= renew();
      if (env.elapsed() - renewed >= STOP_AFTER_MS) lost.abort(new LostLease(lease.subject));
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
