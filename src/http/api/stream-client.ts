/**
 * Sends operations over one WebSocket to `/v1/stream`. A request that the stream cannot take is the caller's to send
 * over HTTP.
 */
import type { WebSocket } from "ws";
import type { EgressClient } from "../../egress/egress.ts";
import { systemEnv } from "../../kernel/env.ts";
import { SvcError } from "../../kernel/errors.ts";
import { parseJsonBytes } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { STREAM_HEADERS_HEADER } from "./http-row.ts";
import type { StreamMessage } from "./write-request.ts";

export interface StreamClientOptions {
  /** Base URL of the server, without `/v1`. */
  url: string;
  key: string;
  egress: Pick<EgressClient, "check" | "connectLookup">;
}

export interface StreamAnswer {
  status: number;
  /** Headers of the HTTP answer that say more than the body does. Their names are in lower case. */
  headers: Readonly<Record<string, string>>;
  body: unknown;
}

interface AskOptions {
  timeout_ms: number;
  signal?: AbortSignal | undefined;
}

interface PendingAnswer {
  resolve(answer: StreamAnswer): void;
  reject(error: Error): void;
}

/** After a refused upgrade, requests go over HTTP for this long. */
const PAUSE_MS = 30_000;
const HANDSHAKE_MS = 5_000;

export class StreamClient {
  private readonly options: StreamClientOptions;
  private readonly host: string;
  private socket: WebSocket | undefined;
  private connecting: Promise<WebSocket | null> | undefined;
  private readonly pending = new Map<number, PendingAnswer>();
  private last_id = 0;
  private paused_until = 0;
  private heard_at = 0;
  private closed = false;

  constructor(options: StreamClientOptions) {
    this.options = options;
    this.host = new URL(options.url).host;
  }

  /**
   * Asks the server. Null if nothing was sent: the server has no stream, the message is too large, or too many are in
   * progress. An error of code `delivery_failed` means that the answer was lost.
   */
  async ask(message: StreamMessage, { timeout_ms, signal }: AskOptions): Promise<StreamAnswer | null> {
    if (this.pending.size >= SERVICE_LIMITS.stream_in_flight) return null;
    const id = ++this.last_id;
    const text = JSON.stringify({ id, ...message });
    if (Buffer.byteLength(text) > SERVICE_LIMITS.body_bytes) return null;
    const socket = await this.connected();
    if (socket === null || socket.bufferedAmount > SERVICE_LIMITS.stream_buffer_bytes) return null;
    if (this.pending.size >= SERVICE_LIMITS.stream_in_flight) return null;
    return this.exchange(socket, { id, text }, { timeout_ms, signal });
  }

  close(): void {
    this.closed = true;
    this.socket?.close();
  }

  private exchange(
    socket: WebSocket,
    { id, text }: { id: number; text: string },
    { timeout_ms, signal }: AskOptions,
  ): Promise<StreamAnswer> {
    return new Promise((resolve, reject) => {
      const sent_at = systemEnv.elapsed();
      const done = () => {
        this.pending.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
      };
      const fail = (error: Error) => {
        done();
        reject(error);
      };
      const stop = () => fail(this.lost("the request was cancelled", signal?.reason));
      // This timer also keeps the process alive until the answer arrives.
      const timer = setTimeout(() => {
        fail(this.lost(`no answer from ${this.host} within ${timeout_ms} ms`));
        if (this.heard_at < sent_at) socket.terminate();
      }, timeout_ms);
      if (signal?.aborted) {
        stop();
        return;
      }
      signal?.addEventListener("abort", stop, { once: true });
      this.pending.set(id, {
        reject: fail,
        resolve(answer) {
          done();
          resolve(answer);
        },
      });
      socket.send(text);
    });
  }

  private async connected(): Promise<WebSocket | null> {
    if (this.socket !== undefined) return this.socket;
    if (this.closed || systemEnv.elapsed() < this.paused_until) return null;
    this.connecting ??= this.connect().finally(() => {
      this.connecting = undefined;
    });
    return this.connecting;
  }

  private async connect(): Promise<WebSocket | null> {
    const { url, key, egress } = this.options;
    // The same request over HTTP explains the refusal.
    if ((await egress.check(url)) !== null) return this.pause();
    const { default: Socket } = await import("ws");
    const socket = new Socket(`${url.replace(/^http/, "ws")}/v1/stream`, {
      headers: { authorization: `Bearer ${key}`, [STREAM_HEADERS_HEADER]: "1" },
      handshakeTimeout: HANDSHAKE_MS,
      perMessageDeflate: false,
      maxPayload: SERVICE_LIMITS.answer_bytes,
      lookup: egress.connectLookup,
      // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED cannot turn verification off.
      rejectUnauthorized: true,
    });
    let isComplete = false;
    socket.once("upgrade", (response) => {
      // An idle connection must not keep the agent's process alive.
      response.socket.unref();
      // Without the headers a caller would not learn that an answer is a repeated one.
      isComplete = response.headers[STREAM_HEADERS_HEADER] !== undefined;
    });
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once("open", () => resolve(true));
      // The close event follows.
      socket.on("error", () => {});
      socket.once("close", () => resolve(false));
    });
    if (!isOpen || !isComplete || this.closed) {
      socket.close();
      return this.pause();
    }
    this.socket = socket;
    const heard = () => {
      this.heard_at = systemEnv.elapsed();
    };
    socket.on("ping", heard);
    socket.on("message", (data: Buffer) => {
      heard();
      this.take(socket, data);
    });
    socket.once("close", () => this.dropped());
    return socket;
  }

  private take(socket: WebSocket, data: Buffer): void {
    const answer = readMessage(data);
    // A server that does not keep to the protocol gets no further request here.
    if (answer === null) {
      this.pause();
      socket.terminate();
      return;
    }
    this.pending.get(answer.id)?.resolve(answer);
  }

  private pause(): null {
    this.paused_until = systemEnv.elapsed() + PAUSE_MS;
    return null;
  }

  private dropped(): void {
    this.socket = undefined;
    for (const { reject } of [...this.pending.values()])
      reject(this.lost(`${this.host} closed the connection before it answered`));
  }

  private lost(message: string, cause?: unknown): SvcError {
    return new SvcError("delivery_failed", message, { cause });
  }
}

function readMessage(data: Buffer): (StreamAnswer & { id: number }) | null {
  try {
    const { id, status, headers = {}, body } = parseJsonBytes(data) as Record<string, unknown>;
    const isAnswer = typeof id === "number" && typeof status === "number" && typeof headers === "object";
    return isAnswer ? { id, status, headers: headers as Record<string, string>, body } : null;
  } catch {
    return null;
  }
}
