/** Links among the files that an edit changes, put back by the command of a rollback. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { createPathGuard } from "../../src/hook/path-guard.ts";
import { closeEdit, openEdit } from "../../src/hook/record/edit-record.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const SVC = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));

/** A file behind a link, and an edit that names the link. */
function linked(act: (link: string) => void) {
  const root = tempDir("hook-links");
  const folder = tempDir("hook-links-svc");
  const at = (name: string) => join(root, name);
  mkdirSync(at("d"));
  writeFileSync(at("d/target"), "as it was");
  symlinkSync("d/target", at("link"));
  const window = openEdit(folder, { root, files: [at("link")], max_file: 1_000 });
  act(at("link"));
  const { before } = closeEdit(folder, window, {
    run: "r",
    max_file: 1_000,
    others: { all: false, output: false },
    isOwn: () => true,
  });
  const input = JSON.stringify({ args: { record: before.record.name } });
  return {
    at,
    undo: () => spawnSync(process.execPath, [SVC, "hook", "restore", "--dir", folder], { input }),
    seen: () => [readlinkSync(at("link")), readFileSync(at("d/target"), "utf8")],
  };
}

it.each([
  ["removed", () => undefined],
  ["replaced by a file", (link: string) => writeFileSync(link, "new")],
  ["pointed elsewhere", (link: string) => symlinkSync("/etc/hostname", link)],
])("makes a link again that the edit %s, and leaves alone what it leads to", (_, change) => {
  verifies("beyond.hooks.restores", "beyond.record.edits");
  const { at, undo, seen } = linked((link) => {
    rmSync(link);
    change(link);
  });
  writeFileSync(at("d/target"), "another's");
  expect(undo().status).toBe(0);
  expect(seen()).toEqual(["d/target", "another's"]);
});

it("writes the file behind a link where the edit went through it", () => {
  verifies("beyond.hooks.restores", "beyond.record.edits");
  const { undo, seen } = linked((link) => writeFileSync(link, "new"));
  expect(undo().status).toBe(0);
  expect(seen()).toEqual(["d/target", "as it was"]);
});

it("follows no directory that became a link since", () => {
  verifies("beyond.record.links", "beyond.record.edits");
  const { at, undo } = linked((link) => writeFileSync(link, "new"));
  renameSync(at("d"), at("moved"));
  symlinkSync("moved", at("d"));
  const { status, stdout } = undo();
  expect(status).toBe(1);
  expect(JSON.parse(`${stdout}`).left).toEqual([
    { path: "d/target", error: "conflict: a link is in its place" },
  ]);
  expect(readFileSync(at("moved/target"), "utf8")).toBe("new");
  expect(lstatSync(at("d")).isSymbolicLink()).toBe(true);
});

it.each([".npmrc", ".mcp.json", ".git/config.worktree"])("judges a pipe without reading it: %s", (name) => {
  verifies("beyond.hooks.four-seconds");
  const cwd = tempDir("hook-pipe");
  mkdirSync(join(cwd, ".git"));
  execFileSync("mkfifo", [join(cwd, name)]);
  const guard = createPathGuard({ home: "/home/ann", protect: [], authority: "127.0.0.1:1" });
  expect([guard.path(name, cwd), guard.runsUnasked(name, cwd)]).toEqual([null, true]);
});
