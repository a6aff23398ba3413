/** `svc doctor`: checks the service's dependencies and prints a line per check, with a fix for each problem. */
import { createEgress } from "../../../egress/egress.ts";
import { invalidError, ProblemsError } from "../../../kernel/errors.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { runDoctorChecks } from "../../doctor/checks.ts";
import {
  type DoctorFinding,
  FINDING_STATUSES,
  type FindingStatus,
  failFindings,
} from "../../doctor/finding.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";

const NOTE = `
Run doctor under the account of the service. It exits with 1 if a check fails; warnings do not change the exit code.
Doctor resolves destinations and checks them against the egress rules, but does not contact them. Its only requests, if
configured, read remote manifests, the discovery documents and keys of issuers, and the sign-in of tool servers. --send-test also sends one message
through each notification channel, and to the devices of the person whose key is in SVC_TOKEN. Doctor starts each tool server of the gateway, lists its tools and stops it again.`;

export const registerDoctor: RegisterCommand = (program, context) => {
  globalOptions(program.command("doctor").description("Check what the service depends on"))
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--send-test", "send one message through every notification channel")
    .option("--json", "print JSON")
    .addHelpText("after", NOTE)
    .action(async (flags: CommandFlags) => {
      if (context.isRemote(flags))
        throw invalidError(
          "doctor checks the machine that it runs on: run it on the server's machine, without --server (or SVC_SERVER)",
        );
      const findings = await diagnose(context, flags);
      const failed = findings.some(({ status }) => status === "fail");
      if (flags["json"]) context.io.out(JSON.stringify({ ok: !failed, checks: findings }));
      else print(context.io, findings);
      if (failed) context.done(1);
    });
};

async function diagnose(context: CommandContext, flags: CommandFlags): Promise<DoctorFinding[]> {
  const { io } = context;
  let settings: ReturnType<CommandContext["settings"]>;
  try {
    settings = context.settings(flags, ["policy", "keys"]);
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    return failFindings("config", error, "fix it; the other checks need a valid configuration");
  }
  const egress = createEgress(settings.egress);
  try {
    const world = { settings, env: io.clock, egress, variables: io.env, cwd: io.cwd };
    return await runDoctorChecks(world, { send_test: flags["sendTest"] === true });
  } finally {
    await egress.close();
  }
}

function print(io: CommandIo, findings: readonly DoctorFinding[]): void {
  const colors = { ok: io.color.green, warn: io.color.yellow, fail: io.color.red };
  const rows = findings.map(({ check, status, message, fix }) => [
    colors[status](status.padEnd(4)),
    check,
    escapeControls(fix === null ? message : `${message} -> ${fix}`),
  ]);
  for (const row of alignColumns(rows)) io.out(row);
  const count = (status: FindingStatus) => findings.filter((one) => one.status === status).length;
  io.out(FINDING_STATUSES.map((status) => `${count(status)} ${status}`).join(", "));
}
