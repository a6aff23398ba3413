/** What the hook makes of files that run by themselves, of strange input fields, of PowerShell and of background commands. */
import { linkSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import type { HookClient } from "../../src/hook/clients/clients.ts";
import { handleEvent } from "../../src/hook/hook.ts";
import { SNAPSHOT_DEFAULTS } from "../../src/hook/record/record-scope.ts";
import type { HookSettings } from "../../src/hook/settings.ts";
import { type Answer, type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const text = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

const home = tempDir("hook-home");
let s: ConsoleServer;
let n = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: text("packs/coding-agents/manifests.yaml"),
    policy: text("packs/coding-agents/policy.yaml"),
    config: "console: off\n",
  });
  return () => s.close();
});

const EVENTS = {
  "claude-code": ["PreToolUse", "PostToolUse", "SessionEnd", "Stop"],
  codex: ["PreToolUse", "PostToolUse", "SessionEnd", "Stop"],
  cursor: ["preToolUse", "postToolUse", "sessionEnd", "stop"],
  gemini: ["BeforeTool", "AfterTool", "SessionEnd", "AfterAgent"],
} as const;

function session(client: HookClient, cwd = tempDir("hook-cwd")) {
  const id = `j${n++}`;
  const settings = {
    server: s.url,
    key: "agent",
    mode: "enforce",
    notes: tempDir("hook-notes"),
    snapshot: SNAPSHOT_DEFAULTS,
    folder: home,
    protect: [s.folder],
    home,
    config_option: "",
  };
  const ids = { session_id: id, conversation_id: id };
  const send = (moment: 0 | 1 | 2 | 3, more: object) =>
    handleEvent(
      client,
      JSON.stringify({ ...ids, cwd, hook_event_name: EVENTS[client][moment], ...more }),
      () => settings as unknown as HookSettings,
    );
  /** "passes", "asks" or "refused", with the words for it. */
  const asked = async (tool_name: string, tool_input: object) => {
    const { out, err, code } = await send(0, { tool_name, tool_input, tool_use_id: `t${n++}` });
    if (code === 2) return /approval required/.test(err) && !/it touches/.test(err) ? "asks" : "refused";
    return out === "" || out === "{}" ? "passes" : out;
  };
  const steps = async () => (await s.api("agent", "GET", `/v1/runs/${client}-${id}`)).body.steps as Answer[];
  return { cwd, send, asked, steps };
}

describe("a command", () => {
  it.each([
    ["asks", "JAVACMD=./x ./mvnw test"],
    ["asks", "export PYLINTRC=x; pylint src"],
    ["asks", "RM=./x make clean"],
    ["asks", "env BIOME_BINARY=./x npx biome check"],
    ["passes", "CGO_ENABLED=0 TEST_SEED=5 go test ./..."],
    ["passes", "DATABASE_URL=postgres://localhost:5432/shop_test npm test"],
    ["asks", "DATABASE_URL=postgres://db.shop.example/shop npm test"],
  ])("%s when it gives a program these variables: %s", async (answer, command) => {
    verifies("beyond.hooks.understood-or-unknown");
    expect(await session("claude-code").asked("Bash", { command })).toBe(answer);
  });

  it.each([
    ["asks", "npm run deploy"],
    ["asks", "make -j4 install"],
    ["passes", "make -n install"],
    ["asks", "npx lerna publish"],
    ["passes", "npx lerna run build"],
    ["asks", "pre-commit install"],
    ["asks", "clang-tidy a.c -- -fplugin=./x.so"],
    ["asks", "npm pack evil/x"],
    ["refused", "cat ~/.vault-token"],
  ])("%s by its subcommand, its target and its files: %s", async (answer, command) => {
    verifies("beyond.hooks.understood-or-unknown");
    expect(await session("claude-code").asked("Bash", { command })).toBe(answer);
  });
});

describe("a file that something runs on its own", () => {
  const cwd = tempDir("hook-cwd");
  const asked = (tool: string, input: object) => session("claude-code", cwd).asked(tool, input);
  const write = (file_path: string) => asked("Write", { file_path, content: "x" });

  it.each([
    ".mcp.json",
    "sub/.mcp.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    ".git/config",
    ".git/config.worktree",
    ".git/hooks/pre-commit",
    ".git/modules/a/hooks/post-checkout",
    ".yarn/releases/yarn.cjs",
    "shop.code-workspace",
    ".MCP.JSON",
    ".Cursor/MCP.json",
    "src/../.mcp.json",
    "././/.mcp.json",
    ".mcp\u200b.json",
    "\uff0emcp.json",
    ".GIT/config",
  ])("asks where it decides what git or a client runs: %s", async (path) => {
    verifies("beyond.hooks.unasked-files");
    expect(await write(join(cwd, path))).toBe("asks");
    expect(await asked("Bash", { command: `echo x > '${path}'` })).toBe("asks");
  });

  it.each([".gitconfig", ".config/git/config", ".cursor/mcp.json"])(
    "asks in the home folder: ~/%s",
    async (path) => {
      verifies("beyond.hooks.unasked-files");
      expect(await write(join(home, path))).toBe("asks");
      expect(await asked("Bash", { command: `cp a.txt ~/${path}` })).toBe("asks");
    },
  );

  it.each([".claude.json", ".codex/config.toml"])(
    "is refused in the home folder where it is a client's settings: ~/%s",
    async (path) => {
      verifies("beyond.hooks.unasked-files");
      expect(await write(join(home, path))).toBe("refused");
      expect(await asked("Bash", { command: `cp a.txt ~/${path}` })).toBe("refused");
    },
  );

  it("asks through links, hard ones too, as a .git file, and by wildcards", async () => {
    verifies("beyond.hooks.unasked-files");
    const place = tempDir("hook-cwd");
    const { asked } = session("claude-code", place);
    for (const folder of [".cursor", "linked", "repo/.git", ".husky"])
      mkdirSync(join(place, folder), { recursive: true });
    writeFileSync(join(place, ".cursor/mcp.json"), "{}");
    writeFileSync(join(place, ".husky/pre-push"), "true\n");
    symlinkSync(".cursor", join(place, "plain"));
    linkSync(join(place, ".cursor/mcp.json"), join(place, "notes.txt"));
    linkSync(join(place, ".husky/pre-push"), join(place, "script.txt"));
    for (const path of ["plain/mcp.json", "notes.txt", "script.txt", "linked/.git"])
      expect([path, await asked("Write", { file_path: join(place, path), content: "x" })]).toEqual([
        path,
        "asks",
      ]);
    for (const command of ["cp a.txt .hus*/pre-push", "mv repo/.git other", "cp a.txt script.txt"])
      expect([command, await asked("Bash", { command })]).toEqual([command, "asks"]);
    for (const command of ["ls repo/.git", "cat .cursor/mcp.json"])
      expect([command, await asked("Bash", { command })]).toEqual([command, "passes"]);
  });

  it("asks in every directory that the configuration of git names", async () => {
    verifies("beyond.hooks.unasked-files");
    const place = tempDir("hook-cwd");
    mkdirSync(join(place, ".git"));
    writeFileSync(
      join(place, ".git/config"),
      '[core]\n\thooksPath = "tools/git"\n[include]\n\tpath = ../extra.inc\n',
    );
    const { asked } = session("claude-code", place);
    for (const path of ["tools/git/pre-commit", "extra.inc"])
      expect([path, await asked("Write", { file_path: join(place, path), content: "x" })]).toEqual([
        path,
        "asks",
      ]);
    expect(await asked("Bash", { command: "mv tools other" })).toBe("asks");
    expect(await asked("Write", { file_path: join(place, "tools/a.ts"), content: "x" })).toBe("passes");
  });

  it.each([
    [
      ".mcp.json",
      { mcpServers: { svc: { command: "node", args: ["/x/bin/svc.js", "gateway", "--config"] } } },
    ],
    [
      ".cursor/mcp.json",
      { mcpServers: { a: { url: "https://x.test/mcp", headers: { authorization: "Bearer $SVC_KEY" } } } },
    ],
    ["sub/.mcp.json", { mcpServers: { a: { url: () => `${s.url}/mcp` } } }],
  ])("is refused where it names the gateway: %s", async (path, config) => {
    verifies("beyond.hooks.unasked-files");
    const place = tempDir("hook-cwd");
    const { asked } = session("claude-code", place);
    const full = join(place, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(
      full,
      JSON.stringify(config, (_, one) => (typeof one === "function" ? one() : one)),
    );
    linkSync(full, join(place, "other.json"));
    expect(await asked("Write", { file_path: full, content: "{}" })).toBe("refused");
    expect(await asked("Bash", { command: `rm ${path}` })).toBe("refused");
    if (!path.startsWith("sub"))
      expect(await asked("Write", { file_path: join(place, "other.json"), content: "{}" })).toBe("refused");
  });

  it.each([
    ".envrc",
    ".vscode/tasks.json",
    ".husky/pre-commit",
    ".claude/skills/x/SKILL.md",
    ".claude/agents/x.md",
    ".claude/statusline.sh",
    ".cursor/worktrees.json",
    ".gemini/sandbox.bashrc",
    "mise.toml",
    ".bashrc",
    ".Zshrc",
  ])("asks where it decides something else: %s", async (path) => {
    verifies("beyond.hooks.unasked-files");
    expect(await write(join(cwd, path))).toBe("asks");
    expect(await asked("Bash", { command: `cp a.txt ${path}` })).toBe("asks");
    expect(await asked("Bash", { command: `cat ${path}` })).toBe("passes");
  });

  it("is not every file", async () => {
    const plain = ["CLAUDE.md", "AGENTS.md", "src/mcp.json", "git/a.txt", ".gitignore", ".github/x.yml"];
    const clients = [
      ".claude/CLAUDE.md",
      ".claude/plans/a.md",
      ".claude/worktrees/b/a.ts",
      ".gemini/GEMINI.md",
    ];
    for (const path of [...plain, ...clients])
      expect([path, await write(join(cwd, path))]).toEqual([path, "passes"]);
  });
});

describe("a path that a client takes for another", () => {
  it.each([
    ["claude-code", "Read", { file_path: " .env" }, "refused"],
    ["claude-code", "Read", { file_path: "\t.env\n" }, "refused"],
    ["claude-code", "Write", { file_path: " .claude/settings.json", content: "{}" }, "refused"],
    ["claude-code", "Write", { file_path: "~/.bashrc ", content: "x" }, "asks"],
    ["claude-code", "SendUserMessage", { message: "x", attachments: [".env"] }, "refused"],
    ["claude-code", "ReadMcpResourceTool", { server: "x", uri: "https://shop.test" }, "asks"],
    ["gemini", "read_mcp_resource", { uri: "x" }, "asks"],
    ["gemini", "get_internal_docs", { path: "../../.env" }, "refused"],
  ] as const)("is judged as every file that it may name: %s %s %o", async (client, tool, input, expected) => {
    verifies("beyond.hooks.path-spellings");
    expect(await session(client, tempDir("hook-cwd")).asked(tool, input)).toBe(expected);
  });
});

describe("a field that the tool does not have", () => {
  it.each([
    ["claude-code", "Bash", { cmd: "cat ~/.ssh/id_rsa", command: "ls" }, "refused"],
    ["claude-code", "Bash", { cmd: "cat a.txt", command: "ls" }, "asks"],
    ["claude-code", "Bash", { command: "ls", script: "rm -rf src" }, "asks"],
    ["claude-code", "Bash", { command: "ls", cwd: "/tmp" }, "asks"],
    ["gemini", "run_shell_command", { command: "cat svc/keys.json", dir_path: "~/.config" }, "refused"],
    ["gemini", "run_shell_command", { command: "ls", dir_path: "a", working_directory: "b" }, "asks"],
    [
      "gemini",
      "run_shell_command",
      { command: "cat id_rsa", dir_path: "~/.ssh", working_directory: "." },
      "refused",
    ],
    ["codex", "Bash", { command: "ls", workdir: "/" }, "asks"],
    ["claude-code", "Write", { file_path: "a.txt", path: ".env", content: "x" }, "refused"],
    ["claude-code", "Write", { file_path: "a.txt", target: "b.txt", content: "x" }, "asks"],
    ["claude-code", "Read", { file_path: "a.txt", path: "b.txt" }, "asks"],
    ["claude-code", "Grep", { pattern: "x", pre: "./x" }, "asks"],
    ["claude-code", "WebFetch", { url: "https://example.com", headers: "x" }, "asks"],
  ] as const)("is not passed over: %s %s %j", async (client, tool, input, how) => {
    verifies("beyond.hooks.known-fields");
    const { asked } = session(client);
    const here = JSON.parse(JSON.stringify(input).replaceAll("~", home));
    expect(await asked(tool, here)).toBe(how);
  });

  it("leaves the fields of each client's own tools alone", async () => {
    verifies("beyond.hooks.known-fields");
    for (const [client, tool, input] of [
      ["claude-code", "Bash", { command: "ls", timeout: 1, description: "x", run_in_background: false }],
      ["claude-code", "Grep", { pattern: "x", "-n": true, output_mode: "content", head_limit: 5 }],
      ["cursor", "Shell", { command: "ls", cwd: "", timeout: 1 }],
      ["codex", "Bash", { command: "ls" }],
      ["gemini", "run_shell_command", { command: "ls", description: "x", dir_path: "src" }],
    ] as const)
      expect(await session(client).asked(tool, input)).toBe("passes");
  });
});

describe("PowerShell", () => {
  it.each([
    ["PowerShell", "cat .\\.env", "refused"],
    ["PowerShell", "Get-Content $env:USERPROFILE\\.ssh\\id_rsa", "refused"],
    ["PowerShell", "gc `.e`nv", "refused"],
    ["PowerShell", "SVC approvals approve apr_1", "refused"],
    ["PowerShell", "& 'svc' halt lift --all", "refused"],
    ["PowerShell", "Get-ChildItem", "asks"],
    ["PowerShell", "ls", "asks"],
    ["Bash", "pwsh -c 'cat .\\.env'", "refused"],
    ["Bash", "cmd /c 'type .\\.env'", "refused"],
    ["Bash", "powershell.exe -Command Get-ChildItem", "asks"],
  ])("is not read as POSIX: %s %s", async (tool, command, how) => {
    verifies("beyond.hooks.powershell");
    expect(await session("claude-code").asked(tool, { command })).toBe(how);
  });
});

describe("a command in the background", () => {
  const start = async (client: HookClient, input: object, response: unknown) => {
    const made = session(client);
    const tool_name = { "claude-code": "Bash", codex: "Bash", cursor: "Shell", gemini: "run_shell_command" }[
      client
    ];
    const call = { tool_name, tool_input: input, tool_use_id: "bg" };
    await made.send(0, call);
    await made.send(1, { ...call, tool_response: response });
    const status = async () => (await made.steps())[0]!["status"];
    return { ...made, status };
  };

  it.each([
    ["claude-code", { command: "npm test", run_in_background: true }, { backgroundTaskId: "b1" }],
    ["claude-code", { command: "npm test" }, { backgroundTaskId: "b1", backgroundedByUser: true }],
    ["claude-code", { command: "npm test &" }, { stdout: "" }],
    ["cursor", { command: "npm test", is_background: true }, { exitCode: 0 }],
    ["gemini", { command: "npm test", is_background: true }, { llmContent: "moved to background" }],
  ] as const)(
    "stays intended, and is uncertain when the session ends: %s %j",
    async (client, input, response) => {
      verifies("beyond.hooks.background");
      const { send, status } = await start(client, input, response);
      expect(await status()).toBe("intended");
      await send(3, {});
      expect(await status()).toBe("intended");
      await send(2, {});
      expect(await status()).toBe("uncertain");
    },
  );

  it.each([
    ["TaskOutput", { task: { task_id: "b1", status: "completed", exitCode: 0 } }, "succeeded"],
    ["TaskOutput", { task: { task_id: "b1", status: "running" } }, "intended"],
    ["TaskOutput", { task: { task_id: "b1", status: "completed", exitCode: 1 } }, "failed"],
    ["TaskStop", { message: "stopped" }, "uncertain"],
  ] as const)("ends as the client reports it: %s %j", async (tool_name, tool_response, how) => {
    verifies("beyond.hooks.background");
    const { send, status } = await start(
      "claude-code",
      { command: "npm test", run_in_background: true },
      { backgroundTaskId: "b1" },
    );
    const call = { tool_name, tool_input: { task_id: "b1" }, tool_use_id: "read" };
    await send(0, call);
    await send(1, { ...call, tool_response });
    expect(await status()).toBe(how);
  });

  it("that the client waits for is done when its event comes", async () => {
    verifies("beyond.hooks.background");
    const { status } = await start("claude-code", { command: "npm test & wait" }, { stdout: "" });
    expect(await status()).toBe("succeeded");
  });
});
