/** Another process on the same store: with its own clocks, and without having seen any lease. */
import type { EngineCore } from "../../src/govern/core.ts";
import { watchLeases } from "../../src/govern/lease.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";

export interface OtherProcess extends EngineCore {
  /** Sees every lease now; then the given time passes by this process's monotonic clock alone. */
  outwait(ms?: number): Promise<void>;
  /** The time passes without a check of the leases. */
  pass(ms: number): void;
}

/** `ahead_ms`: how far its time of day is ahead of the first process's. */
export function otherProcess(core: EngineCore, ahead_ms = 0): OtherProcess {
  let waited = 0;
  const own: OtherProcess = {
    ...core,
    env: {
      ...core.env,
      now: () => core.env.now() + ahead_ms,
      elapsed: () => core.env.elapsed() + waited,
      sleep: (ms, signal) => core.env.sleep(ms, signal),
    },
    leases: new SilenceWatch(),
    pass(ms) {
      waited += ms;
    },
    async outwait(ms = SERVICE_LIMITS.lease_ms) {
      await watchLeases(own);
      own.pass(ms);
    },
  };
  return own;
}
