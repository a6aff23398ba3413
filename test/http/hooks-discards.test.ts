/** Git commands that would throw away changes in the work tree: the session's own pass, a person's need approval. */
import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");
const pack = (name: string) =>
  readFileSync(fileURLToPath(new URL(`../../packs/coding-agents/${name}`, import.meta.url)), "utf8");
const home = tempDir("discards-home");
const cwd = tempDir("discards");
const git = (...args: string[]) =>
  execFileSync(GIT, ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd });
const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);

let s: ConsoleServer;
let n = 0;
let session = "";
beforeAll(async () => {
  s = await consoleServer({
    manifests: pack("manifests.yaml"),
    policy: pack("policy.yaml"),
    config: "console: off\n",
  });
  git("init", "-q", "-b", "main");
  for (const name of ["mine.ts", "yours.ts", "c.ts"]) write(name, `${name} one\n`);
  git("add", ".");
  git("commit", "-qm", "one");
  git("branch", "other");
  return () => s.close();
});
beforeEach(() => {
  git("reset", "-q", "--hard");
  session = `discards-${n++}`;
});

const settings = () =>
  ({
    ...{ server: s.url, key: "agent", mode: "enforce", notes: join(home, "notes"), folder: home },
    ...{ protect: [s.folder], home, config_option: "", snapshot: SNAPSHOT_DEFAULTS },
  }) as HookSettings;
async function send(tool_name: string, tool_input: object, act?: () => void): Promise<number> {
  const event = { session_id: session, cwd, tool_name, tool_input, tool_use_id: `t${n++}` };
  const tell = (hook_event_name: string, more: object = {}) =>
    handleEvent("claude-code", JSON.stringify({ ...event, hook_event_name, ...more }), settings);
  const { code } = await tell("PreToolUse");
  if (code === 0 && act !== undefined) {
    act();
    await tell("PostToolUse", { tool_response: {} });
  }
  return code;
}
const edit = (name: string, text: string) =>
  send("Write", { file_path: join(cwd, name), content: text }, () => write(name, text));
const runs = async (command: string) => ((await send("Bash", { command })) === 0 ? "passes" : "asks");

const DISCARDS = [
  "git restore yours.ts",
  "git checkout -- yours.ts",
  "git checkout yours.ts",
  "git restore .",
  "git checkout -- .",
  "git checkout HEAD yours.ts",
  "git restore --source HEAD yours.ts",
  "git restore -s HEAD -- yours.ts",
  "git restore --staged --worktree yours.ts",
  "git restore -SW yours.ts",
  "git restore '*.ts'",
  "git checkout other -- yours.ts",
  "cd . && git restore yours.ts",
];

describe("a command that throws changes away", () => {
  it.each(DISCARDS)("asks where a person's work would be lost: %s", async (command) => {
    verifies("beyond.hooks.discards");
    write("yours.ts", "a person's work\n");
    expect(await runs(command)).toBe("asks");
  });

  // A whole directory needs approval in any case: it may hold files that run on their own.
  it.each(DISCARDS.filter((command) => command.includes("yours")))(
    "passes where nothing would be lost, or the session's own edits alone: %s",
    async (command) => {
      verifies("beyond.hooks.discards-own");
      expect(await runs(command)).toBe("passes");
      expect(await edit("yours.ts", "an agent's\n")).toBe(0);
      expect(await edit("yours.ts", "an agent's again\n")).toBe(0);
      expect(await runs(command)).toBe("passes");
    },
  );

  it.each([
    "git restore --staged yours.ts",
    "git checkout -b new",
    "git switch other",
    "git stash",
    "git checkout other",
  ])("passes where git keeps the work: %s", async (command) => {
    verifies("beyond.hooks.discards-own");
    write("yours.ts", "a person's work\n");
    expect(await runs(command)).toBe("passes");
  });

  it("asks where a person worked on the file before, between or after the session's edits", async () => {
    verifies("beyond.hooks.discards");
    write("mine.ts", "a person's\n");
    await edit("mine.ts", "an agent's\n");
    expect(await runs("git restore mine.ts")).toBe("asks");
    await edit("c.ts", "an agent's\n");
    write("c.ts", "a person's\n");
    expect(await runs("git restore c.ts")).toBe("asks");
    await edit("c.ts", "an agent's once more\n");
    expect(await runs("git restore c.ts")).toBe("asks");
    expect(await runs("git restore mine.ts c.ts")).toBe("asks");
  });

  it("asks where the change is another session's, a command's, or in a file that cannot be compared", async () => {
    verifies("beyond.hooks.discards");
    await edit("yours.ts", "an agent's\n");
    session = `other-${n++}`;
    expect(await runs("git restore yours.ts")).toBe("asks");
    git("reset", "-q", "--hard");
    await send("Bash", { command: "npx prettier --write c.ts" }, () => write("c.ts", "formatted\n"));
    write("c.ts", "formatted\n");
    expect(await runs("git restore c.ts")).toBe("asks");
    git("reset", "-q", "--hard");
    rmSync(join(cwd, "c.ts"));
    expect(await runs("git restore c.ts")).toBe("passes");
    git("reset", "-q", "--hard");
    chmodSync(join(cwd, "c.ts"), 0o755);
    expect(await runs("git restore c.ts")).toBe("asks");
    git("reset", "-q", "--hard");
    write("yours.ts", "staged by a person\n");
    git("add", "yours.ts");
    expect(await runs("git restore yours.ts")).toBe("passes");
    expect(await runs("git checkout HEAD -- yours.ts")).toBe("asks");
  });
});
