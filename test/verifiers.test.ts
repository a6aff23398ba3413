/** The verifiers that are not written in TypeScript run their own tests; here they are counted with the rest. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./support/files.ts";

const run = (program: string, args: string[]) =>
  execFileSync(program, args, {
    cwd: ROOT,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    timeout: 110_000,
  });

describe("the Python SDK", () => {
  it("passes its own tests", () => {
    expect(() =>
      run("python3", ["-m", "unittest", "discover", "-s", "sdk/python/tests", "-t", "sdk/python"]),
    ).not.toThrow();
  });
});

describe("the offline viewer", () => {
  it("is built from its sources", () => {
    expect(() => run(process.execPath, ["viewer/build.mjs", "--check"])).not.toThrow();
  });

  it("passes its own tests", () => {
    const tests = readdirSync(join(ROOT, "viewer", "test")).filter((name) => name.endsWith(".test.mjs"));
    expect(() =>
      run(process.execPath, ["--test", ...tests.map((name) => join("viewer", "test", name))]),
    ).not.toThrow();
  });
});
