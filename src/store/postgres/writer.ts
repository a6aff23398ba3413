/**
 * The one connection that writes, and what becomes of a batch when it breaks. A batch is answered as
 * done only after its COMMIT was, or after it was found in the database; a server that hangs costs one
 * batch its time, and from then on callers are refused at once until a probe gets through.
 */
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { declaredNeeds, type Pending } from "../batch.ts";
import { Facts, runUnits } from "./facts.ts";
import { failure, isConnectionLoss, isValueError, notInTime, outcomeUnknown, sqlState } from "./failures.ts";
import {
  begin,
  fetchFacts,
  hasLanded,
  type Locked,
  type Sent,
  statementsOf,
  touch,
  writeAndCommit,
} from "./rounds.ts";
import { Session } from "./session.ts";
import { WRITER_SETUP } from "./statements.ts";
import { assertTail } from "./tail.ts";
import { idlePause, pause, type TimeLimit, timeLimit } from "./time-limit.ts";

const BATCH_MS = LIMITS.store_deadline_ms * 0.8;
/** Further time to find out what became of a COMMIT that was not answered. */
const LOOK_UP_MS = LIMITS.store_deadline_ms * 0.16;
const PROBE_MS = 2_000;
const PROBE_EVERY_MS = 300;
const LOCK_TIMEOUT = "55P03";

export class Writer {
  private readonly url: string;
  private session: Session | undefined;
  private stalled = false;
  private probing: TimeLimit | undefined;
  private closed = false;

  constructor(url: string) {
    this.url = url;
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

  async commit(units: readonly Pending[], leave: () => void): Promise<void> {
    if (this.stalled) throw notInTime();
    const limit = timeLimit(BATCH_MS);
    try {
      await this.attempt(units, limit.signal, leave);
    } catch (error) {
      this.drop();
      if (limit.signal.aborted || sqlState(error) === LOCK_TIMEOUT) this.stall();
      else if (isValueError(error) && units.length > 1) return await this.oneByOne(units, leave);
      throw failure(error);
    } finally {
      limit.clear();
    }
  }

  async close(): Promise<void> {
    this.closed = true;
    this.probing?.expire();
    const session = this.session;
    this.session = undefined;
    await session?.end();
  }

  private async attempt(units: readonly Pending[], signal: AbortSignal, leave: () => void): Promise<void> {
    const started = performance.now();
    const facts = new Facts();
    const { session, locked } = await this.begin(units, facts, signal);
    let sent: Sent | undefined;
    let refused: SvcError | undefined;
    try {
      await session.until(signal, async () => {
        const batch = await runUnits(units, locked.head, facts, (keys) => fetchFacts(session, keys, facts));
        if (batch.isEmpty) {
          await session.client.query("ROLLBACK");
          return;
        }
        const statements = statementsOf(batch, locked);
        leave();
        sent = { last: batch.records.at(-1), xid: locked.xid };
        refused = await writeAndCommit(session, statements);
      });
    } catch (error) {
      this.drop();
      if (sent === undefined) throw error;
      const time_left_ms = BATCH_MS + LOOK_UP_MS - (performance.now() - started);
      if (!(await this.hasLanded(sent, time_left_ms))) throw error;
    }
    if (refused !== undefined) throw refused;
  }

  /** A connection may have died while nobody used it; before anything was written, another is as good. */
  private async begin(
    units: readonly Pending[],
    facts: Facts,
    signal: AbortSignal,
  ): Promise<{ session: Session; locked: Locked }> {
    const needs = declaredNeeds(units);
    for (let kept = this.session !== undefined; ; kept = false) {
      const session = await this.connected(signal);
      try {
        return { session, locked: await session.until(signal, () => begin(session, needs, facts)) };
      } catch (error) {
        this.drop();
        if (!kept || signal.aborted || !isConnectionLoss(error)) throw error;
      }
    }
  }

  private async connected(signal: AbortSignal): Promise<Session> {
    if (this.session !== undefined && !this.session.dead) return this.session;
    const session = await Session.open(this.url, { signal, setup: WRITER_SETUP });
    try {
      await session.until(signal, () => assertTail(session.client));
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
          if (error instanceof SvcError && error.code === "corrupt") throw error;
          if (limit.signal.aborted || !isConnectionLoss(error)) throw outcomeUnknown();
        }
        await pause(50);
      }
    } finally {
      limit.clear();
    }
  }

  /** One unit's value must not cost its neighbours their answer. */
  private async oneByOne(units: readonly Pending[], leave: () => void): Promise<void> {
    for (const pending of units) {
      try {
        await this.commit([pending], leave);
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
