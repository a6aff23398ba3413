/**
 * The program that a client starts for each event: a small script that hands the event to the resident process, in perl
 * or in sh with nc, or Node where the machine has neither.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../child-process/package-files.ts";
import { workspaceOf } from "../../../hook/workspace/registered.ts";
import type { CommandIo } from "../../io.ts";

const SCRIPTS = {
  perl: fileURLToPath(packageFile("bin/carrier.pl")),
  nc: fileURLToPath(packageFile("bin/carrier.sh")),
};
const SHELL = "/bin/sh";
const CHECK_MS = 5_000;

/** Words before `node` and `svc.js` in the hook's command. Empty if the hook starts in Node, which is slower. */
export function carrierWords(io: CommandIo): string[] {
  if (process.platform === "win32") return [];
  const perl = programOutside(
    io,
    "perl",
    (file) => outputOf(file, [SCRIPTS.perl, "--check"]) === "carrier\n",
  );
  if (perl !== null) return [perl, SCRIPTS.perl];
  // Other versions of nc have no option for a Unix socket.
  const nc = programOutside(io, "nc", (file) => /(?:^|[\s[|-])-?\w*U\b/m.test(outputOf(file, ["-h"])));
  return nc === null ? [] : [SHELL, SCRIPTS.nc, nc];
}

/** The first program of that name that passes the check. One of the workspace could be the agent's own. */
function programOutside(
  { env, cwd }: CommandIo,
  name: string,
  passes: (file: string) => boolean,
): string | null {
  const inner = `${workspaceOf(cwd)}/`;
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, name);
    try {
      accessSync(file, constants.X_OK);
      // The agent could change a link in the workspace later, wherever it leads now.
      const places = [`${realpathSync(folder)}/`, realpathSync(file)];
      if (isAbsolute(folder) && !places.some((place) => place.startsWith(inner)) && passes(file)) return file;
    } catch {}
  }
  return null;
}

/** Everything that the program prints. A help text may be on either stream, and end with any code. */
function outputOf(file: string, args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(file, args, { env: {}, timeout: CHECK_MS, encoding: "utf8" });
  return `${stdout ?? ""}${stderr ?? ""}`;
}
