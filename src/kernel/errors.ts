/**
 * Expected failures: each is a SvcError with a code from this table. The table alone maps a code to an HTTP status, an
 * exit code and a JSON-RPC code.
 */
import type { CauseCode, ConflictCause } from "./error-codes.ts";

export const ERROR_KINDS = {
  invalid: { http: 400, exit: 1, rpc: -32602 },
  unauthenticated: { http: 401, exit: 1, rpc: -32001 },
  forbidden: { http: 403, exit: 1, rpc: -32003 },
  not_found: { http: 404, exit: 1, rpc: -32004 },
  not_enabled: { http: 404, exit: 1, rpc: -32004 },
  conflict: { http: 409, exit: 1, rpc: -32009 },
  too_large: { http: 413, exit: 1, rpc: -32013 },
  unsupported_media: { http: 415, exit: 1, rpc: -32015 },
  too_many: { http: 429, exit: 1, rpc: -32029 },
  delivery_failed: { http: 502, exit: 1, rpc: -32052 },
  unavailable: { http: 503, exit: 1, rpc: -32053 },
  corrupt: { http: 503, exit: 1, rpc: -32053 },
} as const;

export type ErrorCode = keyof typeof ERROR_KINDS;

interface SvcErrorOptions {
  cause?: unknown;
  cause_code?: CauseCode | undefined;
  extra?: Record<string, unknown>;
  challenge?: string;
}

/** An expected failure: `code` is its kind. The message states the problem and the remedy. */
export class SvcError extends Error {
  readonly code: ErrorCode;
  /** A cause from `error-codes`, or the name of the kind by default. */
  readonly cause_code: CauseCode;
  /**
   * Facts for programs in addition to the message, such as the sinks of a failed anchor or the pending approval
   * request.
   */
  readonly extra: Record<string, unknown> | undefined;
  /** How the caller can authenticate: the header `WWW-Authenticate` of the response. */
  readonly challenge: string | undefined;

  constructor(code: ErrorCode, message: string, options?: SvcErrorOptions) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = "SvcError";
    this.code = code;
    this.cause_code = options?.cause_code ?? code;
    this.extra = options?.extra;
    this.challenge = options?.challenge;
  }
}

/** A rate or quota error, with the time after which the caller can retry. */
export class TooManyError extends SvcError {
  readonly retry_after_s: number;
  constructor(message: string, retry_after_s: number) {
    super("too_many", message);
    this.retry_after_s = retry_after_s;
  }
}

/** Returns the Retry-After of an error with status 429, and undefined for every other error. */
export function retryAfter(error: SvcError): number | undefined {
  if (error.code !== "too_many") return undefined;
  return error instanceof TooManyError ? error.retry_after_s : 1;
}

/** `cause_code` defaults to the name of the kind. */
type MakeError = (message: string, cause_code?: CauseCode) => SvcError;
export const invalidError: MakeError = (message, cause_code) =>
  new SvcError("invalid", message, { cause_code });
export const notFoundError: MakeError = (message, cause_code) =>
  new SvcError("not_found", message, { cause_code });
export const forbiddenError: MakeError = (message, cause_code) =>
  new SvcError("forbidden", message, { cause_code });
/** `extra` holds facts for programs, so that they need not parse the message. */
export const conflictError = (
  cause_code: ConflictCause,
  message: string,
  extra?: Record<string, unknown>,
): SvcError => new SvcError("conflict", message, { cause_code, ...(extra === undefined ? {} : { extra }) });

/** All problems of one document in one error. The message has one line per problem. */
export class ProblemsError extends SvcError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super("invalid", problems.join("\n"));
    this.name = "ProblemsError";
    this.problems = problems;
  }
}

/** Returns the message of any thrown value, for logs and reports. Never includes a stack trace. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The message for a person, with the page at which the person can sign. */
export function messageWithLink(error: unknown): string {
  const link = error instanceof SvcError ? error.extra?.["link"] : undefined;
  return typeof link === "string" ? `${messageOf(error)}: ${link}` : messageOf(error);
}
