/** The time stage: freezes, and windows outside of which an action applies. */
import type { PolicyCall } from "./call.ts";
import type { Policy } from "./compile.ts";
import { type Finding, restricted } from "./finding.ts";
import { isOpen, wallClock } from "./hours.ts";

export function checkTimes(policy: Policy, call: PolicyCall, now_ms: number): Finding[] {
  const findings: Finding[] = [];
  for (const freeze of policy.freezes.matching(call)) {
    if (now_ms < freeze.from_ms || now_ms >= freeze.to_ms) continue;
    findings.push(
      restricted(
        "freeze",
        freeze,
        `freeze ${freeze.id} is in force until ${new Date(freeze.to_ms).toISOString()}`,
      ),
    );
  }
  for (const window of policy.windows.matching(call)) {
    if (isOpen(wallClock(window.tz, now_ms), window.days, window.hours)) continue;
    findings.push(restricted("window", window, `outside the window ${window.id} (${window.shown})`));
  }
  return findings;
}
