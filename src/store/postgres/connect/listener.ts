/**
 * Listens for commits of other processes and reads the new head. A lost connection misses notifications, so all waiters
 * wake up when it returns; a heartbeat detects a silent loss. Behind a pooler, where LISTEN does not work, it polls
 * instead.
 */
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { AcknowledgedHead } from "../acknowledged-head.ts";
import { NOTIFY_CHANNEL } from "../statements.ts";
import { PgSession } from "./session.ts";
import { idlePause, type TimeLimit, timeLimit } from "./time-limit.ts";

const HEARTBEAT_MS = 5_000;
/** The polling interval without LISTEN. With LISTEN, notifications in quick succession share one read. */
const POLL_MS = 100;
const ANSWER_MS = SERVICE_LIMITS.store_deadline_ms * 0.8;
const RETRY_MS = 300;

/** Reads the head. `version` changes with every batch. A head that its last record does not confirm does not count. */
const LOOK = {
  name: "svc_look",
  text: `
  SELECT h.xmin::text AS version, l.seq + 1 AS records, l.hash,
    (SELECT t.hash FROM svc_ledger t WHERE t.seq = $1) AS there
  FROM svc_head h LEFT JOIN svc_ledger l ON l.seq = h.records - 1 AND l.hash = h.hash WHERE h.one`,
};

interface Look {
  version: string;
  records: string | null;
  hash: string | null;
  there: string | null;
}

interface Hearing {
  acknowledged: AcknowledgedHead;
  /** Whether that server process serves this process's writer, whose commits need no notification. */
  isOwn(process_id: number): boolean;
  wake(): void;
}

export class CommitListener {
  private readonly url: string;
  private readonly hearing: Hearing;
  private session: PgSession | undefined;
  private waiting: TimeLimit | undefined;
  private version: string | undefined;
  private stir = (): void => {};
  private closed = false;

  constructor(url: string, hearing: Hearing) {
    this.url = url;
    this.hearing = hearing;
  }

  /** Resolves once it listens. Afterwards it reconnects on its own. */
  async start(): Promise<void> {
    const session = await this.connect();
    void this.keepUp(session);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.waiting?.expire();
    await this.session?.end();
  }

  private async keepUp(first: PgSession): Promise<void> {
    for (let session: PgSession | undefined = first; !this.closed; session = await this.tryConnect()) {
      if (session === undefined) await idlePause(RETRY_MS);
      else {
        this.hearing.wake();
        await this.untilLost(session);
      }
    }
  }

  private async untilLost(session: PgSession): Promise<void> {
    session.client.once("end", () => this.stir());
    while (!session.dead) {
      await this.quiet(session.pooled ? POLL_MS : HEARTBEAT_MS);
      if (!session.dead) await this.look(session).catch(() => session.abandon());
    }
  }

  /** Waits until the time has passed or a notification arrives. */
  private quiet(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms).unref();
      this.stir = () => {
        this.stir = () => {};
        clearTimeout(timer);
        setTimeout(resolve, POLL_MS).unref();
      };
    });
  }

  private async look(session: PgSession): Promise<void> {
    const acknowledged = this.hearing.acknowledged.newest;
    const { rows } = await this.limited((signal) =>
      session.until(signal, () =>
        session.client.query<Look>({ ...session.prepared(LOOK), values: [acknowledged.records - 1] }),
      ),
    );
    const seen = rows[0];
    if (seen === undefined) return;
    const { records, hash, there } = seen;
    if (records !== null && hash !== null)
      this.hearing.acknowledged.noteSeen({ records: Number(records), hash }, { acknowledged, there });
    const is_new = seen.version !== this.version;
    this.version = seen.version;
    if (is_new && session.pooled) this.hearing.wake();
  }

  private async tryConnect(): Promise<PgSession | undefined> {
    return this.connect().catch(() => undefined);
  }

  private async connect(): Promise<PgSession> {
    const session = await this.limited((signal) => this.open(signal));
    session.client.on("notification", ({ processId }) => {
      if (this.hearing.isOwn(processId)) return;
      this.hearing.wake();
      this.stir();
    });
    this.session = session;
    if (this.closed) await session.end();
    return session;
  }

  private async open(signal: AbortSignal): Promise<PgSession> {
    const session = await PgSession.openPatiently(this.url, { signal });
    try {
      if (!session.pooled)
        await session.until(signal, () => session.client.query(`LISTEN ${NOTIFY_CHANNEL}`));
      return session;
    } catch (error) {
      session.abandon();
      throw error;
    }
  }

  private async limited<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const limit = timeLimit(ANSWER_MS);
    this.waiting = limit;
    try {
      return await work(limit.signal);
    } finally {
      limit.clear();
    }
  }
}
