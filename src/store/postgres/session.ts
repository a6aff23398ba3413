/**
 * One connection to PostgreSQL that can always be let go of at once: whoever waits on it is told as
 * soon as it is abandoned, even if the server never says another word.
 */
import { Socket } from "node:net";
import pg from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { notInTime } from "./failures.ts";

export interface SessionOptions {
  /** Aborting it while the connection is being made gives up. */
  signal: AbortSignal;
  /** SQL that prepares the connection, run before anything else. */
  setup: string;
}

const KEEPALIVE_MS = 10_000;

/** What every connection is told, by whichever way it is made. */
export function clientConfig(url: string): pg.ClientConfig {
  return {
    connectionString: url,
    fallback_application_name: "svc",
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
  };
}

export class Session {
  readonly client: pg.Client;
  private readonly socket: Socket;
  private ended = false;
  /** The last warning the server sent, for what may only be trusted without one. */
  warning: string | undefined;

  private constructor(client: pg.Client, socket: Socket) {
    this.client = client;
    this.socket = socket;
    client.on("error", () => this.abandon());
    client.on("end", () => this.abandon());
    client.on("notice", (notice) => {
      if (notice.code?.startsWith("01")) this.warning = notice.message ?? "";
    });
  }

  static async open(url: string, { signal, setup }: SessionOptions): Promise<Session> {
    if (signal.aborted) throw notInTime();
    const socket = new Socket();
    const session = new Session(makeClient(url, socket), socket);
    try {
      await session.until(signal, async () => {
        await session.client.connect();
        await session.client.query(setup);
      });
      return session;
    } catch (error) {
      session.abandon();
      throw error;
    }
  }

  get dead(): boolean {
    return this.ended;
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
}

function makeClient(url: string, socket: Socket): pg.Client {
  try {
    return new pg.Client({ ...clientConfig(url), stream: () => socket, pipeline: true });
  } catch {
    // The driver's error quotes the URL, password and all.
    throw new SvcError(
      "invalid",
      "the database URL cannot be read; write postgres://user:password@host:5432/database",
    );
  }
}
