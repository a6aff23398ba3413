/**
 * A refusal is often ready before the body has arrived. Answering then closes a connection that its client still
 * writes to, and the client sees a broken pipe in place of the answer. The rest is therefore read and thrown
 * away first, up to a limit.
 */
import type { IncomingMessage } from "node:http";
import { LIMITS } from "../kernel/limits.ts";

export function discardUnread(request: IncomingMessage): Promise<void> | undefined {
  const { headers } = request;
  const has_body = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!has_body || request.complete || request.readableEnded || request.destroyed) return undefined;
  return new Promise((resolve) => {
    let left = LIMITS.discard_bytes;
    const enough = setTimeout(stop, LIMITS.discard_ms);
    function count(chunk: Buffer): void {
      left -= chunk.length;
      if (left < 0) stop();
    }
    function stop(): void {
      clearTimeout(enough);
      request.off("data", count).off("end", stop).off("close", stop).off("error", stop);
      resolve();
    }
    request.on("data", count).once("end", stop).once("close", stop).once("error", stop).resume();
  });
}
