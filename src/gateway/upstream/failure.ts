/**
 * Classifies a failed request to an upstream. Three results are possible: the upstream answered with an error, the
 * request was never sent, or its effect is unknown.
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { EgressRefusedError } from "../../egress/refusal.ts";
import { messageOf } from "../../kernel/errors.ts";

type UpstreamFailure =
  | { kind: "answered"; code: number; message: string; data: unknown }
  | { kind: "not_sent"; message: string }
  | { kind: "unknown"; message: string };

/** Nothing reached the upstream. */
export class NotSentError extends Error {
  constructor(why: string) {
    super(why);
    this.name = "NotSent";
  }
}

/** Marks the gateway's own error for a request whose response can no longer arrive. */
export const LOST_RESPONSE = Object.freeze({ lost: true });
export const LOST_CODE = -32_099;

export function failureOf(error: unknown): UpstreamFailure {
  if (error instanceof NotSentError) return { kind: "not_sent", message: error.message };
  if (error instanceof EgressRefusedError) return { kind: "not_sent", message: error.message };
  if (error instanceof ProtocolError) {
    if (error.data === LOST_RESPONSE) return { kind: "unknown", message: error.message };
    return { kind: "answered", code: error.code, message: error.message, data: error.data };
  }
  if (error instanceof SdkHttpError) return httpFailure(error);
  const refused = refusedConnection(error);
  if (refused !== undefined) return { kind: "not_sent", message: refused };
  if (error instanceof SdkError && error.code === SdkErrorCode.NotConnected) {
    return { kind: "not_sent", message: "it is not connected" };
  }
  return { kind: "unknown", message: messageOf(error) };
}

/** The reason why no connection was made, so that nothing can have arrived. Undefined if that is not certain. */
export function refusedConnection(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ECONNREFUSED" || code === "ENOTFOUND") return `no connection could be made (${code})`;
  }
  return undefined;
}

/** A 4xx status is a refusal before anything ran. After any other status the effect is unknown. */
function httpFailure(error: SdkHttpError): UpstreamFailure {
  const { status } = error;
  if (status >= 400 && status < 500)
    return { kind: "not_sent", message: `it refused the request: HTTP ${status}` };
  return { kind: "unknown", message: `it answered HTTP ${status}` };
}

export function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

/** Whether the URL does not accept posted messages. */
export function isRefused(error: unknown): boolean {
  return error instanceof SdkHttpError && [400, 404, 405].includes(error.status);
}

/** Whether the upstream forgot our session. It then refused the request before running it. */
export function isSessionGone(error: unknown): boolean {
  if (!(error instanceof SdkHttpError)) return false;
  if (error.status === 404) return true;
  // Many servers answer 400 to a forgotten session.
  return error.status === 400 && /session/i.test(String(error.data.text ?? ""));
}

/** Whether the error means that the server supports only the newer protocol version. */
export function wantsNewerEra(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  return (
    error.code === ProtocolErrorCode.UnsupportedProtocolVersion ||
    /unsupported protocol version/i.test(error.message)
  );
}
