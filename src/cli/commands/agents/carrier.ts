/**
 * The program that a client starts for each event: a small script that hands the event to the resident process, or Node
 * where the machine has nothing faster.
 */
import { execFileSync } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../child-process/package-files.ts";
import { workspaceOf } from "../../../hook/workspace/registered.ts";
import type { CommandIo } from "../../io.ts";

const SCRIPT = fileURLToPath(packageFile("bin/carrier.pl"));
const CHECK_MS = 5_000;

/** Words before `node` and `svc.js` in the hook's command. Empty if the hook starts in Node, which is slower. */
export function carrierWords(io: CommandIo): string[] {
  if (process.platform === "win32") return [];
  const perl = perlOutside(io);
  return perl === null ? [] : [perl, SCRIPT];
}

/** The first perl that runs the script. One of the workspace could be the agent's own. */
function perlOutside({ env, cwd }: CommandIo): string | null {
  const inner = `${workspaceOf(cwd)}/`;
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    const file = join(folder, "perl");
    try {
      accessSync(file, constants.X_OK);
      if (!isAbsolute(folder) || realpathSync(file).startsWith(inner)) continue;
      const said = execFileSync(file, [SCRIPT, "--check"], { env: {}, timeout: CHECK_MS, encoding: "utf8" });
      if (said === "carrier\n") return file;
    } catch {}
  }
  return null;
}
