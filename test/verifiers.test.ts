/** The verifiers that are not written in TypeScript run their own tests; here they are counted with the rest. */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { pageBrowser } from "./support/browser.ts";
import { ROOT } from "./support/files.ts";
import { program } from "./support/programs.ts";
import { verifies } from "./support/verifies.ts";

const PYTHON = await program("python3");
// Both compare themselves with these if they are there, and skip such tests if they are not.
await program("openssl");
const CHROME_PATH = await pageBrowser();

/** The output together with the exit code, so that a failure shows both. */
async function run(command: string, args: string[]): Promise<{ code: number | null; said: string }> {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, CHROME_PATH },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, said };
}

describe("the Python SDK", () => {
  it("passes its own tests, all of them", async () => {
    verifies("beyond.hint.sdk", "beyond.python.frameworks");
    const { code, said } = await run(
      PYTHON,
      "-m unittest discover -s sdk/python/tests -t sdk/python".split(" "),
    );
    expect(code, said).toBe(0);
    expect(said).not.toContain("skipped=");
  });
});

describe("the offline viewer", () => {
  it("is built from its sources", async () => {
    const { code, said } = await run(process.execPath, ["viewer/build.mjs", "--check"]);
    expect(code, said).toBe(0);
  });

  it("passes its own tests, all of them", async () => {
    const tests = readdirSync(join(ROOT, "viewer", "test")).filter((name) => name.endsWith(".test.mjs"));
    const files = tests.map((name) => join("viewer", "test", name));
    const { code, said } = await run(process.execPath, ["--test", "--test-reporter=tap", ...files]);
    expect(code, said).toBe(0);
    expect(said).toContain("# skipped 0");
  });
});
