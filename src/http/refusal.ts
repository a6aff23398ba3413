/** How an error is told over HTTP: one shape, whichever way the request came. */
import { FACTS_HEADER } from "../api/row.ts";
import type { App } from "../app/app.ts";
import { ERRORS, messageOf, retryAfter, SvcError } from "../kernel/errors.ts";

interface HttpRefusal {
  status: number;
  headers: Readonly<Record<string, string>>;
  body: object;
}

const NO_HEADERS = {};

export function refusalOf({ log }: App, error: unknown): HttpRefusal {
  if (!(error instanceof SvcError)) {
    log.error("unexpected failure", { error: messageOf(error), stack: (error as Error)?.stack });
    return { status: 500, headers: NO_HEADERS, body: { error: "internal error; see the server's log" } };
  }
  const status = ERRORS[error.code].http;
  if (status === 503)
    log.warn("request refused", { error: error.message, cause: messageOf(error.cause ?? "") });
  return { status, headers: headersOf(status, error), body: { error: error.message, ...told(error) } };
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
