/**
 * Discards the unread rest of a request body, up to a limit, before a refusal is sent. Otherwise the connection closes
 * while the client still writes to it, and the client sees a broken pipe instead of the response.
 */
import type { IncomingMessage } from "node:http";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";

export function discardUnread(request: IncomingMessage): Promise<void> | undefined {
  const { headers } = request;
  const has_body = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
  if (!has_body || request.complete || request.readableEnded || request.destroyed) return undefined;
  return new Promise((resolve) => {
    let left = SERVICE_LIMITS.discard_bytes;
    const enough = setTimeout(stop, SERVICE_LIMITS.discard_ms);
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
