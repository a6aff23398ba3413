/** Git commands that pass, and what they write to the configuration of a repository. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createPathGuard } from "../../src/hook/path-guard.ts";
import { classifyCommand } from "../../src/hook/shell/classify.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");
const home = "/home/ann";
const guard = createPathGuard({ home, protect: [], authority: "127.0.0.1:8787" });
const classOf = (command: string, cwd: string) => classifyCommand(command, { cwd, home }, guard).class;

describe("the configuration of a repository", () => {
  const PASSING = [
    "git switch -q -c one origin/topic",
    "git switch -q topic",
    "git checkout -q -b two --track origin/main",
    "git branch three main",
    "git branch -u origin/main three",
    "git branch -m three four",
    "git worktree add -q ../shop-five -b five origin/topic",
  ];
  const ASKING = [
    "git config branch.one.remote ext::id",
    "git branch --edit-description one",
    "git fetch --set-upstream ext::id",
    "git push -u origin one",
    "git remote add x ext::id",
    "git switch -c one --recurse-submodules origin/topic",
  ];

  it("gets tracking entries without a question, and nothing else", () => {
    verifies("beyond.hooks.tracking-entries");
    const root = tempDir();
    const git = (cwd: string, ...args: string[]) =>
      execFileSync(GIT, ["-c", "user.name=ann", "-c", "user.email=ann@shop.test", ...args], {
        cwd,
        encoding: "utf8",
        env: { PATH: process.env["PATH"], HOME: root, GIT_CONFIG_NOSYSTEM: "1" },
      });
    const [first, shop] = [join(root, "first"), join(root, "shop")];
    mkdirSync(first);
    git(first, "init", "-q", "-b", "main");
    git(first, "commit", "-q", "--allow-empty", "-m", "first");
    git(first, "branch", "topic");
    git(root, "clone", "-q", first, shop);
    const before = git(shop, "config", "--local", "--list").split("\n");
    for (const command of PASSING) {
      expect([command, classOf(command, shop)]).toEqual([command, "vcs"]);
      git(shop, ...command.split(" ").slice(1));
    }
    const added = git(shop, "config", "--local", "--list")
      .split("\n")
      .filter((line) => !before.includes(line));
    expect(added.length).toBeGreaterThan(6);
    for (const line of added)
      expect(line).toMatch(/^branch\.\w+\.(?:remote=(?:origin|\.)|merge=refs\/heads\/(?:main|topic))$/);
    for (const command of ASKING)
      expect([command, classOf(command, shop)]).toEqual([command, expect.stringMatching(/unknown|network/)]);
  });
});
