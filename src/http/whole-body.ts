/**
 * Bodies as a whole. Whoever asks our own server's request for its body, before anything of it has come, is handed it by the
 * parser: the events, buffers and turns of a stream, which a request is otherwise, cost a tenth of an intent.
 */
import { IncomingMessage } from "node:http";

/** Undefined where the client left before it had sent all. */
type Body = Uint8Array | undefined;
type Take = (body: Body) => void;

export function wholeBody(request: IncomingMessage): Promise<Body> {
  return new Promise((resolve) => {
    if (request.destroyed) resolve(undefined);
    else if (!(request instanceof WholeBodyRequest && request.handTo(resolve))) gather(request, resolve);
  });
}

export class WholeBodyRequest extends IncomingMessage {
  private taker: Take | undefined;
  private readonly chunks: Buffer[] = [];

  /** False where some of it has come already: that is in the stream, and the rest will follow it there. */
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
    // Node reports a promise that is resolved again to the process, which takes longer than all of this.
    if (!request.readableEnded) take(undefined);
  });
}

function joined(chunks: Buffer[]): Uint8Array {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}
