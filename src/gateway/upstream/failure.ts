/**
 * What a failed request to an upstream means. Only three things can be known: the upstream answered with
 * an error, the request never left, or it is not known whether it took effect.
 */
import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
} from "@modelcontextprotocol/client";
import { EgressRefused } from "../../egress/refusal.ts";
import { messageOf } from "../../kernel/errors.ts";

type UpstreamFailure =
  | { kind: "answered"; code: number; message: string; data: unknown }
  | { kind: "not_sent"; message: string }
  | { kind: "unknown"; message: string };

/** Nothing reached the upstream. */
export class NotSent extends Error {
  constructor(why: string) {
    super(why);
    this.name = "NotSent";
  }
}

/** Marks an error that we made ourselves for a request whose answer can no longer come. */
export const LOST = Object.freeze({ lost: true });
export const LOST_CODE = -32_099;

export function failureOf(error: unknown): UpstreamFailure {
  if (error instanceof NotSent) return { kind: "not_sent", message: error.message };
  if (error instanceof EgressRefused) return { kind: "not_sent", message: error.message };
  if (error instanceof ProtocolError) {
    if (error.data === LOST) return { kind: "unknown", message: error.message };
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

/** No connection was made at all, so that nothing can have arrived. */
export function refusedConnection(error: unknown): string | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ECONNREFUSED" || code === "ENOTFOUND") return `no connection could be made (${code})`;
  }
  return undefined;
}

/** A status of the 400s is a refusal before anything ran; anything else leaves it open. */
function httpFailure(error: SdkHttpError): UpstreamFailure {
  const { status } = error;
  if (status >= 400 && status < 500)
    return { kind: "not_sent", message: `it refused the request: HTTP ${status}` };
  return { kind: "unknown", message: `it answered HTTP ${status}` };
}

export function isTimeout(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

/** Nothing that takes a message stands at the address. */
export function isRefused(error: unknown): boolean {
  return error instanceof SdkHttpError && [400, 404, 405].includes(error.status);
}

/** The upstream no longer knows our session: it refused the request before looking at it. */
export function isSessionGone(error: unknown): boolean {
  if (!(error instanceof SdkHttpError)) return false;
  if (error.status === 404) return true;
  // Many servers answer 400 to a session that they forgot.
  return error.status === 400 && /session/i.test(String(error.data.text ?? ""));
}

/** A server of the newer era alone says so when it is greeted in the old way. */
export function wantsNewerEra(error: unknown): boolean {
  if (!(error instanceof ProtocolError)) return false;
  return (
    error.code === ProtocolErrorCode.UnsupportedProtocolVersion ||
    /unsupported protocol version/i.test(error.message)
  );
}
