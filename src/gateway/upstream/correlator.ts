/**
 * Matches responses of a connection to requests by the gateway's own ids. Each request settles once. Duplicate, unknown
 * and late responses are ignored.
 */
import { type JSONRPCMessage, ProtocolError, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { CallCancellation } from "../call/cancellation.ts";
import { NotSentError } from "./failure.ts";

interface Pending {
  resolve(result: JsonObject): void;
  reject(error: Error): void;
}

export type SendMessage = (message: JSONRPCMessage) => Promise<void>;

interface Ask {
  method: string;
  params: JsonObject;
  timeout_ms: number;
  cancellation?: CallCancellation | undefined;
}

/** String ids, while the SDK uses numbers, so both can share a connection. */
const PREFIX = "svc-";
const CANCEL_GRACE_MS = 250;

export class RequestCorrelator {
  private readonly pending = new Map<string, Pending>();
  private next = 0;

  /** Handles a response to one of the gateway's own requests. Returns false for every other message. */
  take(message: JSONRPCMessage): boolean {
    if ("method" in message || typeof message.id !== "string" || !message.id.startsWith(PREFIX)) return false;
    const waiting = this.pending.get(message.id);
    if (waiting === undefined) return true;
    if ("result" in message && typeof message.result === "object" && message.result !== null) {
      waiting.resolve(message.result as JsonObject);
    } else if ("error" in message && typeof message.error === "object" && message.error !== null) {
      const { code, message: text, data } = message.error;
      waiting.reject(new ProtocolError(Number.isInteger(code) ? code : -32_603, String(text), data));
    } else waiting.reject(new Error("it answered with neither a result nor an error"));
    return true;
  }

  ask(send: SendMessage, { method, params, timeout_ms, cancellation }: Ask): Promise<JsonObject> {
    if (cancellation?.cancelled) return Promise.reject(new NotSentError("the call was cancelled"));
    const id = `${PREFIX}${++this.next}`;
    return new Promise((resolve, reject) => {
      const tellUpstream = (reason: string): void => {
        send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } }).catch(
          () => {},
        );
      };
      const giveUp = (reason: string) => waiting.reject(new SdkError(SdkErrorCode.RequestTimeout, reason));
      let timer = setTimeout(() => {
        tellUpstream("the call timed out");
        giveUp("the call timed out");
      }, timeout_ms);
      const keep = cancellation?.onCancel(() => {
        tellUpstream("the client cancelled the call");
        clearTimeout(timer);
        // The upstream may already be done, so its answer still counts for a short time.
        timer = setTimeout(() => giveUp("the client cancelled the call"), CANCEL_GRACE_MS);
      });
      const settle = (): void => {
        this.pending.delete(id);
        clearTimeout(timer);
        keep?.();
      };
      const waiting: Pending = {
        resolve(result) {
          settle();
          resolve(result);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      this.pending.set(id, waiting);
      send({ jsonrpc: "2.0", id, method, params }).catch((error: Error) =>
        this.pending.get(id)?.reject(error),
      );
    });
  }

  /** Rejects all pending requests, because the connection is closed. */
  close(): void {
    const error = new SdkError(SdkErrorCode.ConnectionClosed, "the connection was closed");
    for (const { reject } of [...this.pending.values()]) reject(error);
  }
}
