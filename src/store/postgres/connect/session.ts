/**
 * One connection to PostgreSQL that can be abandoned at any time: its callers get an error at once, even if the server
 * never responds again.
 */
import { Socket } from "node:net";
import pg from "pg";
import { SvcError } from "../../../kernel/errors.ts";
import { notInTime, sqlState } from "./failures.ts";
import { firstPrimary, hostsOf, NotPrimary } from "./hosts.ts";
import { type PgSettings, settingsSql } from "./settings.ts";
import { pauseFor } from "./time-limit.ts";

export interface PgSessionOptions {
  /** Aborts the connection attempt. */
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
  /** The last warning from the server, for operations that must finish without one. */
  warning: string | undefined;
  /**
   * The timeline of the server's log. Each promotion starts a new one, where old transaction ids mean nothing. Null on
   * a standby.
   */
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

  /** Connects. If the URL names several hosts, connects to the primary. */
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

  /** Connects, and waits for a free slot if the server allows no more connections now. */
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
      await pauseFor(RETRY_MS);
    }
  }

  /**
   * Whether a pooler sits in between and changes the server connection with each transaction. Then session state
   * (settings, prepared statements, LISTEN) is unreliable.
   */
  get pooled(): boolean {
    return this.isPooled;
  }

  /** The id of the server process, as the other side reports it. */
  get processId(): number {
    // The driver has the process id, its types do not.
    return (this.client as typeof this.client & { processID: number }).processID;
  }

  get dead(): boolean {
    return this.ended;
  }

  /**
   * Begins a transaction, and applies the settings if the session does not keep them. Send it `together` with the first
   * statements.
   */
  begin(how: string): Promise<unknown> {
    const begun = [this.client.query(how)];
    if (this.pooled) begun.push(this.client.query(settingsSql(this.settings, "transaction")));
    return Promise.all(begun);
  }

  /** Returns the statement for use as a prepared one. Behind a pooler, removes its name. */
  prepared<S extends { name?: string }>(statement: S): S {
    return this.pooled ? { ...statement, name: undefined } : statement;
  }

  /** Runs the work. If the signal aborts first, abandons the connection and the work. */
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

  /** Sends all statements of `send` in one write. The results arrive one by one. */
  together<T>(send: () => T): T {
    this.socket.cork();
    try {
      return send();
    } finally {
      this.socket.uncork();
    }
  }

  /** Drops the connection without notice. The server rolls back any open transaction once it detects this. */
  abandon(): void {
    this.ended = true;
    this.socket.destroy();
  }

  async end(): Promise<void> {
    if (this.ended) return;
    this.ended = true;
    // A server that does not respond must not delay the close.
    const patience = setTimeout(() => this.socket.destroy(), 1_000);
    await this.client.end().catch(() => {});
    clearTimeout(patience);
  }

  private async connect(): Promise<void> {
    const { client, settings } = this;
    await client.connect();
    const { rows } = await client.query<{ pid: number; timeline: string | null }>(GREETING);
    this.timeline = rows[0]!.timeline;
    // A server's greeting contains the id of its own process; a pooler's contains a different number.
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
    // The driver's error contains the URL with its password.
    throw new SvcError(
      "invalid",
      "the database URL cannot be read; write postgres://user:password@host:5432/database",
    );
  }
}
