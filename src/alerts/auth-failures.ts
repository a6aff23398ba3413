/** Counts refused credentials across all processes, in one shared sliding window. */
import type { EngineCore } from "../govern/core.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { CounterBucket } from "../rules/policy/checks/counters.ts";

const KEY = "auth_failures";
const BUCKET_MS = 10_000;

export class AuthFailureCounter {
  private pending = 0;

  /** Only counts, because every refused request calls it. */
  readonly failed = (): void => {
    this.pending++;
  };

  /** Adds the new refusals to the shared window. */
  async flush(core: EngineCore): Promise<void> {
    if (this.pending === 0) return;
    const n = this.pending;
    this.pending = 0;
    try {
      await addToWindow(core, n);
    } catch (error) {
      // Try again at the next flush.
      this.pending += n;
      throw error;
    }
  }
}

function addToWindow(core: EngineCore, n: number): Promise<void> {
  return core.store.transact({
    needs: [["counters", KEY]],
    run(tx) {
      const now = core.env.now();
      const bucket = now - (now % BUCKET_MS);
      const kept = (tx.get("counters", KEY)?.buckets ?? []).filter(
        ([start]) => start > now - SERVICE_LIMITS.alert_window_ms,
      );
      const last = kept[kept.length - 1];
      const buckets: CounterBucket[] =
        last?.[0] === bucket ? [...kept.slice(0, -1), [bucket, last[1] + n]] : [...kept, [bucket, n]];
      tx.put("counters", KEY, { buckets });
    },
  });
}

export async function recentAuthFailures(core: EngineCore): Promise<{ count: number; since_ms: number }> {
  const since = core.env.now() - SERVICE_LIMITS.alert_window_ms;
  const buckets = ((await core.store.get("counters", KEY))?.buckets ?? []).filter(
    ([start]) => start > since - BUCKET_MS,
  );
  return { count: buckets.reduce((sum, [, n]) => sum + n, 0), since_ms: buckets[0]?.[0] ?? since };
}
