/**
 * Streamable HTTP transport for one session of an older revision, on plain Node responses. An answer is JSON unless a
 * message must precede it; then the response becomes an event stream. Each answer goes only to the exchange that asked.
 */
import type { ServerResponse } from "node:http";
import {
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResponse,
  type JSONRPCMessage,
  type MessageExtraInfo,
  type ProtocolError,
  type RequestId,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { CallCancellation } from "../call/cancellation.ts";

interface Exchange {
  response: ServerResponse;
  waiting: Set<RequestId>;
  batch: boolean;
  /** Answers that wait for the rest of their batch. Null after the response became a stream. */
  answers: JSONRPCMessage[] | null;
}

/**
 * Answers a request without the SDK. Used for the most frequent method, whose answer is passed on unchanged. Rejects
 * with a protocol error.
 */
export type DirectHandler = (params: JsonObject, request: DirectRequest) => Promise<JsonObject>;

export interface DirectRequest {
  id: RequestId;
  auth: MessageExtraInfo["authInfo"];
  cancellation: CallCancellation;
}

/** Limit of buffered output for a client that does not read. */
const MAX_UNREAD_BYTES = 8 * 1_048_576;
const KEEP_ALIVE_MS = 15_000;

export class SessionTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage, extra?: MessageExtraInfo) => void;
  readonly sessionId: string;

  /** Set for sessions whose tool calls use the fast path. */
  direct: DirectHandler | null = null;

  private readonly exchanges = new Map<RequestId, Exchange>();
  private readonly directCalls = new Map<RequestId, CallCancellation>();
  private stream: ServerResponse | null = null;
  private keepAlive: NodeJS.Timeout | undefined;
  private over = false;

  constructor(sessionId: string) {
    this.sessionId = sessionId;
  }

  async start(): Promise<void> {}

  get closed(): boolean {
    return this.over;
  }

  /** Whether a stream or a request that the client waits for is open. */
  get busy(): boolean {
    return this.stream !== null || this.exchanges.size > 0;
  }

  /** Accepts the messages of one HTTP request. Returns false if one reuses the id of a request in progress. */
  receive(
    messages: readonly JSONRPCMessage[],
    batch: boolean,
    response: ServerResponse,
    extra: MessageExtraInfo,
  ): boolean {
    const waiting = new Set<RequestId>();
    for (const message of messages) {
      if (!("method" in message && "id" in message)) continue;
      if (waiting.has(message.id) || this.exchanges.has(message.id)) return false;
      waiting.add(message.id);
    }
    response.setHeader("mcp-session-id", this.sessionId);
    if (waiting.size === 0) response.writeHead(202).end();
    const exchange: Exchange = { response, waiting, batch, answers: [] };
    for (const id of waiting) this.exchanges.set(id, exchange);
    for (const message of messages) {
      if (this.direct !== null && "method" in message && message.method === "tools/call" && "id" in message) {
        void this.answerDirectly(this.direct, message.id, (message.params ?? {}) as JsonObject, extra);
      } else this.onmessage?.(message, extra);
    }
    return true;
  }

  private async answerDirectly(
    direct: DirectHandler,
    id: RequestId,
    params: JsonObject,
    extra: MessageExtraInfo,
  ): Promise<void> {
    const cancellation = new CallCancellation();
    this.directCalls.set(id, cancellation);
    let message: JSONRPCMessage;
    try {
      message = {
        jsonrpc: "2.0",
        id,
        result: await direct(params, { id, auth: extra.authInfo, cancellation }),
      };
    } catch (thrown) {
      const { code, message: text, data } = thrown as ProtocolError;
      message = {
        jsonrpc: "2.0",
        id,
        error: { code, message: text, ...(data === undefined ? {} : { data }) },
      };
    }
    this.directCalls.delete(id);
    if (!cancellation.cancelled) this.answer(message);
  }

  /** Opens the session's stream for notifications outside any request. Returns false if there is one already. */
  openStream(response: ServerResponse): boolean {
    if (this.stream !== null) return false;
    this.stream = response;
    response.setHeader("mcp-session-id", this.sessionId);
    beginStream(response);
    this.keepAlive = setInterval(() => response.write(": keep-alive\n\n"), KEEP_ALIVE_MS).unref();
    response.once("close", () => {
      if (this.stream !== response) return;
      this.stream = null;
      clearInterval(this.keepAlive);
    });
    return true;
  }

  endStream(): void {
    this.stream?.end();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    if (!("method" in message)) return this.answer(message);
    const exchange =
      options?.relatedRequestId === undefined ? undefined : this.exchanges.get(options.relatedRequestId);
    if (exchange === undefined) {
      if (this.stream !== null) writeEvent(this.stream, message);
      return;
    }
    this.upgrade(exchange);
    writeEvent(exchange.response, message);
  }

  private answer(message: JSONRPCMessage): void {
    const { id } = message as { id?: RequestId };
    const exchange = id === undefined ? undefined : this.exchanges.get(id);
    if (id === undefined || exchange === undefined) return;
    this.exchanges.delete(id);
    exchange.waiting.delete(id);
    if (exchange.answers === null) writeEvent(exchange.response, message);
    else exchange.answers.push(message);
    if (exchange.waiting.size > 0) return;
    const { response, answers, batch } = exchange;
    if (response.destroyed) return;
    if (answers === null) response.end();
    else response.writeHead(200, JSON_HEADERS).end(JSON.stringify(batch ? answers : answers[0]));
  }

  private upgrade(exchange: Exchange): void {
    const { response, answers } = exchange;
    if (answers === null || response.destroyed) return;
    exchange.answers = null;
    beginStream(response);
    for (const message of answers) writeEvent(response, message);
  }

  /** Forgets a cancelled request, which gets no answer. */
  settle(id: RequestId): void {
    this.directCalls.get(id)?.cancel();
    const exchange = this.exchanges.get(id);
    if (exchange === undefined) return;
    this.exchanges.delete(id);
    exchange.waiting.delete(id);
    if (exchange.waiting.size > 0 || exchange.response.destroyed) return;
    if (exchange.answers === null) exchange.response.end();
    else if (exchange.answers.length === 0) exchange.response.writeHead(202).end();
    else exchange.response.writeHead(200, JSON_HEADERS).end(JSON.stringify(exchange.answers));
  }

  async close(): Promise<void> {
    if (this.over) return;
    this.over = true;
    clearInterval(this.keepAlive);
    this.stream?.end();
    for (const { response } of this.exchanges.values()) {
      if (!response.headersSent) response.writeHead(404, JSON_HEADERS);
      response.end();
    }
    this.exchanges.clear();
    for (const cancellation of this.directCalls.values()) cancellation.cancel();
    this.onclose?.();
  }
}

const JSON_HEADERS = { "content-type": "application/json" };

function beginStream(response: ServerResponse): void {
  response.writeHead(200, {
    "content-type": "text/event-stream",
    "cache-control": "no-cache, no-transform",
    connection: "keep-alive",
    "x-accel-buffering": "no",
  });
  response.flushHeaders();
}

function writeEvent(response: ServerResponse, message: JSONRPCMessage): void {
  if (response.destroyed || response.writableEnded) return;
  response.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
  if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
}

/**
 * Parses a JSON-RPC message, or returns undefined. The SDK silently drops messages outside its schema, and their sender
 * would wait forever. Therefore all but the plainest messages are validated by that schema here.
 */
export function readMessage(value: JsonValue | undefined): JSONRPCMessage | undefined {
  if (!isJsonObject(value) || value["jsonrpc"] !== "2.0") return undefined;
  const { id, method, params, result, error } = value;
  const hasId = typeof id === "string" || (typeof id === "number" && Number.isInteger(id));
  const message = value as JSONRPCMessage;
  if (typeof method === "string") {
    if (params !== undefined && !isJsonObject(params)) return undefined;
    if (id !== undefined && !hasId) return undefined;
    const plain =
      params?.["_meta"] === undefined && Object.keys(value).every((name) => REQUEST_MEMBERS.has(name));
    return plain || isJSONRPCRequest(message) || isJSONRPCNotification(message) ? message : undefined;
  }
  if (!hasId || !(isJsonObject(result) || isJsonObject(error))) return undefined;
  return isJSONRPCResponse(message) ? message : undefined;
}

const REQUEST_MEMBERS: ReadonlySet<string> = new Set(["jsonrpc", "id", "method", "params"]);
