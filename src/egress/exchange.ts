/**
 * One HTTP/1.1 exchange with a checked host, streamed both ways. For callers that carry another program's request:
 * nothing is followed, added or retried, and TLS is always verified.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
} from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import { isIP, type Socket, connect as tcpConnect } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { SvcError } from "../kernel/errors.ts";
import { boundedBody, type ExchangeBounds, LateError } from "./bounded-body.ts";
import { EgressGuard, type HostLookup, systemErrorCode } from "./guard.ts";
import { EgressRefusedError } from "./refusal.ts";
import type { EgressSettings } from "./settings.ts";

export interface ExchangeRequest {
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly method: string;
  /** Path and query, encoded. */
  readonly target: string;
  /** Names and values in turn, in the order of the wire. */
  readonly headers: readonly string[];
  readonly body: Readable | Uint8Array | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * An answer whose body is still to be read, or a protocol upgrade with the open socket. Reading the body throws if the
 * host stalls or takes too long.
 */
export interface ExchangeAnswer {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Readable;
  readonly upgraded: { socket: Socket; head: Buffer } | undefined;
}

/** Nothing was sent: the host is refused or cannot be reached. */
export class NotSentError extends SvcError {
  constructor(message: string, cause: unknown) {
    super("delivery_failed", message, { cause });
    this.name = "NotSent";
  }
}

export const wasNotSent = (error: unknown): boolean =>
  error instanceof NotSentError || error instanceof EgressRefusedError;

export class GuardedExchange {
  private readonly guard: EgressGuard;
  private readonly agents: { http: HttpAgent; https: HttpsAgent };
  readonly bounds: ExchangeBounds;

  constructor(settings: EgressSettings, bounds: ExchangeBounds, lookup?: HostLookup) {
    this.bounds = bounds;
    this.guard = lookup === undefined ? new EgressGuard(settings) : new EgressGuard(settings, lookup);
    const options = {
      keepAlive: true,
      keepAliveMsecs: 1_000,
      timeout: 60_000,
      lookup: this.guard.connectLookup,
    };
    this.agents = {
      http: new HttpAgent(options),
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn verification off.
      https: new HttpsAgent({ ...options, rejectUnauthorized: true }),
    };
  }

  /**
   * Reason to refuse this host by its text alone, or null. Makes no lookup, because a lookup would already send the
   * name to a name server.
   */
  refusal(host: string): string | null {
    return this.guard.judgeHost(host)?.message ?? null;
  }

  /** Connects without TLS, for bytes that are passed on unread. */
  async connect(host: string, port: number): Promise<Socket> {
    const refused = this.guard.judgeHost(host);
    if (refused !== null) throw new EgressRefusedError(refused);
    const socket = tcpConnect({ host, port, lookup: this.guard.connectLookup, allowHalfOpen: true });
    return new Promise((resolve, reject) => {
      const fail = (error: unknown) => {
        socket.destroy();
        reject(error instanceof SvcError ? error : new NotSentError(unreachable(host, error), error));
      };
      socket.setTimeout(this.bounds.idle_ms, () => fail(noAnswer(host, this.bounds)));
      socket.once("error", fail);
      socket.once("connect", () => {
        socket.removeListener("error", fail);
        socket.setTimeout(0);
        socket.setNoDelay(true);
        resolve(socket);
      });
    });
  }

  async send(request: ExchangeRequest): Promise<ExchangeAnswer> {
    const { scheme, host, port, method, target, headers, body, signal } = request;
    const refused = this.guard.judgeHost(host);
    if (refused !== null) throw new EgressRefusedError(refused);
    const make = scheme === "https" ? httpsRequest : httpRequest;
    const out = make({
      host,
      port,
      method,
      path: target,
      headers: headers as string[],
      agent: this.agents[scheme],
      ...(scheme === "https" && isIP(host) === 0 ? { servername: host } : {}),
      ...(signal === undefined ? {} : { signal }),
    } as RequestOptions);
    const until = performance.now() + this.bounds.total_ms;
    const { message, upgraded } = await exchangeHeads(out, { host, body, until, bounds: this.bounds });
    return {
      status: message.statusCode!,
      headers: message.rawHeaders,
      body: upgraded === undefined ? boundedBody(message, host, { ...this.bounds, until }) : message,
      upgraded,
    };
  }

  close(): void {
    this.agents.http.destroy();
    this.agents.https.destroy();
  }
}

interface ReceivedAnswer {
  readonly message: IncomingMessage;
  readonly upgraded: ExchangeAnswer["upgraded"];
}

interface SentBody {
  readonly host: string;
  readonly body: ExchangeRequest["body"];
  readonly bounds: ExchangeBounds;
  /** When the whole exchange has to be over, on the monotonic clock. */
  readonly until: number;
}

/** Sends the body and waits for the head of the answer. While the host takes the body, it may be silent. */
function exchangeHeads(out: ClientRequest, { host, body, bounds, until }: SentBody): Promise<ReceivedAnswer> {
  return new Promise((resolve, reject) => {
    let connected = false;
    const timer = setTimeout(() => out.destroy(noAnswer(host, bounds)), bounds.idle_ms);
    if (body instanceof Readable)
      body.on("data", () => {
        if (performance.now() < until) timer.refresh();
      });
    out.once("socket", (socket: Socket) => {
      // A reused connection may have carried the request before it broke.
      if (!socket.connecting) connected = true;
      else socket.once("encrypted" in socket ? "secureConnect" : "connect", () => (connected = true));
    });
    const done = (message: IncomingMessage, upgraded?: ExchangeAnswer["upgraded"]) => {
      clearTimeout(timer);
      resolve({ message, upgraded });
    };
    out.once("response", (message) => done(message));
    out.once("upgrade", (message, socket, head) => done(message, { socket: socket as Socket, head }));
    out.on("error", (error) => {
      clearTimeout(timer);
      if (error instanceof SvcError) return reject(error);
      const text = connected
        ? `the connection to ${host} broke: ${systemErrorCode(error)}`
        : unreachable(host, error);
      reject(
        connected ? new SvcError("delivery_failed", text, { cause: error }) : new NotSentError(text, error),
      );
    });
    void writeBody(out, body);
  });
}

async function writeBody(out: ClientRequest, body: ExchangeRequest["body"]): Promise<void> {
  if (!(body instanceof Readable)) {
    out.end(body);
    return;
  }
  // A failure is the request's own error, which its answer reports. A server may answer before it has read all.
  await pipeline(body, out).catch(() => undefined);
}

const noAnswer = (host: string, { idle_ms }: ExchangeBounds): LateError =>
  new LateError(`no answer from ${host} within ${idle_ms} ms`);

const unreachable = (host: string, error: unknown): string =>
  `cannot reach ${host}: ${systemErrorCode(error)}`;
