/**
 * A tool server reached over Streamable HTTP, through the egress guard. Two things are added to the SDK's
 * transport: an answer may not be larger than memory allows, and a request whose answer stream ends
 * without an answer is told so at once instead of at its timeout.
 */
import {
  type JSONRPCMessage,
  StreamableHTTPClientTransport,
  type Transport,
  type TransportSendOptions,
} from "@modelcontextprotocol/client";
import { atMost } from "../../kernel/deadline.ts";
import { LOST, LOST_CODE, NotSent } from "./failure.ts";
import { removeOwnMeta } from "./own-meta.ts";

type Send = typeof globalThis.fetch;
/** The same options; the inner transport's type is only stricter about what is left out. */
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
    const error = { code: LOST_CODE, message: "the answer's stream ended without an answer", data: LOST };
    this.onmessage?.({ jsonrpc: "2.0", id, error });
  }

  /** Gives the session back, as far as the server still cares. */
  async close(): Promise<void> {
    await atMost(this.inner.terminateSession(), BYE_MS);
    await this.inner.close();
  }
}

const LOOK_MS = 3_000;

/**
 * Servers of the transport before Streamable HTTP refuse what is posted to their address, and answer a GET with an
 * event that says where to post instead. What the person can do about one of them; null where it is something else.
 */
export async function olderTransport(
  { url, headers }: { url: string; headers: Readonly<Record<string, string>> },
  send: Send,
): Promise<NotSent | null> {
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), LOOK_MS);
  try {
    const { signal } = ended;
    const response = await send(url, { headers: { ...headers, accept: "text/event-stream" }, signal });
    if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return null;
    const { value } = await response.body!.getReader().read();
    return /^event: ?endpoint\b/m.test(Buffer.from(value ?? []).toString()) ? new NotSent(OLDER) : null;
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}

const OLDER =
  "it speaks HTTP+SSE, the transport before Streamable HTTP, which the gateway does not: name its Streamable HTTP address (mostly the one that ends in /mcp), or a bridge as this upstream's command: npx -y supergateway --sse <its address>";

/** Ends an answer that grows past the limit: a whole one, or one event of a stream. */
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
