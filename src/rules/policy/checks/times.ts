/** Time stage: freezes, and windows outside which an action applies. */
import type { PolicyCall } from "../call.ts";
import type { CompiledPolicy } from "../compile.ts";
import { type PolicyFinding, restrictionFinding } from "../finding.ts";
import { isOpen, wallClock } from "./hours.ts";

export function checkTimes(policy: CompiledPolicy, call: PolicyCall, now_ms: number): PolicyFinding[] {
  const findings: PolicyFinding[] = [];
  for (const freeze of policy.freezes.matching(call)) {
    if (now_ms < freeze.from_ms || now_ms >= freeze.to_ms) continue;
    findings.push(
      restrictionFinding(
        "freeze",
        freeze,
        `freeze ${freeze.id} is in force until ${new Date(freeze.to_ms).toISOString()}`,
      ),
    );
  }
  for (const window of policy.windows.matching(call)) {
    if (isOpen(wallClock(window.tz, now_ms), window.days, window.hours)) continue;
    findings.push(restrictionFinding("window", window, `outside the window ${window.id} (${window.shown})`));
  }
  return findings;
}
