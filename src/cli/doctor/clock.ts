/** Clock check. Records, keys, time windows and expiry depend on the time. */
import { type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";

const CLOCK = "clock";
/** No installation is older than this. An earlier time means that the clock was reset. */
const EARLIEST_MS = Date.UTC(2025, 0, 1);
const LATEST_MS = Date.UTC(2100, 0, 1);
const AHEAD_MS = 60_000;

/** `last_ms` is the time of the newest record, or null without records. */
export function clockFindings(now: number, last_ms: number | null): DoctorFinding[] {
  const shown = new Date(now).toISOString();
  if (now < EARLIEST_MS || now > LATEST_MS) {
    return [
      failFinding(CLOCK, `it is ${shown} on this machine`, "set the clock, and keep it in sync with NTP"),
    ];
  }
  if (last_ms !== null && last_ms - now > AHEAD_MS) {
    const text = `it is ${shown} here, but the newest record is from ${new Date(last_ms).toISOString()}`;
    return [warnFinding(CLOCK, text, "compare the clocks of all machines that share the store")];
  }
  return [okFinding(CLOCK, shown)];
}
