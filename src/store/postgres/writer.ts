/**
 * The one connection that writes, and what becomes of a batch when it breaks. A batch is answered as
 * done only after its COMMIT was, or after it was found in the database, and it is answered in its callers'
 * time: nothing is begun that would end after they have gone. A server that hangs costs one batch its time,
 * and from then on callers are refused at once until a probe gets through.
 */
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { declaredNeeds, type Pending } from "../batch.ts";
import { Facts, runUnits } from "./facts.ts";
import { failure, isConnectionLoss, isValueError, notInTime, outcomeUnknown, sqlState } from "./failures.ts";
import {
  begin,
  commitNothing,
  fetchFacts,
  hasLanded,
  type Locked,
  type Sent,
  statementsOf,
  touch,
  writeAndCommit,
} from "./rounds.ts";
import { Session } from "./session.ts";
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

export class Writer {
  private readonly url: string;
  private readonly told: Told;
  private session: Session | undefined;
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
    const facts = new Facts();
    const { session, locked } = await this.begin(units, facts, signal);
    let sent: Sent | undefined;
    let refused: SvcError | undefined;
    let head = locked.head;
    try {
      await session.until(signal, async () => {
        const batch = await runUnits(units, locked.head, facts, (keys) => fetchFacts(session, keys, facts));
        if (batch.isEmpty) return await commitNothing(session);
        const statements = statementsOf(batch, locked);
        leave();
        head = batch.head;
        sent = { last: batch.records.at(-1), xid: locked.xid };
        refused = await writeAndCommit(session, statements);
      });
    } catch (error) {
      this.drop();
      if (sent === undefined) throw error;
      if (!(await this.hasLanded(sent, answer_by - performance.now()))) throw error;
    }
    if (refused !== undefined) throw refused;
    if (sent !== undefined) this.told.note(head);
  }

  /** A connection may have died while nobody used it; before anything was written, another is as good. */
  private async begin(
    units: readonly Pending[],
    facts: Facts,
    signal: AbortSignal,
  ): Promise<{ session: Session; locked: Locked }> {
    const needs = declaredNeeds(units);
    const told = this.told.newest;
    for (let kept = this.session !== undefined; ; kept = false) {
      const session = await this.connected(signal);
      try {
        return { session, locked: await session.until(signal, () => begin(session, { needs, facts, told })) };
      } catch (error) {
        this.drop();
        if (!kept || signal.aborted || !isConnectionLoss(error)) throw error;
      }
    }
  }

  private async connected(signal: AbortSignal): Promise<Session> {
    if (this.session !== undefined && !this.session.dead) return this.session;
    const session = await Session.openPatiently(this.url, { signal, settings: WRITER_SETTINGS });
    try {
      await session.until(signal, () => assertTail(session.client, this.told));
    } catch (error) {
      session.abandon();
      throw error;
    }
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
