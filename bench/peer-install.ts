/** Packages that aren't our dependencies, each installed into its own directory for this run. */
import { execFile } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

/** Alone, npm waits five minutes for each answer of a registry and asks three times. */
const ANSWER_MS = 10_000;
const INSTALL_MS = 90_000;
const OPTIONS = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--fetch-retries=1"];

/** The directory of the installed package; null, with a line that says why, if it cannot be installed. */
export async function installed(folder: string, name: string, version: string): Promise<string | null> {
  const own = join(folder, name.replaceAll("/", "+"));
  mkdirSync(own, { recursive: true });
  const args = ["install", ...OPTIONS, `--fetch-timeout=${ANSWER_MS}`, "--prefix", own, `${name}@${version}`];
  const problem = await new Promise<string | null>((resolve) => {
    execFile(
      "npm",
      args,
      { cwd: own, timeout: INSTALL_MS, killSignal: "SIGKILL" },
      (error, _stdout, stderr) => {
        if (error === null) resolve(null);
        else if (error.killed) resolve(`npm was not done after ${INSTALL_MS / 1_000} s`);
        else resolve(/^npm error (?!code|errno)(.*)$/m.exec(stderr)?.[1] ?? error.message);
      },
    );
  });
  if (problem === null) return own;
  console.error(`not compared: ${name} ${version}: ${problem}`);
  return null;
}
