/** What a busy server refused is sent again when it said, where giving up would leave something half told. */
import { systemEnv } from "../kernel/env.ts";
import { TooMany } from "../kernel/errors.ts";

const PATIENCE_MS = 60_000;

/** Whoever is past a quota left nothing behind, so that the same may be sent again. */
export async function patiently<T>(send: () => Promise<T>): Promise<T> {
  const until = systemEnv.elapsed() + PATIENCE_MS;
  for (;;) {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof TooMany) || systemEnv.elapsed() >= until) throw error;
      await systemEnv.sleep(error.retry_after_s * 1_000);
    }
  }
}
