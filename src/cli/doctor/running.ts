/** How the service runs: capture, the console, and the commands it starts. */
import { access, constants } from "node:fs/promises";
import { delimiter, join, resolve } from "node:path";
import { isLoopbackHost } from "../../config/loopback.ts";
import { showDuration } from "../../kernel/duration.ts";
import { messageOf } from "../../kernel/errors.ts";
import { splitCommand } from "../../process/split-command.ts";
import { type DoctorFinding, fail, ok, type World, warn } from "./finding.ts";

const CAPTURE = "capture";
const CONSOLE = "console";
const COMMANDS = "commands";

export async function checkCapture({ settings }: World): Promise<DoctorFinding[]> {
  const { enabled, ttl_ms, redact_pii } = settings.capture;
  if (!enabled)
    return [ok(CAPTURE, "off: arguments are not kept, and there is nothing to simulate or replay")];
  if (redact_pii) return [ok(CAPTURE, `on: redacted calls are kept for ${showDuration(ttl_ms)}`)];
  const text = `on for ${showDuration(ttl_ms)}, and personal data is kept as it is`;
  return [warn(CAPTURE, text, "set capture.redact_pii: true unless you must have it")];
}

export async function checkConsole({ settings }: World): Promise<DoctorFinding[]> {
  const { mode, role } = settings.console;
  if (mode === "off") return [ok(CONSOLE, "off")];
  if (mode === "open") {
    const text = `open: everybody on this machine acts with the ${role} role, without a login`;
    return [warn(CONSOLE, text, "set SVC_CONSOLE=login where others can reach this machine")];
  }
  if (!isLoopbackHost(settings.listen.host) && !settings.secure_cookies) {
    const text = `login on ${settings.listen.host}, with cookies that also travel over plain HTTP`;
    return [warn(CONSOLE, text, "put HTTPS in front and set SVC_SECURE_COOKIES=1")];
  }
  return [ok(CONSOLE, "login")];
}

/** The programs that rollbacks and upstreams start. */
export async function checkCommands({ settings, variables, cwd }: World): Promise<DoctorFinding[]> {
  const { compensator_cmd, reader_cmd } = settings.rollback;
  const findings: DoctorFinding[] = [];
  const look = async (what: string, program: () => string, from: string) => {
    try {
      const name = program();
      const found = await findProgram(name, from, variables["PATH"] ?? "");
      if (found) findings.push(ok(COMMANDS, `${what}: ${name} is there`));
      else
        findings.push(
          fail(COMMANDS, `${what}: ${name} is not an executable file`, "install it, or give its full path"),
        );
    } catch (error) {
      findings.push(fail(COMMANDS, `${what}: ${messageOf(error)}`, "correct the command"));
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
