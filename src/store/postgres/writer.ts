/**
 * The single writer connection, and the handling of failed batches. A batch succeeds only after the response to its
 * COMMIT, or once the database is known to contain it, and within its callers' time: the writer starts nothing that
 * would end later. A hung server costs one batch its time. From then on callers get an error at once until a probe
 * succeeds.
 */
import type { DocKey } from "../../govern/port/store.ts";
import { SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { declaredNeeds, HeadNeeded, type PendingUnit, type UnitBatch } from "../batch.ts";
import type { AcknowledgedHead } from "./acknowledged-head.ts";
import {
  isConnectionLoss,
  isKnownDoc,
  isValueError,
  notInTime,
  outcomeUnknown,
  sqlState,
  toStoreError,
} from "./connect/failures.ts";
import { PgSession } from "./connect/session.ts";
import { WRITER_SETTINGS } from "./connect/settings.ts";
import { idlePause, pauseFor, type TimeLimit, timeLimit } from "./connect/time-limit.ts";
import { DocVersionCache } from "./doc-version-cache.ts";
import { FetchedDocs, runUnits } from "./prefetch.ts";
import {
  batchStatements,
  commitReadOnly,
  fetchFacts,
  fetchVersions,
  isCommitted,
  type KnowsDoc,
  type LockedHead,
  lockHeadAndRead,
  type PendingCommit,
  type PreparedQuery,
  postSealStatements,
  preSealStatements,
  recheckVersions,
  testHeadLock,
  writeAndCommit,
} from "./round-trips.ts";
import { assertTail } from "./verify-tail.ts";

const BATCH_MS = SERVICE_LIMITS.store_deadline_ms * 0.8;
/** Additional time to determine the outcome of a COMMIT without a response. */
const LOOK_UP_MS = SERVICE_LIMITS.store_deadline_ms * 0.16;
/** How long before the callers' timeout a batch gets its response. */
const ANSWER_MS = SERVICE_LIMITS.store_deadline_ms - BATCH_MS - LOOK_UP_MS;
const PROBE_MS = 2_000;
const PROBE_EVERY_MS = 300;
const LOCK_TIMEOUT = "55P03";

/** The callers that wait for a batch. */
export interface WaitingCallers {
  /** When they time out, on the clock of performance.now. */
  until: number;
  /** Called right before the writer sends bytes that cannot be recalled. Throws after the callers' timeout. */
  leave(): void;
}

/** A batch that ran before the head lock. */
interface BatchAhead {
  session: PgSession;
  facts: FetchedDocs;
  batch: UnitBatch;
  statements: PreparedQuery[];
}

interface Attempt {
  answer_by: number;
  leave(): void;
  without_guess?: boolean;
}

interface Begun {
  session: PgSession;
  locked: LockedHead;
  facts: FetchedDocs;
  /** Whether the documents that the batch read before the lock are unchanged. */
  holds: boolean;
}

/** Statistics of batches, for benchmarks: how they ran, and how long they held the head lock. */
export interface BatchStats {
  under_lock: number;
  ahead: number;
  again: number;
  /** Documents fetched before the lock, without those from the cache. */
  fetched: number;
  records: number;
  /** CPU time of this process between the lock and the commit request, while all other writers wait. */
  cpu_us: number;
  /** Elapsed time between the lock and the response to COMMIT. */
  held_ms: number;
}

/** Completes a batch that ran before the lock and is still valid: it needs only its position. */
function placed(
  { batch, facts, statements }: BatchAhead,
  locked: LockedHead,
): { batch: UnitBatch; statements: PreparedQuery[] } {
  if (batch.isEmpty) return { batch, statements };
  batch.seal(locked.head);
  return { batch, statements: [...statements, ...postSealStatements(batch, locked, facts.has)] };
}

async function decided(
  units: readonly PendingUnit[],
  session: PgSession,
  locked: LockedHead,
  facts: FetchedDocs,
  has: KnowsDoc,
): Promise<{ batch: UnitBatch; statements: PreparedQuery[] }> {
  const batch = await runUnits(units, locked.head, facts, (keys) => fetchFacts(session, keys, facts));
  return { batch, statements: batch.isEmpty ? [] : batchStatements(batch, locked, has) };
}

export class PgWriter {
  readonly work: BatchStats = {
    under_lock: 0,
    ahead: 0,
    again: 0,
    fetched: 0,
    records: 0,
    cpu_us: 0,
    held_ms: 0,
  };
  /** Whether no other process has written since this writer's last batch. */
  private isAlone = true;
  private left: string | undefined;
  private readonly known = new DocVersionCache();
  private readonly url: string;
  private readonly acknowledged: AcknowledgedHead;
  private session: PgSession | undefined;
  private stalled = false;
  private probing: TimeLimit | undefined;
  private closed = false;

  constructor(url: string, acknowledged: AcknowledgedHead) {
    this.url = url;
    this.acknowledged = acknowledged;
  }

  /** Connects and verifies the tail of the ledger. Throws `corrupt` if the tail is invalid. */
  async check(): Promise<void> {
    const limit = timeLimit(BATCH_MS);
    try {
      await this.connected(limit.signal);
    } finally {
      limit.clear();
    }
  }

  async commit(units: readonly PendingUnit[], callers: WaitingCallers): Promise<void> {
    if (this.stalled) throw notInTime();
    const answer_by = callers.until - ANSWER_MS;
    const time_left_ms = answer_by - LOOK_UP_MS - performance.now();
    if (time_left_ms <= 0) throw notInTime();
    const limit = timeLimit(time_left_ms);
    try {
      await this.attemptTwice(units, limit.signal, { answer_by, leave: callers.leave });
    } catch (error) {
      this.drop();
      if (limit.signal.aborted || sqlState(error) === LOCK_TIMEOUT) this.stall();
      else if (isValueError(error) && units.length > 1) return await this.oneByOne(units, callers);
      throw toStoreError(error);
    } finally {
      limit.clear();
    }
  }

  isServedBy(process_id: number): boolean {
    return this.session?.processId === process_id;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.probing?.expire();
    const session = this.session;
    this.session = undefined;
    await session?.end();
  }

  /** Writes the batch again, without guessing which documents are new, if a guess was wrong. */
  private async attemptTwice(
    units: readonly PendingUnit[],
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<void> {
    try {
      await this.attempt(units, signal, attempt);
    } catch (error) {
      if (signal.aborted || !isKnownDoc(error)) throw error;
      await this.attempt(units, signal, { ...attempt, without_guess: true });
    }
  }

  private async attempt(
    units: readonly PendingUnit[],
    signal: AbortSignal,
    { answer_by, leave, without_guess }: Attempt,
  ): Promise<void> {
    const ahead = this.isAlone || without_guess ? undefined : await this.decideAhead(units, signal);
    const { session, locked, facts, holds } = await this.begin(units, ahead, signal);
    const locked_at = performance.now();
    const cpu = process.cpuUsage();
    let sent: PendingCommit | undefined;
    let refused: SvcError | undefined;
    let head = locked.head;
    let written: UnitBatch | undefined;
    try {
      await session.until(signal, async () => {
        const { batch, statements } =
          ahead !== undefined && holds
            ? placed(ahead, locked)
            : await decided(units, session, locked, facts, without_guess ? () => undefined : facts.has);
        written = batch;
        if (batch.isEmpty) return await commitReadOnly(session);
        leave();
        const { user, system } = process.cpuUsage(cpu);
        this.work.cpu_us += user + system;
        this.work.records += batch.records.length;
        head = batch.head;
        sent = { last: batch.records.at(-1), xid: locked.xid, timeline: session.timeline };
        refused = await writeAndCommit(session, statements);
      });
    } catch (error) {
      this.drop();
      if (sent === undefined) throw error;
      if (!(await this.hasLanded(sent, answer_by - performance.now()))) throw error;
    }
    this.work.held_ms += performance.now() - locked_at;
    this.work[ahead === undefined ? "under_lock" : holds ? "ahead" : "again"]++;
    if (refused !== undefined) throw refused;
    if (sent !== undefined) this.acknowledged.note(head);
    // Reads under the lock have no versions, so the versions of the written documents are unknown.
    if (ahead === undefined) this.known.forget();
    else if (written !== undefined && sent !== undefined && session === this.session)
      this.known.learn(holds ? facts : new FetchedDocs(), written, locked.xid);
    // If the chain has not changed, no other process waits for the lock.
    this.isAlone = locked.head.hash === this.left;
    this.left = head.hash;
  }

  /**
   * Runs the batch before it locks the head, so that other servers need not wait for it. It checks the versions of its
   * documents again under the lock. Returns undefined if that is not possible; then the batch runs under the lock.
   */
  private async decideAhead(
    units: readonly PendingUnit[],
    signal: AbortSignal,
  ): Promise<BatchAhead | undefined> {
    const session = await this.connected(signal);
    // Versions compare over one connection. A pooler can switch to another.
    if (session.pooled) return undefined;
    const facts = new FetchedDocs();
    const obtain = (keys: readonly DocKey[]) => {
      const unknown = this.known.lend(keys, facts);
      this.work.fetched += unknown.length;
      return fetchVersions(session, unknown, facts);
    };
    try {
      return await session.until(signal, async () => {
        await obtain(declaredNeeds(units));
        const batch = await runUnits(units, undefined, facts, obtain);
        return { session, facts, batch, statements: preSealStatements(batch, facts.has) };
      });
    } catch (error) {
      if (error instanceof HeadNeeded) return undefined;
      if (signal.aborted || !isConnectionLoss(error)) throw error;
      this.drop();
      return undefined;
    }
  }

  /**
   * Locks the head. If an idle connection has died, another one is as good before any write. A batch that ran ahead
   * over the old connection then runs again, because the new one may lead to another database.
   */
  private async begin(
    units: readonly PendingUnit[],
    ahead: BatchAhead | undefined,
    signal: AbortSignal,
  ): Promise<Begun> {
    const acknowledged = this.acknowledged.newest;
    for (let kept = this.session !== undefined; ; kept = false) {
      const session = await this.connected(signal);
      const facts = session === ahead?.session ? ahead.facts : new FetchedDocs();
      let holds = false;
      const read = async () => {
        if (facts !== ahead?.facts) return await fetchFacts(session, declaredNeeds(units), facts);
        const changed = await recheckVersions(session, facts);
        holds = changed.length === 0;
        this.known.unlearn(changed);
      };
      try {
        const locked = await session.until(signal, () => lockHeadAndRead(session, acknowledged, read));
        return { session, locked, facts, holds };
      } catch (error) {
        this.drop();
        if (!kept || signal.aborted || !isConnectionLoss(error)) throw error;
      }
    }
  }

  private async connected(signal: AbortSignal): Promise<PgSession> {
    if (this.session !== undefined && !this.session.dead) return this.session;
    const session = await PgSession.openPatiently(this.url, { signal, settings: WRITER_SETTINGS });
    try {
      await session.until(signal, () => assertTail(session.client, this.acknowledged));
    } catch (error) {
      session.abandon();
      throw error;
    }
    // The new connection may lead to another database.
    this.known.forget();
    this.session = session;
    return session;
  }

  private drop(): void {
    this.session?.abandon();
    this.session = undefined;
  }

  private async hasLanded(sent: PendingCommit, time_left_ms: number): Promise<boolean> {
    const limit = timeLimit(time_left_ms);
    try {
      for (;;) {
        try {
          const session = await this.connected(limit.signal);
          return await session.until(limit.signal, () => isCommitted(session, sent));
        } catch (error) {
          this.drop();
          if (limit.signal.aborted || !isConnectionLoss(error)) throw outcomeUnknown();
        }
        await pauseFor(50);
      }
    } finally {
      limit.clear();
    }
  }

  /** Commits each unit separately, so that one bad value does not fail the others. */
  private async oneByOne(units: readonly PendingUnit[], callers: WaitingCallers): Promise<void> {
    for (const pending of units) {
      try {
        await this.commit([pending], callers);
      } catch (error) {
        pending.outcome = { ok: false, error };
      }
    }
  }

  private stall(): void {
    if (this.stalled) return;
    this.stalled = true;
    void this.probe();
  }

  private async probe(): Promise<void> {
    while (!this.closed) {
      await idlePause(PROBE_EVERY_MS);
      const limit = timeLimit(PROBE_MS);
      this.probing = limit;
      try {
        const session = await this.connected(limit.signal);
        await session.until(limit.signal, () => testHeadLock(session));
        break;
      } catch (error) {
        this.drop();
        // Waiting does not fix this. The next batch reports it.
        if (error instanceof SvcError && error.code === "corrupt") break;
      } finally {
        limit.clear();
      }
    }
    this.stalled = false;
    if (this.closed) this.drop();
  }
}
