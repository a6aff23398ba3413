/** Whether the clock can be right: time stands on every record, and decides on keys, windows and expiry. */
import { type DoctorFinding, fail, ok, warn } from "./finding.ts";

const CLOCK = "clock";
/** This program did not exist before; a clock that says so lost its battery. */
const EARLIEST_MS = Date.UTC(2025, 0, 1);
const LATEST_MS = Date.UTC(2100, 0, 1);
const AHEAD_MS = 60_000;

/** `last_ms` is the time of the newest record, null where there is none. */
export function clockFindings(now: number, last_ms: number | null): DoctorFinding[] {
  const shown = new Date(now).toISOString();
  if (now < EARLIEST_MS || now > LATEST_MS) {
    return [fail(CLOCK, `it is ${shown} on this machine`, "set the clock, and keep it set with NTP")];
  }
  if (last_ms !== null && last_ms - now > AHEAD_MS) {
    const text = `it is ${shown} here, but the ledger was written until ${new Date(last_ms).toISOString()}`;
    return [warn(CLOCK, text, "compare the clocks of all machines that share the store")];
  }
  return [ok(CLOCK, shown)];
}
