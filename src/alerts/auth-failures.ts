/** Refused credentials, counted over all processes: each adds what it saw to one shared sliding window. */
import type { Core } from "../engine/core.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Bucket } from "../model/policy/counters.ts";

const KEY = "auth_failures";
const BUCKET_MS = 10_000;

export class AuthFailureCounter {
  private pending = 0;

  /** On the path of every refused request, so it only counts. */
  readonly failed = (): void => {
    this.pending++;
  };

  /** Adds what was counted since the last time to the shared window. */
  async flush(core: Core): Promise<void> {
    if (this.pending === 0) return;
    const n = this.pending;
    this.pending = 0;
    try {
      await addToWindow(core, n);
    } catch (error) {
      // Told again with the next ones, once the store takes writes.
      this.pending += n;
      throw error;
    }
  }
}

function addToWindow(core: Core, n: number): Promise<void> {
  return core.store.transact({
    needs: [["counters", KEY]],
    run(tx) {
      const now = core.env.now();
      const bucket = now - (now % BUCKET_MS);
      const kept = (tx.get("counters", KEY)?.buckets ?? []).filter(
        ([start]) => start > now - LIMITS.alert_window_ms,
      );
      const last = kept[kept.length - 1];
      const buckets: Bucket[] =
        last?.[0] === bucket ? [...kept.slice(0, -1), [bucket, last[1] + n]] : [...kept, [bucket, n]];
      tx.put("counters", KEY, { buckets });
    },
  });
}

export async function recentAuthFailures(core: Core): Promise<{ count: number; since_ms: number }> {
  const since = core.env.now() - LIMITS.alert_window_ms;
  const buckets = ((await core.store.get("counters", KEY))?.buckets ?? []).filter(
    ([start]) => start > since - BUCKET_MS,
  );
  return { count: buckets.reduce((sum, [, n]) => sum + n, 0), since_ms: buckets[0]?.[0] ?? since };
}
