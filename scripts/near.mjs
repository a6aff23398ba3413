/**
 * `npm run near [file..]`: runs the tests that import what you changed, directly or through other files. Without
 * files it takes what git says: uncommitted and new files, or the last commit if there are none.
 */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./ensure.mjs";

const files = process.argv.length > 2 ? process.argv.slice(2) : changedFiles();
const sources = files.filter((file) => /\.(ts|mts|mjs|js)$/.test(file) && existsSync(join(ROOT, file)));
if (sources.length === 0) {
  console.log("no source file changed: nothing to run");
} else {
  console.log(`tests near ${sources.length === 1 ? sources[0] : `${sources.length} changed files`}`);
  const vitest = join(ROOT, "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "related", "--run", "--passWithNoTests", "--project", "unit", "--project", "sharing"];
  process.exitCode =
    spawnSync(process.execPath, [...args, ...sources], { cwd: ROOT, stdio: "inherit" }).status ?? 1;
}

function changedFiles() {
  const open = [...git("diff", "--name-only", "HEAD"), ...git("ls-files", "--others", "--exclude-standard")];
  return open.length > 0 ? open : git("diff", "--name-only", "HEAD~1", "HEAD");
}

function git(...args) {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8" });
  if (status !== 0)
    throw new Error(`git ${args[0]} failed: ${stderr.trim()}. Name the files: npm run near -- src/a.ts`);
  return stdout.split("\n").filter(Boolean);
}
