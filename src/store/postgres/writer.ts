/**
 * The one connection that writes, and what becomes of a batch when it breaks. A batch is answered as
 * done only after its COMMIT was, or after it was found in the database, and it is answered in its callers'
 * time: nothing is begun that would end after they have gone. A server that hangs costs one batch its time,
 * and from then on callers are refused at once until a probe gets through.
 */
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Key } from "../../port/store.ts";
import { type Batch, declaredNeeds, HeadNeeded, type Pending } from "../batch.ts";
import { FetchedDocs, runUnits } from "./facts.ts";
import { failure, isConnectionLoss, isValueError, notInTime, outcomeUnknown, sqlState } from "./failures.ts";
import { KnownDocs } from "./known.ts";
import {
  begin,
  commitNothing,
  fetchFacts,
  fetchVersions,
  hasLanded,
  type Locked,
  recheck,
  type Sent,
  type Statement,
  statementsAhead,
  statementsBehind,
  statementsOf,
  touch,
  writeAndCommit,
} from "./rounds.ts";
import { PgSession } from "./session.ts";
import { WRITER_SETTINGS } from "./settings.ts";
import { assertTail } from "./tail.ts";
import { idlePause, pause, type TimeLimit, timeLimit } from "./time-limit.ts";
import type { Told } from "./told.ts";

const BATCH_MS = LIMITS.store_deadline_ms * 0.8;
/** Further time to find out what became of a COMMIT that was not answered. */
const LOOK_UP_MS = LIMITS.store_deadline_ms * 0.16;
/** How long before its callers are gone a batch is answered, one way or the other. */
const ANSWER_MS = LIMITS.store_deadline_ms - BATCH_MS - LOOK_UP_MS;
const PROBE_MS = 2_000;
const PROBE_EVERY_MS = 300;
const LOCK_TIMEOUT = "55P03";

/** Those who wait for a batch. */
export interface Callers {
  /** When they are gone, on the clock of performance.now. */
  until: number;
  /** To be called right before the bytes go out that cannot be taken back; throws when they have gone. */
  leave(): void;
}

/** A batch that was decided before the head was taken. */
interface Ahead {
  session: PgSession;
  facts: FetchedDocs;
  batch: Batch;
  statements: Statement[];
}

interface Begun {
  session: PgSession;
  locked: Locked;
  facts: FetchedDocs;
  /** Whether all that the batch was decided on ahead is as it was. */
  holds: boolean;
}

/** What batches have cost, for benches: how they were decided, and how long the head was held. */
export interface Work {
  under_lock: number;
  ahead: number;
  again: number;
  /** Documents that were read ahead; what is known from batches before is not. */
  fetched: number;
  records: number;
  /** CPU of this process from when the head was taken until the batch was sent: what it does while all others wait. */
  cpu_us: number;
  /** From when the head was taken until the commit was answered, by the clock. */
  held_ms: number;
}

/** What holds of a batch that was decided ahead needs only its place. */
function placed({ batch, statements }: Ahead, locked: Locked): { batch: Batch; statements: Statement[] } {
  if (batch.isEmpty) return { batch, statements };
  batch.seal(locked.head);
  return { batch, statements: [...statements, ...statementsBehind(batch, locked)] };
}

async function decided(
  units: readonly Pending[],
  session: PgSession,
  locked: Locked,
  facts: FetchedDocs,
): Promise<{ batch: Batch; statements: Statement[] }> {
  const batch = await runUnits(units, locked.head, facts, (keys) => fetchFacts(session, keys, facts));
  return { batch, statements: batch.isEmpty ? [] : statementsOf(batch, locked) };
}

export class Writer {
  readonly work: Work = { under_lock: 0, ahead: 0, again: 0, fetched: 0, records: 0, cpu_us: 0, held_ms: 0 };
  /** Whether the chain was found as the last batch had left it. */
  private isAlone = true;
  private left: string | undefined;
  private readonly known = new KnownDocs();
  private readonly url: string;
  private readonly told: Told;
  private session: PgSession | undefined;
  private stalled = false;
  private probing: TimeLimit | undefined;
  private closed = false;

  constructor(url: string, told: Told) {
    this.url = url;
    this.told = told;
  }

  /** Connects and looks at the tail of the ledger; throws `corrupt` when it is not what it should be. */
  async check(): Promise<void> {
    const limit = timeLimit(BATCH_MS);
    try {
      await this.connected(limit.signal);
    } finally {
      limit.clear();
    }
  }

  async commit(units: readonly Pending[], callers: Callers): Promise<void> {
    if (this.stalled) throw notInTime();
    const answer_by = callers.until - ANSWER_MS;
    const time_left_ms = answer_by - LOOK_UP_MS - performance.now();
    if (time_left_ms <= 0) throw notInTime();
    const limit = timeLimit(time_left_ms);
    try {
      await this.attempt(units, limit.signal, { answer_by, leave: callers.leave });
    } catch (error) {
      this.drop();
      if (limit.signal.aborted || sqlState(error) === LOCK_TIMEOUT) this.stall();
      else if (isValueError(error) && units.length > 1) return await this.oneByOne(units, callers);
      throw failure(error);
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

  private async attempt(
    units: readonly Pending[],
    signal: AbortSignal,
    { answer_by, leave }: { answer_by: number; leave(): void },
  ): Promise<void> {
    const ahead = this.isAlone ? undefined : await this.decideAhead(units, signal);
    const { session, locked, facts, holds } = await this.begin(units, ahead, signal);
    const locked_at = performance.now();
    const cpu = process.cpuUsage();
    let sent: Sent | undefined;
    let refused: SvcError | undefined;
    let head = locked.head;
    let written: Batch | undefined;
    try {
      await session.until(signal, async () => {
        const { batch, statements } =
          ahead !== undefined && holds ? placed(ahead, locked) : await decided(units, session, locked, facts);
        written = batch;
        if (batch.isEmpty) return await commitNothing(session);
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
    if (sent !== undefined) this.told.note(head);
    // Under the head nothing is read with its version; what a batch wrote there would be unknown.
    if (ahead === undefined) this.known.forget();
    else if (written !== undefined && sent !== undefined && session === this.session)
      this.known.learn(holds ? facts : new FetchedDocs(), written, locked.xid);
    // Whoever finds the chain as it was left has no other process to make room for.
    this.isAlone = locked.head.hash === this.left;
    this.left = head.hash;
  }

  /**
   * Decides the batch before the head is taken, on documents whose versions are looked at again when it is: other
   * servers need not wait for it. Undefined where that is not possible; then it is decided under the head.
   */
  private async decideAhead(units: readonly Pending[], signal: AbortSignal): Promise<Ahead | undefined> {
    const session = await this.connected(signal);
    // Versions are held against the database over one connection; a pooler may lend another one.
    if (session.pooled) return undefined;
    const facts = new FetchedDocs();
    const obtain = (keys: readonly Key[]) => {
      const unknown = this.known.lend(keys, facts);
      this.work.fetched += unknown.length;
      return fetchVersions(session, unknown, facts);
    };
    try {
      return await session.until(signal, async () => {
        await obtain(declaredNeeds(units));
        const batch = await runUnits(units, undefined, facts, obtain);
        return { session, facts, batch, statements: statementsAhead(batch) };
      });
    } catch (error) {
      if (error instanceof HeadNeeded) return undefined;
      if (signal.aborted || !isConnectionLoss(error)) throw error;
      this.drop();
      return undefined;
    }
  }

  /**
   * A connection may have died while it was not used; before anything was written, another is as good. What was decided
   * ahead over the old one is then decided anew: the database behind the new one may be another.
   */
  private async begin(
    units: readonly Pending[],
    ahead: Ahead | undefined,
    signal: AbortSignal,
  ): Promise<Begun> {
    const told = this.told.newest;
    for (let kept = this.session !== undefined; ; kept = false) {
      const session = await this.connected(signal);
      const facts = session === ahead?.session ? ahead.facts : new FetchedDocs();
      let holds = false;
      const read = async () => {
        if (facts !== ahead?.facts) return await fetchFacts(session, declaredNeeds(units), facts);
        const changed = await recheck(session, facts);
        holds = changed.length === 0;
        this.known.unlearn(changed);
      };
      try {
        const locked = await session.until(signal, () => begin(session, told, read));
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
      await session.until(signal, () => assertTail(session.client, this.told));
    } catch (error) {
      session.abandon();
      throw error;
    }
    // The database behind it may be another.
    this.known.forget();
    this.session = session;
    return session;
  }

  private drop(): void {
    this.session?.abandon();
    this.session = undefined;
  }

  private async hasLanded(sent: Sent, time_left_ms: number): Promise<boolean> {
    const limit = timeLimit(time_left_ms);
    try {
      for (;;) {
        try {
          const session = await this.connected(limit.signal);
          return await session.until(limit.signal, () => hasLanded(session, sent));
        } catch (error) {
          this.drop();
          if (limit.signal.aborted || !isConnectionLoss(error)) throw outcomeUnknown();
        }
        await pause(50);
      }
    } finally {
      limit.clear();
    }
  }

  /** One unit's value must not cost its neighbours their answer. */
  private async oneByOne(units: readonly Pending[], callers: Callers): Promise<void> {
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
        await session.until(limit.signal, () => touch(session));
        break;
      } catch (error) {
        this.drop();
        // Nothing that waiting would mend; the next batch says so itself.
        if (error instanceof SvcError && error.code === "corrupt") break;
      } finally {
        limit.clear();
      }
    }
    this.stalled = false;
    if (this.closed) this.drop();
  }
}
