/** Limits on how long to wait. */

export interface TimeLimit {
  /** Aborts when the time is up, or when it is ended early. */
  readonly signal: AbortSignal;
  expire(): void;
  clear(): void;
}

export function timeLimit(ms: number): TimeLimit {
  const controller = new AbortController();
  const expire = (): void => controller.abort();
  const timer = setTimeout(expire, ms);
  return { signal: controller.signal, expire, clear: () => clearTimeout(timer) };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** A wait in the background, which keeps no process alive. */
export function idlePause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
