/** Runs test files of a tree and tells which tests failed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

export interface Ran {
  /** How many tests were run. */
  tests: number;
  /** The names of those that failed; a file that could not be loaded has its own name here. */
  failed: string[];
  /** A file could not even be loaded: the bug broke the syntax, and no test judged it. */
  unloadable: string[];
}

interface Report {
  testResults: {
    name: string;
    status: string;
    message: string;
    assertionResults: { fullName: string; status: string }[];
  }[];
}

export async function runTests(
  folder: string,
  files: readonly string[],
  only: string | undefined,
): Promise<Ran> {
  const report = join(folder, "planted-report.json");
  rmSync(report, { force: true });
  const vitest = join(folder, "node_modules", "vitest", "vitest.mjs");
  const filter = only === undefined ? [] : ["-t", only];
  const args = [vitest, "run", "--bail=1", "--reporter=json", `--outputFile=${report}`, ...filter, ...files];
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-4_000);
  });
  await once(child, "close");
  if (!existsSync(report)) throw new Error(`vitest said nothing: ${said}`);
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  const ran = tests.filter(({ status }) => status === "passed" || status === "failed");
  return {
    tests: ran.length,
    failed: ran.filter(({ status }) => status === "failed").map(({ fullName }) => fullName),
    unloadable: testResults
      .filter(({ status, assertionResults }) => status === "failed" && assertionResults.length === 0)
      .map(({ name, message }) => `${name}: ${message.split("\n", 1)[0]}`),
  };
}
