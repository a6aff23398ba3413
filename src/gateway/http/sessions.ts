/**
 * The sessions of older revisions. A session belongs to the principal that opened it, at the endpoint
 * where it was opened: to everybody else it does not exist. Those that their clients no longer use are ended.
 */
import type { ServerResponse } from "node:http";
import type { Server } from "@modelcontextprotocol/server";
import type { Quotas } from "../../app/door/quotas.ts";
import type { Env } from "../../kernel/env.ts";
import { notFound, SvcError } from "../../kernel/errors.ts";
import type { Principal } from "../../model/roles.ts";
import { type DirectHandler, SessionTransport } from "./session-transport.ts";

export interface McpSession {
  readonly principal: string;
  readonly transport: SessionTransport;
  readonly server: Server;
  /** The revision agreed on when it was opened. */
  version(): string | undefined;
  touched_ms: number;
  /** Whether the credential that opened its stream still counts. */
  stillValid: () => boolean;
}

export interface Opened {
  server: Server;
  /** Answers tool calls without the SDK, where the endpoint can. */
  direct?: DirectHandler;
  close(): void;
}

const IDLE_MS = 30 * 60_000;
const MAX_SESSIONS = 10_000;
const MAX_PER_PRINCIPAL = 1_000;

export class McpSessions {
  private readonly env: Env;
  private readonly quotas: Quotas | undefined;
  private readonly sessions = new Map<string, McpSession>();
  private readonly perPrincipal = new Map<string, number>();
  /** Streams of clients that have no session, with whether their credential still counts. */
  private readonly streams = new Map<ServerResponse, () => boolean>();

  constructor(env: Env, quotas?: Quotas) {
    this.env = env;
    this.quotas = quotas;
  }

  async open(principal: Principal, stillValid: () => boolean, opened: () => Opened): Promise<McpSession> {
    await this.makeRoom(principal);
    const release = this.quotas?.hold("sessions", principal) ?? (() => {});
    try {
      return await this.opened(principal, stillValid, opened(), release);
    } catch (error) {
      release();
      throw error;
    }
  }

  private async opened(
    principal: Principal,
    stillValid: () => boolean,
    { server, direct, close }: Opened,
    release: () => void,
  ): Promise<McpSession> {
    const held = this.perPrincipal.get(principal.id) ?? 0;
    const transport = new SessionTransport(this.env.uuid());
    transport.direct = direct ?? null;
    const session: McpSession = {
      principal: principal.id,
      transport,
      server,
      version: () => server.getNegotiatedProtocolVersion(),
      touched_ms: this.env.elapsed(),
      stillValid,
    };
    this.sessions.set(transport.sessionId, session);
    this.perPrincipal.set(principal.id, held + 1);
    server.onclose = () => {
      close();
      if (this.forget(session)) release();
    };
    await server.connect(transport);
    return session;
  }

  /** Clients that leave without a word would use up what there is: the one that was idle the longest goes. */
  private async makeRoom({ id }: Principal): Promise<void> {
    const full = () =>
      (this.perPrincipal.get(id) ?? 0) >= MAX_PER_PRINCIPAL || this.sessions.size >= MAX_SESSIONS;
    if (!full()) return;
    const idle = [...this.sessions.values()]
      .filter(({ principal, transport }) => principal === id && !transport.busy)
      .sort((a, b) => a.touched_ms - b.touched_ms);
    await idle[0]?.server.close();
    if (full())
      throw new SvcError("too_many", "too many open sessions; end some, or wait until idle ones are");
  }

  /** Whether it was there to be forgotten. */
  private forget({ transport, principal }: McpSession): boolean {
    if (!this.sessions.delete(transport.sessionId)) return false;
    const left = (this.perPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) this.perPrincipal.delete(principal);
    else this.perPrincipal.set(principal, left);
    return true;
  }

  /** Throws not_found alike for a session that never was, that ended, and that is another principal's. */
  find(id: string, principal: Principal): McpSession {
    const session = this.sessions.get(id);
    if (session === undefined || session.principal !== principal.id || session.transport.closed) {
      throw notFound("unknown session; initialize a new one", "unknown_session");
    }
    session.touched_ms = this.env.elapsed();
    return session;
  }

  get size(): number {
    return this.sessions.size;
  }

  /** A stream without a session, which ends with its credential too. */
  watch(stream: ServerResponse, stillValid: () => boolean): void {
    this.streams.set(stream, stillValid);
    stream.once("close", () => this.streams.delete(stream));
  }

  /** Ends idle sessions, and sessions and streams that outlived their credential. */
  async sweep(): Promise<void> {
    for (const [stream, stillValid] of this.streams) if (!stillValid()) stream.destroy();
    const now = this.env.elapsed();
    const due = [...this.sessions.values()].filter(
      (session) => (!session.transport.busy && now - session.touched_ms > IDLE_MS) || !session.stillValid(),
    );
    await Promise.all(due.map(({ server }) => server.close()));
  }

  endStreams(): void {
    for (const { transport } of this.sessions.values()) transport.endStream();
  }

  async close(): Promise<void> {
    await Promise.all([...this.sessions.values()].map(({ server }) => server.close()));
  }
}
