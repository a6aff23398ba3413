/**
 * Resolves a policy's windows and freezes for the current time. In a sandbox they apply as of now, but limits and
 * budgets as of each replayed call. Resolving the first in advance lets the sandbox clock follow the calls.
 */
import { isOpen, wallClock } from "../rules/policy/checks/hours.ts";
import type { CompiledPolicy, PolicyFreeze, TimeWindow } from "../rules/policy/compile.ts";
import { MatchIndex } from "../rules/policy/match.ts";
import type { MatchDoc } from "../rules/policy/schema.ts";

export function resolveTimeWindows(policy: CompiledPolicy, now_ms: number): CompiledPolicy {
  return {
    ...policy,
    windows: pinned(policy.doc.windows, policy.windows, (window: TimeWindow) =>
      isOpen(wallClock(window.tz, now_ms), window.days, window.hours) ? null : { ...window, days: NEVER },
    ),
    freezes: pinned(policy.doc.freezes, policy.freezes, (freeze: PolicyFreeze) =>
      now_ms >= freeze.from_ms && now_ms < freeze.to_ms ? { ...freeze, from_ms: ALWAYS } : null,
    ),
  };
}

/** No days: such a window is always closed. */
const NEVER: ReadonlySet<number> = new Set();
/** Start of an active freeze: covers all recorded calls, since now is before its end. */
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
