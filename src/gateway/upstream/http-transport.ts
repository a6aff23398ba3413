/**
 * Transport to a tool server over Streamable HTTP, through the egress guard. It adds two things to the SDK's transport:
 * a size limit for responses, and an immediate error for a request whose stream ends without a response.
 */
import {
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import { settleWithin } from "../../kernel/timeout.ts";
import { LOST_CODE, LOST_RESPONSE, NotSentError } from "./failure.ts";
import { removeOwnMeta } from "./reserved-meta.ts";

type Send = typeof globalThis.fetch;
/** The same options. The inner transport's type is only stricter about undefined members. */
type InnerOptions = NonNullable<Parameters<StreamableHTTPClientTransport["send"]>[1]>;

const BYE_MS = 1_000;
const MAX_ANSWER_BYTES = 32 * 1_048_576;

export class RemoteTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly hasPerRequestStream = true;

  private readonly inner: StreamableHTTPClientTransport;
  private readonly waiting = new Set<string | number>();

  constructor(url: string, headers: Readonly<Record<string, string>>, send: Send) {
    this.inner = new StreamableHTTPClientTransport(new URL(url), {
      fetch: bounded(send),
      requestInit: { headers: { ...headers } },
    });
    this.inner.onclose = () => this.onclose?.();
    this.inner.onerror = (error) => this.onerror?.(error);
    this.inner.onmessage = (message) => {
      if (!("method" in message) && message.id !== undefined) this.waiting.delete(message.id);
      this.onmessage?.(removeOwnMeta(message));
    };
  }

  get sessionId(): string | undefined {
    return this.inner.sessionId;
  }

  setProtocolVersion = (version: string): void => this.inner.setProtocolVersion(version);

  start(): Promise<void> {
    return this.inner.start();
  }

  async send(message: JSONRPCMessage, options?: TransportSendOptions): Promise<void> {
    const given = (options ?? {}) as InnerOptions;
    if (!("method" in message) || !("id" in message)) return this.inner.send(message, given);
    const { id } = message;
    this.waiting.add(id);
    try {
      await this.inner.send(message, { ...given, onRequestStreamEnd: () => this.ended(id, options) });
    } catch (error) {
      this.waiting.delete(id);
      throw error;
    }
  }

  private ended(id: string | number, options: TransportSendOptions | undefined): void {
    options?.onRequestStreamEnd?.();
    if (!this.waiting.delete(id)) return;
    const error = {
      code: LOST_CODE,
      message: "the response stream ended without a response",
      data: LOST_RESPONSE,
    };
    this.onmessage?.({ jsonrpc: "2.0", id, error });
  }

  /** Terminates the session, with a short time limit. */
  async close(): Promise<void> {
    await settleWithin(this.inner.terminateSession(), BYE_MS);
    await this.inner.close();
  }
}

const LOOK_MS = 3_000;

/**
 * Detects a server of the older HTTP+SSE transport: it rejects posts to its URL, and answers a GET with an event that
 * contains the URL for posts. Returns advice for the user, or null for other servers.
 */
export async function detectOlderTransport(
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  send: Send,
): Promise<NotSentError | null> {
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), LOOK_MS);
  try {
    const { signal } = ended;
    const response = await send(url, { headers: { ...headers, accept: "text/event-stream" }, signal });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return null;
    const { value } = await response.body!.getReader().read();
    return /^event: ?endpoint\b/m.test(Buffer.from(value ?? []).toString()) ? new NotSentError(OLDER) : null;
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}

const OLDER =
  "it speaks HTTP+SSE, an older transport that the gateway does not support; set its Streamable HTTP URL (usually the one that ends in /mcp), or use a bridge as this upstream's command: npx -y supergateway --sse <its URL>";

/** Aborts a response over the limit: a complete response, or one event of a stream. */
function bounded(send: Send): Send {
  return async (input, init) => {
    const response = await send(input, init);
    if (response.body === null) return response;
    const events = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(limiter(events)), { status, statusText, headers });
  };
}

function limiter(events: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  return new TransformStream({
    transform(chunk, controller) {
      const cut = events ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).lastIndexOf("\n\n") : -1;
      size = cut < 0 ? size + chunk.length : chunk.length - cut;
      if (size > MAX_ANSWER_BYTES)
        controller.error(new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`));
      else controller.enqueue(chunk);
    },
  });
}
