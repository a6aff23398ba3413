/**
 * Every expected failure of the service is one SvcError with a code of this table.
 * The table alone maps a code to an HTTP status, an exit code and a JSON-RPC code.
 */
import type { CauseCode, ConflictCause } from "./error-codes.ts";

export const ERRORS = {
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

export type ErrorCode = keyof typeof ERRORS;

interface SvcErrorOptions {
  cause?: unknown;
  cause_code?: CauseCode | undefined;
  extra?: Record<string, unknown>;
}

/** An expected failure: `code` says which, the message what is wrong and what to do. */
export class SvcError extends Error {
  readonly code: ErrorCode;
  /** Which of the causes of `error-codes`; the name of the kind where it has no other. */
  readonly cause_code: CauseCode;
  /** What a program needs of it beside the words: the sinks of a failed anchor, the request that is waited for. */
  readonly extra: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, message: string, options?: SvcErrorOptions) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.name = "SvcError";
    this.code = code;
    this.cause_code = options?.cause_code ?? code;
    this.extra = options?.extra;
  }
}

/** Past a bound on how much may be asked for; it tells when to ask again. */
export class TooMany extends SvcError {
  readonly retry_after_s: number;
  constructor(message: string, retry_after_s: number) {
    super("too_many", message);
    this.retry_after_s = retry_after_s;
  }
}

/** The Retry-After of an error that is answered with 429; undefined for every other. */
export function retryAfter(error: SvcError): number | undefined {
  if (error.code !== "too_many") return undefined;
  return error instanceof TooMany ? error.retry_after_s : 1;
}

/** `cause_code` is the name of the kind where none is given. */
type MakeError = (message: string, cause_code?: CauseCode) => SvcError;
export const invalid: MakeError = (message, cause_code) => new SvcError("invalid", message, { cause_code });
export const notFound: MakeError = (message, cause_code) =>
  new SvcError("not_found", message, { cause_code });
export const forbidden: MakeError = (message, cause_code) =>
  new SvcError("forbidden", message, { cause_code });
/** `extra` holds the facts that a program needs of it, so that it need not read the words. */
export const conflict = (
  cause_code: ConflictCause,
  message: string,
  extra?: Record<string, unknown>,
): SvcError => new SvcError("conflict", message, { cause_code, ...(extra === undefined ? {} : { extra }) });

/** Several problems of one document, all told at once; the message is one problem a line. */
export class ProblemsError extends SvcError {
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super("invalid", problems.join("\n"));
    this.name = "ProblemsError";
    this.problems = problems;
  }
}

/** The message of anything thrown, for logs and reports; never a stack trace. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
