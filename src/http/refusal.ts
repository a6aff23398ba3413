/** How an error is told over HTTP: one shape, whichever way the request came. */
import { ERROR_CODE_HEADER, FACTS_HEADER } from "../api/row.ts";
import type { App } from "../app/app.ts";
import { INTERNAL_CODE } from "../kernel/error-codes.ts";
import { ERRORS, type ErrorCode, messageOf, retryAfter, SvcError } from "../kernel/errors.ts";

/** Why a request was refused, for the log and for programs. */
export interface RefusalCause {
  code: string;
  /** The message, which never holds an argument's value. */
  error: string;
}

interface HttpRefusal {
  status: number;
  cause: RefusalCause;
  headers: Readonly<Record<string, string>>;
  body: object;
}

const NO_HEADERS = {};

export function refusalOf({ log }: App, error: unknown): HttpRefusal {
  if (!(error instanceof SvcError)) {
    log.error("unexpected failure", { error: messageOf(error), stack: (error as Error)?.stack });
    const said = "internal error; see the server's log";
    return {
      status: 500,
      cause: { code: INTERNAL_CODE, error: said },
      headers: { [ERROR_CODE_HEADER]: INTERNAL_CODE },
      body: { error: said },
    };
  }
  const status = ERRORS[error.code].http;
  if (status === 503)
    log.warn("request refused", { error: error.message, cause: messageOf(error.cause ?? "") });
  return {
    status,
    cause: { code: error.cause_code, error: error.message },
    headers: { [ERROR_CODE_HEADER]: error.cause_code, ...headersOf(status, error) },
    body: { error: error.message, ...told(error) },
  };
}

/** A body is `error` alone, but for an anchor that failed: its sinks are listed as those of one that did not. */
const told = ({ code, extra }: SvcError) => (code === "delivery_failed" ? extra : undefined);

function headersOf(status: number, error: SvcError): HttpRefusal["headers"] {
  if (status === 409 && error.extra !== undefined)
    return { [FACTS_HEADER]: encodeURIComponent(JSON.stringify(error.extra)) };
  if (status === 401) return { "www-authenticate": "Bearer" };
  if (status === 429) return { "retry-after": String(retryAfter(error)) };
  return NO_HEADERS;
}

/** The code of an answer that no error made: the kind that its status stands for. */
export function codeOfStatus(status: number): string {
  const kind = (Object.keys(ERRORS) as ErrorCode[]).find((one) => ERRORS[one].http === status);
  return kind ?? (status >= 500 ? INTERNAL_CODE : "invalid");
}
