/** Waiting for something, but not for ever. The wait ends with it, so that no timer outlives its purpose. */
import type { Env } from "../kernel/env.ts";

/** Resolves when the work has settled or the time is over, whichever comes first; never rejects. */
export async function atMost(env: Env, work: Promise<unknown>, ms: number): Promise<void> {
  const over = new AbortController();
  const late = env.sleep(ms, over.signal).catch(() => {});
  try {
    await Promise.race([work.catch(() => {}), late]);
  } finally {
    over.abort();
  }
}
