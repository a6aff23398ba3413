/**
 * Requests and answers of a connection, matched by ids of our own. An answer settles its request once: a
 * second one, one that fits no request, and one that comes after the request was given up change nothing.
 */
import { type JSONRPCMessage, ProtocolError, SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import type { JsonObject } from "../../kernel/json.ts";
import type { Cancellation } from "../cancellation.ts";
import { NotSent } from "./failure.ts";

interface Pending {
  resolve(result: JsonObject): void;
  reject(error: Error): void;
}

export type Sender = (message: JSONRPCMessage) => Promise<void>;

interface Ask {
  method: string;
  params: JsonObject;
  timeout_ms: number;
  cancellation?: Cancellation | undefined;
}

/** Ours are texts and the SDK's are numbers, so both can share a connection. */
const PREFIX = "svc-";
const CANCEL_GRACE_MS = 250;

export class Correlator {
  private readonly pending = new Map<string, Pending>();
  private next = 0;

  /** Takes an answer that is ours; false for everything else. */
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

  ask(send: Sender, { method, params, timeout_ms, cancellation }: Ask): Promise<JsonObject> {
    if (cancellation?.cancelled) return Promise.reject(new NotSent("the call was cancelled"));
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
        // The upstream may already be done; what it still says counts.
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

  /** The connection is gone: no request will be answered any more. */
  close(): void {
    const error = new SdkError(SdkErrorCode.ConnectionClosed, "the connection was closed");
    for (const { reject } of [...this.pending.values()]) reject(error);
  }
}
