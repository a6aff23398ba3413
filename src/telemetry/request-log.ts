/**
 * One JSON line on stdout per request (`SVC_LOG=json`): the caller, the request and its result, without bodies and
 * keys.
 */
import { redactSecrets } from "../rules/detect/secrets.ts";
import { type RedactText, scrubText } from "./scrub.ts";
import { fdSink, type LineSink } from "./sink.ts";

interface RequestLine {
  readonly method: string;
  /** The requested path without the query string, which can hold private values. */
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  /** The principal's name, or null without a valid credential. */
  readonly principal: string | null;
  readonly request_id?: string;
  /** For a rejected request: its error code, and the message of the response. */
  readonly code?: string | undefined;
  readonly error?: string | undefined;
}

type RequestLog = (line: RequestLine) => void;

const PATH_CHARS = 1_000;
const ERROR_CHARS = 2_000;

export function createRequestLog(
  parts: { redact?: RedactText; now?: () => number; sink?: LineSink } = {},
): RequestLog {
  const redact = parts.redact ?? redactSecrets;
  const sink = parts.sink ?? fdSink(1);
  const now = parts.now ?? Date.now;
  return ({ method, path, status, ms, principal, request_id, code, error }) => {
    try {
      const end = path.search(/[?#]/);
      const bare = (end < 0 ? path : path.slice(0, end)).slice(0, PATH_CHARS);
      const line = {
        time: new Date(now()).toISOString(),
        method,
        path: scrubText(bare, redact),
        status,
        ms: Math.round(ms * 1_000) / 1_000,
        principal: principal === null ? null : scrubText(principal, redact),
        request_id,
        code,
        error: error === undefined ? undefined : scrubText(error.slice(0, ERROR_CHARS), redact),
      };
      sink.write(`${JSON.stringify(line)}\n`);
    } catch {
      // A failed log line must not fail its request.
    }
  };
}
