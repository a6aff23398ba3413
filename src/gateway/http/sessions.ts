/**
 * Sessions of older protocol revisions. A session belongs to the principal and the endpoint that opened it. Other
 * callers get the same error as for an unknown session. Idle sessions are closed.
 */
import type { ServerResponse } from "node:http";
import type { Server } from "@modelcontextprotocol/server";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { notFoundError, SvcError } from "../../kernel/errors.ts";
import type { CallerQuotas } from "../../operations/pipeline/quotas.ts";
import { type DirectHandler, SessionTransport } from "./session-transport.ts";

export interface McpSession {
  readonly principal: string;
  readonly transport: SessionTransport;
  readonly server: Server;
  /** The protocol revision negotiated at the start. */
  version(): string | undefined;
  touched_ms: number;
  /** Whether the credential that opened the stream is still valid. */
  stillValid: () => boolean;
}

export interface OpenedPeer {
  server: Server;
  /** Answers tool calls without the SDK, if the endpoint supports that. */
  direct?: DirectHandler;
  close(): void;
}

const IDLE_MS = 30 * 60_000;
const MAX_SESSIONS = 10_000;
const MAX_PER_PRINCIPAL = 1_000;

export class McpSessions {
  private readonly env: RuntimeEnv;
  private readonly quotas: CallerQuotas | undefined;
  private readonly sessions = new Map<string, McpSession>();
  private readonly perPrincipal = new Map<string, number>();
  /** Streams of clients without sessions, each with a check of its credential. */
  private readonly streams = new Map<ServerResponse, () => boolean>();

  constructor(env: RuntimeEnv, quotas?: CallerQuotas) {
    this.env = env;
    this.quotas = quotas;
  }

  async open(
    principal: CallerPrincipal,
    stillValid: () => boolean,
    opened: () => OpenedPeer,
  ): Promise<McpSession> {
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
    principal: CallerPrincipal,
    stillValid: () => boolean,
    { server, direct, close }: OpenedPeer,
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

  /**
   * Closes the principal's longest idle session if a limit is reached, because clients often leave without closing
   * theirs.
   */
  private async makeRoom({ id }: CallerPrincipal): Promise<void> {
    const full = () =>
      (this.perPrincipal.get(id) ?? 0) >= MAX_PER_PRINCIPAL || this.sessions.size >= MAX_SESSIONS;
    if (!full()) return;
    const idle = [...this.sessions.values()]
      .filter(({ principal, transport }) => principal === id && !transport.busy)
      .sort((a, b) => a.touched_ms - b.touched_ms);
    await idle[0]?.server.close();
    if (full())
      throw new SvcError("too_many", "too many open sessions; end some, or wait until idle ones expire");
  }

  /** Returns whether the session existed. */
  private forget({ transport, principal }: McpSession): boolean {
    if (!this.sessions.delete(transport.sessionId)) return false;
    const left = (this.perPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) this.perPrincipal.delete(principal);
    else this.perPrincipal.set(principal, left);
    return true;
  }

  /** Throws the same `not_found` for a session that never existed, has ended, or belongs to another principal. */
  find(id: string, principal: CallerPrincipal): McpSession {
    const session = this.sessions.get(id);
    if (session === undefined || session.principal !== principal.id || session.transport.closed) {
      throw notFoundError("unknown session; initialize a new one", "unknown_session");
    }
    session.touched_ms = this.env.elapsed();
    return session;
  }

  get size(): number {
    return this.sessions.size;
  }

  /** Registers a stream without a session, which also ends with its credential. */
  watch(stream: ServerResponse, stillValid: () => boolean): void {
    this.streams.set(stream, stillValid);
    stream.once("close", () => this.streams.delete(stream));
  }

  /** Closes idle sessions, and sessions and streams with an invalid credential. */
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
