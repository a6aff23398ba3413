/**
 * Lines to stdout and stderr without ever holding up or bringing down the process: written in the
 * background, dropped past a bound when the other end does not read them, silent when the other end is gone.
 */
import { pino } from "pino";
import { atMost } from "../kernel/deadline.ts";

export interface Sink {
  write(line: string): void;
  /** Resolves when what was written so far has been handed to the operating system, or could not be. */
  flush(): Promise<void>;
}

const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const FLUSH_MS = 1_000;

export function fdSink(fd: 1 | 2): Sink {
  const stream = pino.destination({ dest: fd, sync: false, maxLength: MAX_WAITING_BYTES });
  // pino quiets EPIPE itself; any other error (a closed descriptor, a full disk) is no reason to stop either.
  stream.on("error", () => undefined);
  return {
    write(line) {
      try {
        stream.write(line);
      } catch {
        // A log that cannot be written is not worth a failed request.
      }
    },
    flush: () => atMost(new Promise<unknown>((resolve) => stream.flush(resolve)), FLUSH_MS),
  };
}

/** For tests, and for a library user who wants the lines elsewhere. */
export function lineSink(take: (line: string) => void): Sink {
  return { write: take, flush: () => Promise.resolve() };
}
