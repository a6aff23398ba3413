/** Checks runtime settings: capture, the console, and external commands. */
import { access, constants } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { splitCommand } from "../../child-process/split-command.ts";
import { isLoopbackHost } from "../../config/loopback.ts";
import { formatDuration } from "../../kernel/duration.ts";
import { messageOf } from "../../kernel/errors.ts";
import { type CheckContext, type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";

const CAPTURE = "capture";
const CONSOLE = "console";
const COMMANDS = "commands";

export async function checkCapture({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const { enabled, ttl_ms, redact_pii } = settings.capture;
  if (!enabled)
    return [okFinding(CAPTURE, "off: arguments are not stored, and there is nothing to simulate or replay")];
  if (redact_pii) return [okFinding(CAPTURE, `on: redacted calls are stored for ${formatDuration(ttl_ms)}`)];
  const text = `on for ${formatDuration(ttl_ms)}, and personal data is not redacted`;
  return [warnFinding(CAPTURE, text, "set capture.redact_pii: true unless you must have it")];
}

export async function checkConsole({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const { mode, role } = settings.console;
  if (mode === "off") return [okFinding(CONSOLE, "off")];
  if (mode === "open") {
    const text = `open: anyone on this machine acts with the ${role} role, without a login`;
    return [warnFinding(CONSOLE, text, "set SVC_CONSOLE=login if others can reach this machine")];
  }
  if (!isLoopbackHost(settings.listen.host) && !settings.secure_cookies) {
    const text = `login on ${settings.listen.host}, with cookies that are also sent over plain HTTP`;
    return [warnFinding(CONSOLE, text, "put HTTPS in front and set SVC_SECURE_COOKIES=1")];
  }
  return [okFinding(CONSOLE, "login")];
}

/** Checks the programs that rollbacks and upstreams start. */
export async function checkCommands({ settings, variables, cwd }: CheckContext): Promise<DoctorFinding[]> {
  const { compensator_cmd, reader_cmd } = settings.rollback;
  const findings: DoctorFinding[] = [];
  const look = async (what: string, program: () => string, from: string) => {
    try {
      const name = program();
      const found = await findProgram(name, from, variables["PATH"] ?? "");
      if (found) findings.push(okFinding(COMMANDS, `${what}: found ${name}`));
      else
        findings.push(
          failFinding(
            COMMANDS,
            `${what}: ${name} is not an executable file`,
            "install it, or set its full path",
          ),
        );
    } catch (error) {
      findings.push(failFinding(COMMANDS, `${what}: ${messageOf(error)}`, "fix the command"));
    }
  };
  if (compensator_cmd !== null) await look("compensator", () => splitCommand(compensator_cmd)[0]!, cwd);
  if (reader_cmd !== null) await look("reader", () => splitCommand(reader_cmd)[0]!, cwd);
  for (const upstream of settings.upstreams) {
    if (!("command" in upstream)) continue;
    await look(`upstream ${upstream.name}`, () => upstream.command, upstream.cwd ?? cwd);
  }
  return findings;
}

async function findProgram(name: string, from: string, path: string): Promise<boolean> {
  const candidates = name.includes("/")
    ? [resolve(from, name)]
    : path.split(delimiter).map((folder) => join(folder, name));
  for (const candidate of candidates) {
    const found = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}
