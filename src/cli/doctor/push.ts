/** Sends a test message to the devices of the person whose key runs doctor. */
import { fingerprintOf } from "../../auth/keys.ts";
import { keyOwner } from "../../govern/signing/passkey.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { peopleWithDevices } from "../../operations/push/audience.ts";
import { sendPushTest } from "../../operations/push/devices.ts";
import { pushOff } from "../../operations/push/server-keys.ts";
import { openApp } from "../../service/open-app.ts";
import { silentLogger } from "../../telemetry/log.ts";
import { type CheckContext, type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";

const PUSH = "send-test";

/** Nothing to report where no person has a device. */
export async function sendPushTests({ settings, env, variables }: CheckContext): Promise<DoctorFinding[]> {
  if (pushOff({ settings }) !== null) return [];
  const app = await openApp(settings, env, { log: silentLogger });
  try {
    const people = await peopleWithDevices(app);
    const total = people.reduce((sum, { devices }) => sum + devices.length, 0);
    if (total === 0) return [];
    const token = variables["SVC_TOKEN"];
    const has = `${formatCountOf(total, "device gets", "devices get")} push messages`;
    if (token === undefined)
      return [okFinding(PUSH, `${has}; set SVC_TOKEN to your key to send a test to your own`)];
    const owner = keyOwner(fingerprintOf(sha256Hex(token)));
    const own = people.find((one) => one.owner === owner)?.devices ?? [];
    if (own.length === 0)
      return [warnFinding(PUSH, `${has}, none of them yours`, "turn them on in the console, under Settings")];
    const findings: DoctorFinding[] = [];
    for (const device of own) {
      const { error } = await sendPushTest(app, device);
      findings.push(
        error === null
          ? okFinding(PUSH, `push messages: ${device.label} accepted a test message`)
          : failFinding(
              PUSH,
              `push messages: ${device.label}: ${error}`,
              "turn them on again in that browser",
            ),
      );
    }
    return findings;
  } finally {
    await app.close();
  }
}
