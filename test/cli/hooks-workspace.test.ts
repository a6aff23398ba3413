/** The installed hook in a workspace that tries to choose what runs, and where the calls and the key are sent. */
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { HOOK_CLIENTS, type HookClient } from "../../src/hook/clients/clients.ts";
import { hooksFile } from "../../src/hook/clients/install.ts";
import { type CliResult, startSvcServer, svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");

/** As clients start a command hook: through a shell, with their own variables. */
function started(command: string, cwd: string, input: object, env: Record<string, string>) {
  return new Promise<CliResult>((resolve) => {
    const child = spawn("sh", ["-c", command], { cwd, env: { PATH: process.env["PATH"]!, ...env } });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (err += text));
    child.on("close", (code) => resolve({ code, out, err }));
    child.stdin.end(JSON.stringify(input));
  });
}

/** Every command that the client's settings hold, by event. */
function installed(client: HookClient, home: string): Record<string, string> {
  const { hooks } = JSON.parse(readFileSync(join(home, hooksFile(client)), "utf8"));
  return Object.fromEntries(
    Object.entries(hooks as Record<string, unknown[]>).map(([event, [entry]]) => {
      const { command, hooks: inner } = entry as { command?: string; hooks?: { command: string }[] };
      return [event, command ?? inner![0]!.command];
    }),
  ) as Record<string, string>;
}

/** A home with the hook of each client, its service running, and a workspace. */
async function connected(clients: readonly HookClient[]) {
  const home = tempDir("hooks");
  const cwd = join(home, "shop");
  mkdirSync(cwd);
  const env = { HOME: home };
  for (const client of clients) await svc(["connect", client, "--hooks", "--hold", "0"], { cwd, env });
  const folder = join(home, ".config/svc/hooks");
  const server = await startSvcServer(["--config", join(folder, "svc.config.yaml")], { cwd, env });
  for (const client of clients) {
    const path = join(folder, `${client}.json`);
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), server: server.url }));
  }
  return { home, cwd, env, folder, server };
}

/** A repository whose configuration names a program wherever git reads one. */
function hostileRepository(cwd: string, marker: string): void {
  const git = (...args: string[]) => execFileSync(GIT, args, { cwd });
  git("init", "-q");
  writeFileSync(join(cwd, "a.txt"), "a");
  writeFileSync(join(cwd, ".gitattributes"), "* filter=x diff=x merge=x\n");
  git("add", "a.txt");
  const script = join(cwd, "evil.sh");
  writeFileSync(script, `#!/bin/sh\ndate >> '${marker}'\ncat\n`);
  chmodSync(script, 0o755);
  const bin = join(cwd, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "git"), readFileSync(script));
  chmodSync(join(bin, "git"), 0o755);
  const hooks = join(cwd, "hooks");
  mkdirSync(hooks);
  for (const name of ["post-index-change", "fsmonitor-watchman", "pre-commit"]) {
    writeFileSync(join(hooks, name), readFileSync(script));
    chmodSync(join(hooks, name), 0o755);
  }
  const monitor = `[core]\n\tfsmonitor = ${script}\n\thooksPath = ${hooks}\n`;
  writeFileSync(join(cwd, "included"), monitor);
  const config = [
    monitor,
    `\tpager = ${script}\n\teditor = ${script}\n\tsshCommand = ${script}\n\tgitProxy = ${script}\n\taskPass = ${script}`,
    `[include]\n\tpath = ${join(cwd, "included")}`,
    `[filter "x"]\n\tclean = ${script}\n\tsmudge = ${script}\n\tprocess = ${script}\n\trequired = true`,
    `[diff]\n\texternal = ${script}`,
    `[diff "x"]\n\ttextconv = ${script}\n\tcommand = ${script}`,
    `[alias]\n\tls-files = !${script}`,
    `[credential]\n\thelper = !${script}`,
    `[gpg]\n\tprogram = ${script}`,
    `[extensions]\n\tworktreeConfig = true`,
  ];
  writeFileSync(join(cwd, ".git/config.worktree"), monitor);
  writeFileSync(join(cwd, ".git/config"), `${readFileSync(join(cwd, ".git/config"))}${config.join("\n")}\n`);
}

describe("a workspace that names programs", () => {
  it("has none of them started by a hook's event or a command of ours", async () => {
    verifies("beyond.hooks.no-workspace-programs");
    const { home, cwd, env, server } = await connected(HOOK_CLIENTS);
    const marker = join(home, "marker");
    hostileRepository(cwd, marker);
    // The workspace does what it promises: git on its own starts the program.
    spawnSync(GIT, ["ls-files", "--others", "--cached"], { cwd });
    expect(existsSync(marker)).toBe(true);
    writeFileSync(marker, "");
    const hostile = {
      ...env,
      PATH: `${join(cwd, "bin")}:bin:${process.env["PATH"]}`,
      GIT_EXTERNAL_DIFF: join(cwd, "evil.sh"),
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "core.fsmonitor",
      GIT_CONFIG_VALUE_0: join(cwd, "evil.sh"),
      GIT_EXEC_PATH: join(cwd, "bin"),
    };
    for (const client of HOOK_CLIENTS) {
      const session = client === "cursor" ? { conversation_id: "s" } : { session_id: "s" };
      const tool_input = { command: "mkdir build" };
      for (const [hook_event_name, command] of Object.entries(installed(client, home)))
        await started(
          command,
          cwd,
          { ...session, cwd, hook_event_name, tool_name: "Bash", tool_input, tool_use_id: "t" },
          hostile,
        );
    }
    for (const args of [["connect", "codex", "--hooks"], ["doctor"], ["runs"], ["policy", "check"]])
      await svc(args, { cwd, env: hostile });
    expect(readFileSync(marker, "utf8")).toBe("");
    await server.stop();
  });

  it("still has a command recorded and undone", async () => {
    verifies("beyond.hooks.no-workspace-programs", "beyond.record.together");
    const { cwd, env, home, server } = await connected(["claude-code"]);
    hostileRepository(cwd, join(home, "marker"));
    const { PreToolUse, PostToolUse } = installed("claude-code", home);
    const call = {
      session_id: "s",
      cwd,
      tool_name: "Bash",
      tool_input: { command: "touch fresh.txt" },
      tool_use_id: "t",
    };
    expect((await started(PreToolUse!, cwd, { ...call, hook_event_name: "PreToolUse" }, env)).out).toBe("");
    writeFileSync(join(cwd, "fresh.txt"), "");
    const { out } = await started(PostToolUse!, cwd, { ...call, hook_event_name: "PostToolUse" }, env);
    expect(out).toBe("");
    const config = join(home, ".config/svc/hooks/svc.config.yaml");
    const { code } = await svc(["rollback", "claude-code-s", "--config", config], { cwd, env });
    expect({ code, isThere: existsSync(join(cwd, "fresh.txt")) }).toEqual({ code: 0, isThere: false });
    await server.stop();
  });
});

describe("variables that a project sets", () => {
  it("send no call and no key to another server", async () => {
    verifies("beyond.hooks.settings-alone");
    const { cwd, env, home, server } = await connected(["claude-code"]);
    const heard: string[] = [];
    const fake = createServer((request, response) => {
      heard.push(`${request.url} ${request.headers.authorization}`);
      response.end('{"decision":"allow","step":0}');
    });
    await new Promise<void>((done) => fake.listen(0, "127.0.0.1", done));
    const url = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
    const loaded = join(home, "loaded");
    writeFileSync(
      join(cwd, "preload.cjs"),
      `require("node:fs").writeFileSync(${JSON.stringify(loaded)}, "")`,
    );
    writeFileSync(join(cwd, "svc.config.yaml"), `server: ${url}\n`);
    const hostile = {
      ...env,
      SVC_SERVER: url,
      SVC_TOKEN: "another",
      SVC_CONFIG: join(cwd, "svc.config.yaml"),
      HTTP_PROXY: url,
      http_proxy: url,
      ALL_PROXY: url,
      NODE_USE_ENV_PROXY: "1",
      NODE_OPTIONS: `--require ${join(cwd, "preload.cjs")}`,
      XDG_CONFIG_HOME: cwd,
    };
    const { PreToolUse } = installed("claude-code", home);
    const call = {
      session_id: "s",
      cwd,
      hook_event_name: "PreToolUse",
      tool_name: "Bash",
      tool_input: { command: "rm -rf src" },
      tool_use_id: "t",
    };
    const said = await started(PreToolUse!, cwd, call, hostile);
    expect(said).toMatchObject({ code: 2, out: "", err: expect.stringContaining("approval required") });
    expect(heard).toEqual([]);
    expect(existsSync(loaded)).toBe(false);
    fake.close();
    await server.stop();
  });
});
