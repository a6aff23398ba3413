/**
 * One WebSocket of a caller. Each message is an operation, answered as its HTTP route would answer. Messages run
 * concurrently, up to a maximum. The server reads no further messages while the reader is behind.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { RawData, WebSocket } from "ws";
import { runInSlices } from "../../child-process/event-loop-slices.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { invalidError, messageOf, SvcError, TooManyError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import { type ApiCaller, JsonText } from "../../operations/pipeline/operation.ts";
import { type HttpRow, REPLAYED_HEADER, STREAM_HEADERS_HEADER } from "../api/http-row.ts";
import { readRequest } from "../api/read-request.ts";
import type { HttpDeps } from "../deps.ts";
import { type RefusalCause, refusalOf } from "../refusal.ts";
import { readJsonBody } from "../request/json-body.ts";
import { routeOf } from "../routes/operation-routes.ts";
import { idOf, leadingIdOf, type MessageId, readMessage, TOO_LARGE } from "./messages.ts";

export interface StreamParts extends HttpDeps {
  nextRequestId(): string;
  isClosing(): boolean;
}

/** Close codes of RFC 6455, and one for a credential that has ended. */
const CLOSE = { going_away: 1001, unreadable: 1007, credential: 4401 } as const;
const STOPPING = "the server is stopping; open a new connection";

interface Answer {
  status: number;
  /** JSON text, or its UTF-8. */
  body: string | Uint8Array;
  /** Headers that the HTTP answer would have: of an error, or of a repeated answer. For clients that ask for them. */
  headers?: Readonly<Record<string, string>> | undefined;
  cause?: RefusalCause | undefined;
}

export class StreamConnection {
  private readonly parts: StreamParts;
  private readonly socket: WebSocket;
  /** The connection below the WebSocket. */
  private readonly wire: Duplex;
  private isCorked = false;
  private readonly request: IncomingMessage;
  private readonly open = new Set<MessageId>();
  private readonly gone = new AbortController();
  private in_flight = 0;
  private whenIdle: (() => void) | undefined;

  constructor(parts: StreamParts, socket: WebSocket, wire: Duplex, request: IncomingMessage) {
    this.parts = parts;
    this.socket = socket;
    this.wire = wire;
    this.request = request;
    socket.on("message", (data) => void this.take(bytesOf(data)).catch((error) => this.fail(error)));
    socket.on("close", () => this.gone.abort());
    // The close event follows.
    socket.on("error", () => {});
  }

  /** Answers the messages in progress, then closes. */
  async stop(): Promise<void> {
    if (this.in_flight > 0) await new Promise<void>((resolve) => (this.whenIdle = resolve));
    this.socket.close(CLOSE.going_away, STOPPING);
  }

  terminate(): void {
    this.socket.terminate();
  }

  private async take(bytes: Uint8Array): Promise<void> {
    const arrived = performance.now();
    if (bytes.length > SERVICE_LIMITS.body_bytes) {
      await this.reply(leadingIdOf(bytes), this.refused(TOO_LARGE), undefined, arrived, null);
      return;
    }
    let message: JsonValue;
    try {
      const reading = readJsonBody(bytes);
      message = reading instanceof Promise ? await reading : reading;
    } catch (error) {
      const id = idOfRefused(bytes);
      if (id === undefined) this.socket.close(CLOSE.unreadable, "the message is not valid JSON");
      else await this.reply(id, this.refused(error), undefined, arrived, null);
      return;
    }
    await this.answer(message, arrived);
  }

  private async answer(message: JsonValue, arrived: number): Promise<void> {
    const id = idOf(message);
    let principal: CallerPrincipal | null = null;
    let row: HttpRow | undefined;
    let answer: Answer;
    const isRepeated = id !== null && this.open.has(id);
    if (!isRepeated) this.open.add(id);
    const isOver = this.in_flight >= SERVICE_LIMITS.stream_in_flight;
    this.in_flight += isOver ? 0 : 1;
    try {
      const asked = this.parts.authenticate(this.request.headers.authorization);
      // Await only promises here and below: every message takes this path, and an await costs a turn.
      principal = asked instanceof Promise ? await asked : asked;
      this.parts.app.quotas?.admit(principal);
      if (this.parts.isClosing())
        throw new SvcError("unavailable", STOPPING, { cause_code: "server_stopping" });
      if (isRepeated)
        throw invalidError(`id: ${JSON.stringify(id)} is already being answered; choose another id`);
      if (isOver)
        throw new TooManyError(`at most ${SERVICE_LIMITS.stream_in_flight} messages can be in progress`, 1);
      const { row: found, raw } = readMessage(message);
      row = found;
      const { input, complaint } = readRequest(row, raw);
      let headers: Answer["headers"];
      const caller = this.caller(principal, () => {
        headers = { [REPLAYED_HEADER]: "true" };
      });
      const result = (await dispatchOperation(row.op, caller, input, complaint)) as object;
      const text = textOf(result);
      answer = {
        status: row.also.find(({ is }) => is(result))?.status ?? row.status,
        body: text instanceof Promise ? await text : text,
        headers,
      };
    } catch (error) {
      answer = this.refused(error);
    }
    const behind = this.reply(id, answer, row, arrived, principal);
    if (behind !== undefined) await behind;
    this.in_flight -= isOver ? 0 : 1;
    if (!isRepeated) this.open.delete(id);
    if (answer.cause?.code === "unauthenticated")
      this.socket.close(CLOSE.credential, "the credential has ended");
    if (this.in_flight === 0) this.whenIdle?.();
  }

  private caller(principal: CallerPrincipal, replayed: () => void): ApiCaller {
    const { app, authenticate } = this.parts;
    const again = () => authenticate(this.request.headers.authorization);
    return { app, principal, again, signal: this.gone.signal, replayed };
  }

  private refused(error: unknown): Answer {
    const { status, body, headers, cause } = refusalOf(this.parts.app, error);
    return { status, body: JSON.stringify(body), headers, cause };
  }

  /** A promise, if the reader is behind, that resolves when the connection has room for the next answer. */
  private reply(
    id: MessageId,
    { status, body, headers, cause }: Answer,
    row: HttpRow | undefined,
    arrived: number,
    principal: CallerPrincipal | null,
  ): Promise<void> | undefined {
    const { socket } = this;
    this.cork();
    const more =
      headers === undefined || this.request.headers[STREAM_HEADERS_HEADER] === undefined
        ? ""
        : `,"headers":${JSON.stringify(headers)}`;
    let taken: (() => void) | undefined;
    // The callback of a message runs when the connection has taken it.
    const head = `{"id":${JSON.stringify(id)},"status":${status},"body":`;
    const message =
      typeof body === "string"
        ? `${head}${body}${more}}`
        : Buffer.concat([Buffer.from(head), body, Buffer.from(`${more}}`)]);
    socket.send(message, { binary: false }, () => taken?.());
    this.parts.answered?.({
      method: row?.method ?? "GET",
      path: row === undefined ? STREAM_PATH : row.path,
      route: row === undefined ? STREAM_PATH : routeOf(row),
      status,
      ms: performance.now() - arrived,
      principal: principal?.name ?? null,
      request_id: this.parts.nextRequestId(),
      ...cause,
    });
    if (socket.bufferedAmount < SERVICE_LIMITS.stream_buffer_bytes) return undefined;
    socket.pause();
    return new Promise<void>((resolve) => (taken = resolve)).then(() => {
      if (socket.bufferedAmount < SERVICE_LIMITS.stream_buffer_bytes) socket.resume();
    });
  }

  /** Collects the answers of one turn of the event loop into one write: calls of one commit end together. */
  private cork(): void {
    if (this.isCorked) return;
    this.isCorked = true;
    this.wire.cork();
    setImmediate(() => {
      this.isCorked = false;
      this.wire.uncork();
    });
  }

  private fail(error: unknown): void {
    this.parts.app.log.error("unexpected failure", {
      error: messageOf(error),
      stack: (error as Error)?.stack,
    });
    this.socket.terminate();
  }
}

/**
 * The id of a message that is JSON but breaks a rule of requests, such as a repeated name; null if it has none.
 * Undefined for text that is not JSON.
 */
function idOfRefused(bytes: Uint8Array): MessageId | undefined {
  try {
    return idOf(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue);
  } catch {
    return undefined;
  }
}

export const STREAM_PATH = "/v1/stream";

function bytesOf(data: RawData): Uint8Array {
  if (Array.isArray(data)) return Buffer.concat(data);
  return data instanceof ArrayBuffer ? new Uint8Array(data) : data;
}

function textOf(answer: object): string | Uint8Array | Promise<string> {
  if (answer instanceof JsonText) return answer.body;
  if (!isLargeValue(answer as JsonValue)) return JSON.stringify(answer);
  return runInSlices(jsonTextInSteps(answer as JsonValue));
}
