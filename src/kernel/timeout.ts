/** Timeouts: races a promise against a clock. */
import { type RuntimeEnv, startTimer } from "./env.ts";

interface Patience {
  /** The clock; the system clock by default. */
  env?: Pick<RuntimeEnv, "sleep">;
  /** Ends the wait when it aborts, as if the time were over. */
  signal?: AbortSignal | undefined;
}

/**
 * Resolves to the result of `work` or, after `ms`, to the result of `late`, which can also throw. The work continues,
 * and its later result is ignored. The timer and the listener end with the wait, so that neither keeps the process
 * alive.
 */
export function withTimeout<T, L>(
  work: Promise<T>,
  ms: number,
  late: () => L,
  { env, signal }: Patience = {},
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      end();
      try {
        resolve(late());
      } catch (error) {
        reject(error);
      }
    };
    const stopTimer = env === undefined ? startTimer(ms, giveUp) : startOn(env, ms, giveUp);
    signal?.addEventListener("abort", giveUp, { once: true });
    const end = () => {
      stopTimer();
      signal?.removeEventListener("abort", giveUp);
    };
    work.then(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
    if (signal?.aborted) giveUp();
  });
}

/** Resolves when the work has succeeded or failed, or the time is over. */
export function settleWithin(work: Promise<unknown>, ms: number, patience?: Patience): Promise<void> {
  const nothing = () => {};
  return withTimeout(work.then(nothing, nothing), ms, nothing, patience);
}

function startOn(env: Pick<RuntimeEnv, "sleep">, ms: number, fire: () => void): () => void {
  const done = new AbortController();
  env.sleep(ms, done.signal).then(fire, () => {});
  // Without a reason, abort would build an exception with a stack trace.
  return () => done.abort("done");
}
