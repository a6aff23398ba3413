/**
 * One connection to PostgreSQL that can always be let go of at once: whoever waits on it is told as
 * soon as it is abandoned, even if the server never says another word.
 */
import { Socket } from "node:net";
import pg from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { notInTime, sqlState } from "./failures.ts";
import { firstPrimary, hostsOf, NotPrimary } from "./hosts.ts";
import { type PgSettings, settingsSql } from "./settings.ts";
import { pause } from "./time-limit.ts";

export interface PgSessionOptions {
  /** Aborting it while the connection is being made gives up. */
  signal: AbortSignal;
  settings?: PgSettings;
}

const KEEPALIVE_MS = 10_000;
const TOO_MANY_CONNECTIONS = "53300";
const RETRY_MS = 200;
const GREETING = `SELECT pg_backend_pid() AS pid,
  CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`;

export class PgSession {
  readonly client: pg.Client;
  /** The last warning the server sent, for what may only be trusted without one. */
  warning: string | undefined;
  /** Of the server's log; each promotion begins one, on which old transaction numbers mean nothing. Null on a standby. */
  timeline: string | null = null;
  private readonly socket: Socket;
  private readonly settings: PgSettings;
  private ended = false;
  private isPooled = false;

  private constructor(client: pg.Client, socket: Socket, settings: PgSettings) {
    this.client = client;
    this.socket = socket;
    this.settings = settings;
    client.on("error", () => this.abandon());
    client.on("end", () => this.abandon());
    client.on("notice", (notice) => {
      if (notice.code?.startsWith("01")) this.warning = notice.message ?? "";
    });
  }

  /** Where the URL names several hosts, to the one of them that takes writes. */
  static async open(url: string, { signal, settings = {} }: PgSessionOptions): Promise<PgSession> {
    const hosts = hostsOf(url);
    if (hosts.length === 1) return PgSession.openAt(url, signal, settings);
    return firstPrimary(url, hosts, signal, async (one, within) => {
      const session = await PgSession.openAt(one, within, settings);
      if (session.timeline !== null) return session;
      session.abandon();
      throw new NotPrimary();
    });
  }

  private static async openAt(url: string, signal: AbortSignal, settings: PgSettings): Promise<PgSession> {
    if (signal.aborted) throw notInTime();
    const socket = new Socket();
    const session = new PgSession(makeClient(url, socket), socket, settings);
    try {
      await session.until(signal, () => session.connect());
      return session;
    } catch (error) {
      session.abandon();
      throw error;
    }
  }

  /** As `open`; where the server allows no more connections now, waits for one of them to end. */
  static async openPatiently(url: string, options: PgSessionOptions): Promise<PgSession> {
    let refused: unknown;
    for (;;) {
      try {
        return await PgSession.open(url, options);
      } catch (error) {
        if (sqlState(error) === TOO_MANY_CONNECTIONS) refused = error;
        else if (refused === undefined || !options.signal.aborted) throw error;
      }
      if (options.signal.aborted) throw refused;
      await pause(RETRY_MS);
    }
  }

  /**
   * A pooler stands between us and the server, and lends its connections from transaction to transaction: nothing
   * that belongs to a session (settings, prepared statements, LISTEN) can be relied on.
   */
  get pooled(): boolean {
    return this.isPooled;
  }

  /** Of the process that serves this connection, as the other side says. */
  get processId(): number {
    return (this.client as unknown as { processID: number }).processID;
  }

  get dead(): boolean {
    return this.ended;
  }

  /** Begins a transaction, with the settings where they do not stand already. To be sent `together` with what follows. */
  begin(how: string): Promise<unknown> {
    const begun = [this.client.query(how)];
    if (this.pooled) begun.push(this.client.query(settingsSql(this.settings, "transaction")));
    return Promise.all(begun);
  }

  /** A statement that is prepared once and kept, or sent whole where it could not be found again. */
  prepared<S extends { name?: string }>(statement: S): S {
    return this.pooled ? { ...statement, name: undefined } : statement;
  }

  /** Runs the work; when the signal aborts first, the connection is abandoned and the work with it. */
  async until<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const giveUp = (): void => this.abandon();
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return await work();
    } catch (error) {
      throw signal.aborted ? notInTime() : error;
    } finally {
      signal.removeEventListener("abort", giveUp);
    }
  }

  /** Sends everything that `send` asks for in one write; the answers come as the server makes them. */
  together<T>(send: () => T): T {
    this.socket.cork();
    try {
      return send();
    } finally {
      this.socket.uncork();
    }
  }

  /** Lets go without a word to the server, which rolls back whatever was open when it notices. */
  abandon(): void {
    this.ended = true;
    this.socket.destroy();
  }

  async end(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    // A server that does not answer the goodbye must not hold up whoever closes.
    const patience = setTimeout(() => this.socket.destroy(), 1_000);
    await this.client.end().catch(() => {});
    clearTimeout(patience);
  }

  private async connect(): Promise<void> {
    const { client, settings } = this;
    await client.connect();
    const { rows } = await client.query<{ pid: number; timeline: string | null }>(GREETING);
    this.timeline = rows[0]!.timeline;
    // The server greets with the number of the process that serves us; a pooler greets with one of its own.
    this.isPooled = rows[0]!.pid !== this.processId;
    if (!this.isPooled && Object.keys(settings).length > 0)
      await client.query(settingsSql(settings, "session"));
  }
}

function makeClient(url: string, socket: Socket): pg.Client {
  try {
    return new pg.Client({
      connectionString: url,
      fallback_application_name: "svc",
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_MS,
      stream: () => socket,
      pipeline: true,
    });
  } catch {
    // The driver's error quotes the URL, password and all.
    throw new SvcError(
      "invalid",
      "the database URL cannot be read; write postgres://user:password@host:5432/database",
    );
  }
}
