/** Timeouts with an abort signal. */

export interface TimeLimit {
  /** Aborts when the time is up, or when the limit ends early. */
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

export function pauseFor(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Waits in the background, without keeping the process alive. */
export function idlePause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
