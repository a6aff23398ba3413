/**
 * Reads a request body into one buffer. If no byte has arrived yet, the parser hands the body over directly; the
 * events, buffers and turns of a stream would cost a tenth of an intent.
 */
import { IncomingMessage } from "node:http";

/** Undefined if the client disconnected before it sent the complete body. */
type Body = Uint8Array | undefined;
type Take = (body: Body) => void;

export function readRequestBody(request: IncomingMessage): Promise<Body> {
  return new Promise((resolve) => {
    if (request.destroyed) resolve(undefined);
    else if (!(request instanceof BufferedRequest && request.handTo(resolve))) gather(request, resolve);
  });
}

export class BufferedRequest extends IncomingMessage {
  private taker: Take | undefined;
  private readonly chunks: Buffer[] = [];

  /** Returns false if part of the body has arrived already: that part and the rest then come through the stream. */
  handTo(take: Take): boolean {
    if (this.readableLength > 0 || this.complete) return false;
    this.taker = take;
    return true;
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const { taker, chunks } = this;
    if (taker === undefined) return super.push(chunk, encoding);
    if (chunk === null) taker(joined(chunks));
    else chunks.push(chunk);
    return true;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    super._destroy(error, done);
    if (!this.complete) this.taker?.(undefined);
  }
}

function gather(request: IncomingMessage, take: Take): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => take(joined(chunks)));
  request.on("close", () => {
    // Node reports a second resolve of the same promise to the process, which takes longer than this whole function.
    if (!request.readableEnded) take(undefined);
  });
}

function joined(chunks: Buffer[]): Uint8Array {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}
