/** The command's script with V8's compiled code, which a build leaves for its own Node. */
import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { expect, it } from "vitest";
import { commandScript } from "../../src/cli/compiled-command.ts";
import { filesUnder, ROOT } from "../support/files.ts";

const url = new URL("dist/shared/command.cjs", pathToFileURL(`${ROOT}/`));
const cache = new URL(`command-${process.version}-${process.arch}.cache`, url);

it("is there after a build, and V8 takes it", () => {
  expect(existsSync(cache)).toBe(true);
  expect(commandScript(url, readFileSync(cache)).cachedDataRejected).toBe(false);
});

it("is refused when it is cut short, so that the modules run", () => {
  const cut = readFileSync(cache).subarray(0, -8);
  expect(commandScript(url, cut).cachedDataRejected).toBe(true);
});

it("stays out of the package, whose Node is another", () => {
  const { files } = JSON.parse(readFileSync(new URL("package.json", pathToFileURL(`${ROOT}/`)), "utf8"));
  expect(files).toContain("!dist/shared/command.cjs");
  expect(files).toContain("!dist/shared/*.cache");
  expect(filesUnder("dist", ".cache").every((path) => path.startsWith("dist/shared/"))).toBe(true);
});
