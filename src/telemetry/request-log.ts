/** One JSON line on stdout for each request (`SVC_LOG=json`): who asked for what, and how it went; no bodies, no keys. */
import { redactSecrets } from "../model/detect/secrets.ts";
import { type Redact, scrubText } from "./scrub.ts";
import { fdSink, type Sink } from "./sink.ts";

interface RequestLine {
  readonly method: string;
  /** The path as requested; its query string is cut off, since values there may be private. */
  readonly path: string;
  readonly status: number;
  readonly ms: number;
  /** The principal's name, null where no credential was accepted. */
  readonly principal: string | null;
  readonly request_id?: string;
  /** Of a refused request: the code of its cause, and the message that it was answered with. */
  readonly code?: string | undefined;
  readonly error?: string | undefined;
}

type RequestLog = (line: RequestLine) => void;

const PATH_CHARS = 1_000;
const ERROR_CHARS = 2_000;

export function createRequestLog(
  parts: { redact?: Redact; now?: () => number; sink?: Sink } = {},
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
      // A line that cannot be written must not fail the request it tells of.
    }
  };
}
