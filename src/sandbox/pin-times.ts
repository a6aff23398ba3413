/**
 * Windows and freezes in a sandbox see the real clock, whenever the replayed call was made; limits and
 * budgets see the time of the call. So a policy's times are settled once, for the real now, and the clock
 * of the sandbox is free to follow the calls.
 */
import type { Freeze, Policy, TimeWindow } from "../model/policy/compile.ts";
import { isOpen, wallClock } from "../model/policy/hours.ts";
import { MatchIndex } from "../model/policy/match.ts";
import type { MatchDoc } from "../model/policy/schema.ts";

export function pinTimes(policy: Policy, now_ms: number): Policy {
  return {
    ...policy,
    windows: pinned(policy.doc.windows, policy.windows, (window: TimeWindow) =>
      isOpen(wallClock(window.tz, now_ms), window.days, window.hours) ? null : { ...window, days: NEVER },
    ),
    freezes: pinned(policy.doc.freezes, policy.freezes, (freeze: Freeze) =>
      now_ms >= freeze.from_ms && now_ms < freeze.to_ms ? { ...freeze, from_ms: ALWAYS } : null,
    ),
  };
}

/** No day at all: a window with these is closed at every time. */
const NEVER: ReadonlySet<number> = new Set();
/** Every call was made before now, and now lies before the freeze's end. */
const ALWAYS = Number.NEGATIVE_INFINITY;

function pinned<T>(
  docs: readonly { match?: MatchDoc | undefined }[] | undefined,
  index: MatchIndex<T>,
  pin: (item: T) => T | null,
): MatchIndex<T> {
  const kept = index.all().flatMap((item, i) => {
    const settled = pin(item);
    return settled === null ? [] : [{ match: docs?.[i]?.match, item: settled }];
  });
  return new MatchIndex(kept);
}
