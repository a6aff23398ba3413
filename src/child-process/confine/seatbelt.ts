/**
 * The profile of macOS's `sandbox-exec` for one confined command. A pure function over the plan. Untested on macOS.
 *
 * Of several rules that fit, the last one counts.
 */
import { dirname } from "node:path";
import { invalidError } from "../../kernel/errors.ts";

/** What a confined command sees of the machine. All paths are absolute and resolved. */
export interface SeatbeltPlan {
  readonly workspace: string;
  /** Directory of the run with the command's home and temporary directory. */
  readonly run_folder: string;
  /** Read-only, existing or not, with everything below. */
  readonly protected: readonly string[];
  /** Cannot be read or written, with everything below. */
  readonly hidden: readonly string[];
  /** Programs outside of the system's directories. */
  readonly programs: readonly string[];
  /** Port of the governed proxy on loopback. */
  readonly proxy_port: number;
}

const SYSTEM = ["/usr", "/bin", "/sbin", "/System", "/Library", "/opt/homebrew", "/private/etc/ssl", "/dev"];
/** Through these, programs learn their user's name and the time zone. None starts a program or reads a secret. */
const SERVICES = ["com.apple.system.opendirectoryd.libinfo", "com.apple.system.notification_center"];
const DEVICES = ["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"];

export function seatbeltProfile(plan: SeatbeltPlan): string {
  const { workspace, run_folder, programs, proxy_port } = plan;
  const folders = (paths: readonly string[]) => paths.map((path) => `(subpath ${quoted(path)})`).join(" ");
  const literals = (paths: readonly string[]) => paths.map((path) => `(literal ${quoted(path)})`).join(" ");
  const locked = [...plan.protected, ...plan.hidden].flatMap((path) => between(path, workspace));
  return [
    "(version 1)",
    "(deny default)",
    "(allow process-fork)",
    "(allow process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    `(allow mach-lookup ${SERVICES.map((name) => `(global-name ${quoted(name)})`).join(" ")})`,
    "(allow file-read-metadata)",
    `(allow file-read* (literal "/") ${folders([...SYSTEM, ...programs])})`,
    `(allow file-write-data file-ioctl ${literals(DEVICES)} (regex #"^/dev/ttys[0-9]+$"))`,
    `(allow file-read* file-write* ${folders([workspace, run_folder])})`,
    ...plan.protected.map((path) => `(deny file-write* ${belowInAnyCase(path)})`),
    ...plan.hidden.map((path) => `(deny file-read* file-write* ${belowInAnyCase(path)})`),
    // A directory above a protected path could be moved away, and another one put in its place.
    ...[...new Set(locked)].map((path) => `(deny file-write-unlink ${inAnyCase(path, "$")})`),
    // Such a file in the workspace would outlast the confinement.
    "(deny file-write-setugid)",
    `(allow network-outbound (remote ip "localhost:${proxy_port}"))`,
    "",
  ].join("\n");
}

/** Directories between the workspace and the path. */
function between(path: string, workspace: string): string[] {
  const above = dirname(path);
  return above.startsWith(`${workspace}/`) ? [above, ...between(above, workspace)] : [];
}

const belowInAnyCase = (path: string): string => inAnyCase(path, "(/|$)");

/** File names differ by more than their case on macOS. */
function inAnyCase(path: string, end: string): string {
  const text = plain(path).replace(/[A-Za-z]|[^A-Za-z0-9/_-]/g, (char) =>
    /[A-Za-z]/.test(char) ? `[${char.toUpperCase()}${char.toLowerCase()}]` : `[${char}]`,
  );
  return `(regex #"^${text}${end}")`;
}

const quoted = (path: string): string => `"${plain(path)}"`;

/** Throws for a path that the profile's language would read differently. */
function plain(path: string): string {
  if (/["\\^[\]\p{Cc}]/u.test(path))
    throw invalidError(
      `${JSON.stringify(path)}: a confined path must not hold quotes, backslashes, ^ or brackets`,
    );
  return path;
}
