/** Every check in the order in which it is shown. A check that breaks is itself a finding; none stops the others. */

import { describeSettings } from "../../config/describe.ts";
import { messageOf } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { checkDestinations, sendTests } from "./destinations.ts";
import { checkDisk } from "./disk.ts";
import { checkAnchors, checkSigningKey } from "./evidence.ts";
import { type Check, type DoctorFinding, fail, ok, type World, warn } from "./finding.ts";
import { checkGateway } from "./gateway.ts";
import { checkKeys, checkOidc } from "./identity.ts";
import { checkRuleFiles } from "./rules.ts";
import { checkCapture, checkCommands, checkConsole } from "./running.ts";
import { checkStore } from "./store.ts";

const CHECKS: readonly (readonly [name: string, check: Check])[] = [
  ["config", checkConfig],
  ["manifests", checkRuleFiles],
  ["keys", checkKeys],
  ["oidc", checkOidc],
  ["signing key", checkSigningKey],
  ["store", checkStore],
  ["disk", checkDisk],
  ["anchors", checkAnchors],
  ["egress", checkDestinations],
  ["capture", checkCapture],
  ["console", checkConsole],
  ["commands", checkCommands],
  ["gateway", checkGateway],
];

export async function examine(world: World, options: { send_test: boolean }): Promise<DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  const checks = options.send_test ? [...CHECKS, ["send-test", sendTests] as const] : CHECKS;
  for (const [name, check] of checks) {
    try {
      findings.push(...(await check(world)));
    } catch (error) {
      findings.push(fail(name, messageOf(error), "this check could not be made; see the message"));
    }
  }
  return findings;
}

async function checkConfig({ settings }: World): Promise<DoctorFinding[]> {
  const { file, warnings } = settings.meta;
  const given = describeSettings(settings).filter(({ origin }) => origin.from !== "default").length;
  const where = file ?? "no svc.config.yaml: options, environment and defaults";
  return [
    ok("config", `${where}; ${plural(given, "setting")} given, svc config show lists them`),
    ...warnings.map((text) => warn("config", text, "see svc config show")),
  ];
}
