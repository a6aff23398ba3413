/** Retries requests that a busy server rejects, for calls whose record would otherwise stay incomplete. */
import { systemEnv } from "../kernel/env.ts";
import { TooManyError } from "../kernel/errors.ts";

const PATIENCE_MS = 60_000;

/**
 * Resends until the quota allows it or a minute has passed. A request over quota changes nothing, so resending is safe.
 */
export async function retryOnQuota<T>(send: () => Promise<T>): Promise<T> {
  const until = systemEnv.elapsed() + PATIENCE_MS;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof TooManyError) || systemEnv.elapsed() >= until) throw error;
      await systemEnv.sleep(error.retry_after_s * 1_000);
    }
  }
}
