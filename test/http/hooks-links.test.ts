/** Links among the files that an edit changes, put back by the commands of a rollback. */
import { execFileSync } from "node:child_process";
import { lstatSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { snapshotFiles } from "../../src/hook/workspace/file-snapshot.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const SVC = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));

function linked() {
  const folder = tempDir("hook-links");
  const [target, link] = [join(folder, "target"), join(folder, "link")];
  writeFileSync(target, "as it was");
  symlinkSync("target", link);
  const args = snapshotFiles([link], true);
  const restored = () => {
    execFileSync(process.execPath, [SVC, "hook", "restore"], { input: JSON.stringify({ args }) });
    return [readlinkSync(link), readFileSync(target, "utf8"), lstatSync(target).isFile()];
  };
  return { target, link, restored };
}

it.each([
  ["removed", () => undefined],
  ["replaced by a file", (link: string) => writeFileSync(link, "new")],
  ["pointed elsewhere", (link: string) => symlinkSync("/etc/hostname", link)],
])("makes a link again that was %s, and leaves alone what it leads to", (_, change) => {
  verifies("beyond.hooks.restores");
  const { target, link, restored } = linked();
  rmSync(link);
  change(link);
  writeFileSync(target, "another's");
  expect(restored()).toEqual(["target", "another's", true]);
});

it("writes what a link leads to where the edit went through it", () => {
  verifies("beyond.hooks.restores");
  const { link, restored } = linked();
  writeFileSync(link, "new");
  expect(restored()).toEqual(["target", "as it was", true]);
});
