/**
 * Writes lines to stdout and stderr without blocking or crashing the process. Writes in the background, drops lines if
 * the reader is too slow, and stays silent once the reader is gone.
 */
import { pino } from "pino";
import { settleWithin } from "../kernel/timeout.ts";

export interface LineSink {
  write(line: string): void;
  /** Resolves when the operating system has all lines written so far, or writing them failed. */
  flush(): Promise<void>;
}

const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const FLUSH_MS = 1_000;

export function fdSink(fd: 1 | 2): LineSink {
  const stream = pino.destination({ dest: fd, sync: false, maxLength: MAX_WAITING_BYTES });
  // pino ignores EPIPE. Other errors (a closed descriptor, a full disk) must not stop the process either.
  stream.on("error", () => undefined);
  return {
    write(line) {
      try {
        stream.write(line);
      } catch {
        // A lost log line must not fail a request.
      }
    },
    flush: () => settleWithin(new Promise<unknown>((resolve) => stream.flush(resolve)), FLUSH_MS),
  };
}

/** For tests, and for library users with their own destination for lines. */
export function lineSink(take: (line: string) => void): LineSink {
  return { write: take, flush: () => Promise.resolve() };
}
