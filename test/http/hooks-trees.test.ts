/** Git commands that would bring other files into a work tree, or obey a configuration that an edit can write. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");
const cwd = tempDir("hook-trees");
const git = (...args: string[]) =>
  execFileSync(GIT, ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd });

function write(name: string, text: string): void {
  mkdirSync(dirname(join(cwd, name)), { recursive: true });
  writeFileSync(join(cwd, name), text);
}

/** A new branch with one more file. */
function branch(name: string, file: string): void {
  git("checkout", "-q", "-b", name, "main");
  write(file, "{}\n");
  git("add", "-f", file);
  git("commit", "-qm", name);
  git("checkout", "-q", "main");
}

/** A service that allows everything, and what it was last asked. */
let asked: { tool: string; args: { touches?: string[] } } | null = null;
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    if (request.url!.endsWith("/intents")) asked = JSON.parse(body);
    response.end('{"decision":"allow","step":0}');
  });
});

beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  git("init", "-q", "-b", "main");
  write("a.txt", "a\n");
  git("add", ".");
  git("commit", "-qm", "first");
  branch("plain", "b.txt");
  branch("settings", ".claude/settings.json");
  branch("servers", ".mcp.json");
  branch("skills", ".claude/skills/x/SKILL.md");
  write("inner/HEAD", "ref: refs/heads/main\n");
  write("inner/config", "[core]\n\tfsmonitor = ./run\n\tworktree = .\n");
  for (const name of ["objects", "refs", "deep/er"]) mkdirSync(join(cwd, "inner", name), { recursive: true });
});
afterAll(() => void server.close());

async function judged(command: string): Promise<string> {
  const settings = {
    server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key: "k",
    mode: "enforce",
    notes: tempDir("hook-notes"),
    folder: tempDir("hook-folder"),
    snapshot: SNAPSHOT_DEFAULTS,
    protect: [],
    home: "/nonexistent",
    config_option: "",
  };
  asked = null;
  const input = {
    session_id: "s",
    cwd,
    hook_event_name: "PreToolUse",
    tool_name: "Bash",
    tool_input: { command },
    tool_use_id: "t",
  };
  const answer = await handleEvent(
    "claude-code",
    JSON.stringify(input),
    () => settings as unknown as HookSettings,
  );
  if (asked === null) return `not asked: ${answer.out}${answer.err}`;
  const { tool, args } = asked as { tool: string; args: { touches?: string[] } };
  return args.touches === undefined ? tool : `refused: ${args.touches.join()}`;
}

it.each([
  "git checkout settings",
  "git switch settings",
  "git merge settings",
  "git rebase settings",
  "git cherry-pick settings",
  "git cherry-pick main..settings",
  "git restore --source=settings .",
  "git switch -c next settings",
  "git checkout settings~0",
])("is refused where it would replace the hook's settings: %s", async (command) => {
  verifies("beyond.hooks.protected");
  expect(await judged(command)).toMatch(/^refused: .*settings/);
});

it.each([
  "git checkout servers",
  "git merge servers",
  "git merge skills",
  "git rebase skills",
  "git cherry-pick skills",
  "git checkout plain && git merge skills",
])("asks where it would change what a client runs: %s", async (command) => {
  verifies("beyond.hooks.unasked-files");
  expect(await judged(command)).toBe("code.shell_unknown");
});

it.each([
  "git checkout plain",
  "git switch plain",
  "git merge plain",
  "git rebase plain",
  "git checkout -b new",
])("passes where it changes ordinary files: %s", async (command) => {
  verifies("beyond.hooks.everyday");
  expect(await judged(command)).toBe("code.shell_vcs");
});

it.each([
  "git -C inner status",
  "cd inner && git status",
  "cd inner/deep/er && git log",
  "git -C inner diff",
])("asks in a repository whose configuration lies open: %s", async (command) => {
  verifies("beyond.hooks.no-workspace-programs", "beyond.hooks.understood-or-unknown");
  expect(await judged(command)).toBe("code.shell_unknown");
  expect(await judged("git status")).toBe("code.shell_read");
});
