/** Stashes, compared with the work tree before git runs. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
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
const judge = (command: string, { cwd }: { cwd: string }) => classifyCommand(command, { cwd, home }, guard);

describe("a stash", () => {
  const work = () => {
    const cwd = tempDir();
    const git = (...words: string[]) =>
      execFileSync(GIT, ["-c", "user.name=a", "-c", "user.email=a@b", ...words], { cwd, stdio: "ignore" });
    git("init", "-q");
    writeFileSync(join(cwd, "a.txt"), "one\n");
    mkdirSync(join(cwd, ".claude"));
    writeFileSync(join(cwd, ".claude/settings.json"), "{}\n");
    mkdirSync(join(cwd, ".husky"));
    writeFileSync(join(cwd, ".husky/pre-commit"), "true\n");
    git("add", "-A");
    git("commit", "-qm", "x");
    return { cwd, git };
  };

  it("passes with ordinary files, and asks or is refused with files that run", () => {
    verifies("beyond.hooks.stash");
    const { cwd, git } = work();
    writeFileSync(join(cwd, "a.txt"), "two\n");
    expect(judge("git stash", { cwd })).toMatchObject({ class: "vcs", touches: [] });
    writeFileSync(join(cwd, ".husky/pre-commit"), "false\n");
    expect(judge("git stash push -m x", { cwd }).class).toBe("unknown");
    git("stash");
    expect(judge("git stash pop", { cwd }).class).toBe("unknown");
    writeFileSync(join(cwd, ".claude/settings.json"), '{"a":1}\n');
    expect(judge("git stash", { cwd }).touches).not.toEqual([]);
    git("stash");
    expect(judge("git stash pop 0", { cwd }).touches).not.toEqual([]);
    expect(judge("git stash apply stash@{1}", { cwd }).class).toBe("unknown");
  });

  it("asks with untracked files that run", () => {
    verifies("beyond.hooks.stash");
    const { cwd } = work();
    writeFileSync(join(cwd, ".envrc"), "x\n");
    expect(judge("git stash", { cwd }).class).toBe("vcs");
    expect(judge("git stash -u", { cwd }).class).toBe("unknown");
  });
});
