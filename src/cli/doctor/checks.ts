/** All checks in output order. A check that throws becomes a finding and does not stop the others. */
import { describeSettings } from "../../config/describe.ts";
import { messageOf } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { checkDestinations, sendTests } from "./destinations.ts";
import { checkDisk } from "./disk.ts";
import { checkAnchors, checkSigningKey } from "./evidence.ts";
import {
  type CheckContext,
  type DoctorCheck,
  type DoctorFinding,
  failFinding,
  okFinding,
  warnFinding,
} from "./finding.ts";
import { checkGateway } from "./gateway.ts";
import { checkKeys, checkOidc, checkSecurityEvents } from "./identity.ts";
import { sendPushTests } from "./push.ts";
import { checkRuleFiles } from "./rules.ts";
import { checkCapture, checkCommands, checkConsole } from "./runtime.ts";
import { checkStore } from "./store.ts";
import { checkTokenKey, checkUpstreamSignIns } from "./upstreams.ts";

const CHECKS: readonly (readonly [name: string, check: DoctorCheck])[] = [
  ["config", checkConfig],
  ["manifests", checkRuleFiles],
  ["keys", checkKeys],
  ["oidc", checkOidc],
  ["caep", checkSecurityEvents],
  ["signing key", checkSigningKey],
  ["store", checkStore],
  ["disk", checkDisk],
  ["anchors", checkAnchors],
  ["egress", checkDestinations],
  ["capture", checkCapture],
  ["console", checkConsole],
  ["commands", checkCommands],
  ["gateway", checkGateway],
  ["upstreams", checkUpstreamSignIns],
  ["token_key", checkTokenKey],
];

export async function runDoctorChecks(
  world: CheckContext,
  options: { send_test: boolean },
): Promise<DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  const checks = options.send_test
    ? [...CHECKS, ["send-test", sendTests] as const, ["send-test", sendPushTests] as const]
    : CHECKS;
  for (const [name, check] of checks) {
    try {
      findings.push(...(await check(world)));
    } catch (error) {
      findings.push(failFinding(name, messageOf(error), "this check could not run; see the message"));
    }
  }
  return findings;
}

async function checkConfig({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const { file, warnings } = settings.meta;
  const given = describeSettings(settings).filter(({ origin }) => origin.from !== "default").length;
  const where = file ?? "no svc.config.yaml: options, environment and defaults";
  return [
    okFinding("config", `${where}; ${formatCountOf(given, "setting")} given; list them with svc config show`),
    ...warnings.map((text) => warnFinding("config", text, "see svc config show")),
  ];
}
