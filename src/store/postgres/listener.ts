/**
 * Hears of other processes' commits. While the connection is down nothing is heard, so everybody is
 * woken when it comes back; a heartbeat finds out when it is down and nobody said so.
 */
import { LIMITS } from "../../kernel/limits.ts";
import { Session } from "./session.ts";
import { CHANNEL } from "./statements.ts";
import { idlePause, type TimeLimit, timeLimit } from "./time-limit.ts";

const HEARTBEAT_MS = 5_000;
const ANSWER_MS = LIMITS.store_deadline_ms * 0.8;
const RETRY_MS = 300;

export class Listener {
  private readonly url: string;
  private readonly wake: () => void;
  private session: Session | undefined;
  private waiting: TimeLimit | undefined;
  private closed = false;

  constructor(url: string, wake: () => void) {
    this.url = url;
    this.wake = wake;
  }

  /** Listens from when this resolves; afterwards it looks after itself. */
  async start(): Promise<void> {
    const session = await this.connect();
    void this.keepUp(session);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.waiting?.expire();
    await this.session?.end();
  }

  private async keepUp(first: Session): Promise<void> {
    for (let session: Session | undefined = first; !this.closed; session = await this.tryConnect()) {
      if (session === undefined) await idlePause(RETRY_MS);
      else {
        this.wake();
        await this.untilLost(session);
      }
    }
  }

  private async untilLost(session: Session): Promise<void> {
    const lost = new Promise<void>((resolve) => session.client.once("end", () => resolve()));
    while (!session.dead) {
      await Promise.race([lost, idlePause(HEARTBEAT_MS)]);
      if (!session.dead) await this.ask(session).catch(() => session.abandon());
    }
  }

  private async ask(session: Session): Promise<void> {
    await this.limited((signal) => session.until(signal, () => session.client.query("SELECT 1")));
  }

  private async tryConnect(): Promise<Session | undefined> {
    return this.connect().catch(() => undefined);
  }

  private async connect(): Promise<Session> {
    const session = await this.limited((signal) =>
      Session.open(this.url, { signal, setup: `LISTEN ${CHANNEL}` }),
    );
    session.client.on("notification", this.wake);
    this.session = session;
    if (this.closed) await session.end();
    return session;
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
