/** Waiting for work, but not for ever: the one race of a promise against a clock. */
import { type Env, startTimer } from "./env.ts";

interface Patience {
  /** The clock; the system's where it is left out. */
  env?: Pick<Env, "sleep">;
  /** Whoever waits gives up when this aborts, as if the time were over. */
  signal?: AbortSignal | undefined;
}

/**
 * What the work comes to or, where that takes longer, what `late` says or throws. The work itself goes on, and what
 * becomes of it then is not heard. Timer and listener end with the wait, so that neither holds a process up.
 */
export function within<T, L>(
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

/** Resolves when the work has ended, well or not, or the time is over. */
export function atMost(work: Promise<unknown>, ms: number, patience?: Patience): Promise<void> {
  const nothing = () => {};
  return within(work.then(nothing, nothing), ms, nothing, patience);
}

function startOn(env: Pick<Env, "sleep">, ms: number, fire: () => void): () => void {
  const done = new AbortController();
  env.sleep(ms, done.signal).then(fire, () => {});
  // An abort without a reason would build an exception, stack trace and all.
  return () => done.abort("done");
}
