/**
 * Bounds of the time that an exchange takes. A body that stalls, that dribbles without end, or whose end never comes is
 * as late as an answer that never begins.
 */
import { Readable } from "node:stream";
import { SvcError } from "../kernel/errors.ts";
import { withTimeout } from "../kernel/timeout.ts";

export interface ExchangeBounds {
  /** The longest silence: while connecting, before the answer, and between two parts of a body. */
  readonly idle_ms: number;
  /** The longest exchange, from its begin to the end of the answer. */
  readonly total_ms: number;
}

/** The other side was silent for too long, or took too long. What became of the request is not known. */
export class LateError extends SvcError {
  /** As HTTP tells it to the client. */
  readonly status: number;
  constructor(message: string, status = 504) {
    super("delivery_failed", message);
    this.name = "Late";
    this.status = status;
  }
}

interface BodyBounds extends ExchangeBounds {
  /** When the body has to be at its end, on the monotonic clock. */
  readonly until: number;
  /** A client can still read why it is refused, so its connection stays open, and this is the status. */
  readonly refuse_with?: number;
}

/** The same bytes. Fails with a `LateError`. Only time in which the caller reads counts as silence. */
export function boundedBody(source: Readable, who: string, bounds: BodyBounds): Readable {
  return Readable.from(boundedParts(source, who, bounds), { objectMode: false });
}

async function* boundedParts(source: Readable, who: string, bounds: BodyBounds) {
  const { idle_ms, total_ms, until, refuse_with } = bounds;
  const parts = source.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const left_ms = until - performance.now();
      const part = await withTimeout(parts.next(), Math.max(0, Math.min(left_ms, idle_ms)), () => {
        const what = left_ms < idle_ms ? `took longer than ${total_ms} ms` : `sent nothing for ${idle_ms} ms`;
        throw new LateError(`${who} ${what}`, refuse_with);
      });
      if (part.done === true) return;
      yield part.value;
    }
  } finally {
    // After the whole body this leaves the connection as it is.
    if (refuse_with === undefined) source.destroy();
  }
}
