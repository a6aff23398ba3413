/** Runs an example with the command of its README, and holds what it prints against what the README shows. */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { ROOT } from "../../support/files.ts";
import { tempDir } from "../../support/tmp.ts";

export interface ExampleRun {
  code: number | null;
  out: string;
  err: string;
  /** Where it ran, and what it left there. */
  folder: string;
  left: string[];
}

/** The example's own temporary folders go below one of ours, so that a folder left behind shows. */
export async function runExample(name: string, env: Record<string, string> = {}): Promise<ExampleRun> {
  const readme = readFileSync(join(ROOT, "examples", name, "README.md"), "utf8");
  const command = `node examples/${name}/run.mjs`;
  expect(readme, "the README says how to run it").toContain(`\n${command}\n`);
  const folder = tempDir("example");
  const temporary = tempDir("example-tmp");
  const child = spawn(process.execPath, [join(ROOT, "examples", name, "run.mjs")], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], TMPDIR: temporary, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const { out, err, code } = await outputOf(child);
  expect(readdirSync(temporary), "what it left in the temporary folder").toEqual([]);
  return { code, out, err, folder, left: readdirSync(folder) };
}

async function outputOf(child: ChildProcess) {
  let out = "";
  let err = "";
  child.stdout!.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { out, err, code };
}

/** The transcript in the README, without the command that starts it. */
export function shownInReadme(name: string): string {
  const readme = readFileSync(join(ROOT, "examples", name, "README.md"), "utf8");
  const block = /```console\n\$ node examples\/\S+run\.mjs\n([\s\S]*?)```/.exec(readme);
  if (block === null) throw new Error(`examples/${name}/README.md shows no transcript`);
  return block[1]!;
}

/** Puts names in the place of everything that differs from run to run. */
export function steady(text: string): string {
  return text
    .replace(/\b(run|apr|halt)_[0-9a-f]{8}-[0-9a-f-]{27}\b/g, "$1_ID")
    .replace(/\b[0-9a-f]{64}\b/g, "HASH")
    .replace(/127\.0\.0\.1:\d+/g, "ADDRESS")
    .replace(/\b\d+ ms\b/g, "N ms")
    .replace(/(?<=wrote )\S*\//g, "")
    .trim();
}
