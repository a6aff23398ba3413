/**
 * `npm test`: installs the missing packages, builds, runs vitest with the given arguments, and closes with one plain
 * line that reports how many passed and failed. Programs of the machine are installed when a test asks for them.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { build, ensureInstalled, ROOT, StepFailed } from "./ensure.mjs";

const NOTHING_RAN = { passed: 0, failed: 1, skipped: 0 };

process.exitCode = await main(process.argv.slice(2));

async function main(args) {
  try {
    ensureInstalled();
    build();
  } catch (error) {
    console.error(`svc: ${error instanceof Error ? error.message : error}`);
    close(NOTHING_RAN);
    return error instanceof StepFailed ? error.exitCode : 1;
  }
  const folder = mkdtempSync(join(tmpdir(), "svc-count-"));
  const file = join(folder, "counts.json");
  try {
    const code = await vitest(args, file);
    const counts = readCounts(file);
    close(counts);
    // A count of failures must never go with a good exit code, whichever code vitest returns.
    return code === 0 && counts.failed > 0 ? 1 : code;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function vitest(args, countsFile) {
  const bin = join(ROOT, "node_modules", "vitest", "vitest.mjs");
  const reporters = ["--reporter=default", `--reporter=${join(ROOT, "scripts", "count-reporter.mjs")}`];
  const child = spawn(process.execPath, [bin, "run", ...reporters, ...args], {
    cwd: ROOT,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, SVC_TEST_COUNTS: countsFile },
  });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    // A terminal tells the whole group of Ctrl-C; vitest takes a second one as an order to drop everything.
    process.on(signal, () => (signal === "SIGINT" && process.stdout.isTTY ? undefined : child.kill(signal)));
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

function readCounts(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    // vitest ended before it could count.
    return NOTHING_RAN;
  }
}

function close({ passed, failed, skipped }) {
  const rest = skipped > 0 ? `, ${skipped} skipped` : "";
  process.stdout.write(`\n${passed} passed, ${failed} failed${rest}\n`);
}
