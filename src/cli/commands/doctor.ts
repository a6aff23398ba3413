/** `svc doctor`: looks at everything the service depends on, one line a check, and says what to do. */
import { createEgress } from "../../egress/egress.ts";
import { invalid, ProblemsError } from "../../kernel/errors.ts";
import { type Context, type Flags, globalOptions, type Register } from "../context.ts";
import { examine } from "../doctor/checks.ts";
import { type DoctorFinding, type FindingStatus, failures, STANDINGS } from "../doctor/finding.ts";
import { columns, type Io, printable } from "../io.ts";

const NOTE = `
Nothing is sent: destinations are resolved and held against the egress rules, but not contacted. Two things are
read over the network where they are configured, and carry nothing of yours: remote manifests, and the discovery
document and keys of the OIDC issuer. --send-test sends one message through each notification channel.
Tool servers that the gateway starts are started, asked for their tools, and stopped.

Run it as the account of the service. It exits 1 when a check fails; warnings do not change the exit code.`;

export const registerDoctor: Register = (program, context) => {
  globalOptions(program.command("doctor").description("check what the service depends on"))
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--send-test", "send one message through every notification channel")
    .option("--json", "print JSON")
    .addHelpText("after", NOTE)
    .action(async (flags: Flags) => {
      if (context.isRemote(flags))
        throw invalid(
          "doctor looks at the machine that it runs on: run it on the server's, without --server (or SVC_SERVER)",
        );
      const findings = await diagnose(context, flags);
      const failed = findings.some(({ status }) => status === "fail");
      if (flags["json"]) context.io.out(JSON.stringify({ ok: !failed, checks: findings }));
      else print(context.io, findings);
      if (failed) context.done(1);
    });
};

async function diagnose(context: Context, flags: Flags): Promise<DoctorFinding[]> {
  const { io } = context;
  let settings: ReturnType<Context["settings"]>;
  try {
    settings = context.settings(flags, ["policy", "keys"]);
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    return failures("config", error, "correct it; nothing else can be checked before");
  }
  const egress = createEgress(settings.egress);
  try {
    const world = { settings, env: io.clock, egress, variables: io.env, cwd: io.cwd };
    return await examine(world, { send_test: flags["sendTest"] === true });
  } finally {
    await egress.close();
  }
}

function print(io: Io, findings: readonly DoctorFinding[]): void {
  const colors = { ok: io.color.green, warn: io.color.yellow, fail: io.color.red };
  const rows = findings.map(({ check, status, message, fix }) => [
    colors[status](status.padEnd(4)),
    check,
    printable(fix === null ? message : `${message} -> ${fix}`),
  ]);
  for (const row of columns(rows)) io.out(row);
  const count = (status: FindingStatus) => findings.filter((one) => one.status === status).length;
  io.out(STANDINGS.map((status) => `${count(status)} ${status}`).join(", "));
}
