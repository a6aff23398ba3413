/** Turns an error into its HTTP response, in the same shape on every path. */
import { INTERNAL_CODE } from "../kernel/error-codes.ts";
import { ERROR_KINDS, type ErrorCode, messageOf, retryAfter, SvcError } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import { ERROR_CODE_HEADER, FACTS_HEADER } from "./api/http-row.ts";

/** Cause of a refusal, for the log and for programs. */
export interface RefusalCause {
  code: string;
  /** The message. Never contains the value of an argument. */
  error: string;
}

interface HttpRefusal {
  status: number;
  cause: RefusalCause;
  headers: Readonly<Record<string, string>>;
  body: object;
}

const NO_HEADERS = {};

export function refusalOf({ log }: ServiceApp, error: unknown): HttpRefusal {
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
  const status = ERROR_KINDS[error.code].http;
  if (status === 503)
    log.warn("request refused", { error: error.message, cause: messageOf(error.cause ?? "") });
  return {
    status,
    cause: { code: error.cause_code, error: error.message },
    headers: { [ERROR_CODE_HEADER]: error.cause_code, ...headersOf(status, error) },
    body: { error: error.message, ...extraFields(error) },
  };
}

/** Error bodies contain only `error`. A failed anchor also lists its sinks, as a successful one does. */
const extraFields = ({ code, extra }: SvcError) => (code === "delivery_failed" ? extra : undefined);

function headersOf(status: number, error: SvcError): HttpRefusal["headers"] {
  if ((status === 409 || error.cause_code === "passkey_required") && error.extra !== undefined)
    return { [FACTS_HEADER]: encodeURIComponent(JSON.stringify(error.extra)) };
  if (error.challenge !== undefined) return { "www-authenticate": error.challenge };
  if (status === 401) return { "www-authenticate": "Bearer" };
  if (status === 429) return { "retry-after": String(retryAfter(error)) };
  return NO_HEADERS;
}

/** The code for a response that was not made from an `SvcError`, chosen by its status. */
export function codeOfStatus(status: number): string {
  const kind = (Object.keys(ERROR_KINDS) as ErrorCode[]).find((one) => ERROR_KINDS[one].http === status);
  return kind ?? (status >= 500 ? INTERNAL_CODE : "invalid");
}
