/** Where the hook lives: installed once for the user, for registered workspaces, out of the reach of branches. */
import { execFileSync, spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { carrierWords } from "../../src/cli/commands/agents/carrier.ts";
import { connectHooks } from "../../src/cli/commands/agents/connect-hooks.ts";
import type { CommandContext } from "../../src/cli/context.ts";
import type { CommandIo } from "../../src/cli/io.ts";
import { CLIENT_FILES, HOOK_CLIENTS, type HookClient } from "../../src/hook/clients/clients.ts";
import { hooksFile } from "../../src/hook/clients/install.ts";
import { type CliResult, startSvcServer, svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");

/** As clients start a command hook: through a shell. */
function started(command: string, input: object, cwd: string): Promise<CliResult> {
  return new Promise((resolve) => {
    const child = spawn("sh", ["-c", command], { cwd, env: { PATH: process.env["PATH"]! } });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (err += text));
    child.on("close", (code) => resolve({ code, out, err }));
    child.stdin.end(JSON.stringify(input));
  });
}

/** A home with a git repository in it, and the commands of its person. */
function place() {
  const home = realpathSync(tempDir("hooks"));
  const shop = join(home, "shop");
  mkdirSync(shop);
  const git = (...args: string[]) =>
    execFileSync(GIT, ["-c", "user.name=ann", "-c", "user.email=ann@shop.test", ...args], {
      cwd: shop,
      encoding: "utf8",
      env: { PATH: process.env["PATH"], HOME: home, GIT_CONFIG_NOSYSTEM: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  git("init", "-q", "-b", "main");
  writeFileSync(join(shop, "a.txt"), "a\n");
  git("add", "-A");
  git("commit", "-q", "-m", "first");
  const connect = (args: string[], cwd = shop, env: Record<string, string> = {}) =>
    svc(["connect", ...args], { cwd, env: { HOME: home, ...env } });
  const settings = (client: string): { workspaces?: string[] | "all"; protect: string[] } =>
    JSON.parse(readFileSync(join(home, ".config/svc/hooks", `${client}.json`), "utf8"));
  return { home, shop, git, connect, settings };
}

/** The same with a service and the hook of Claude Code. */
async function governed() {
  const at = place();
  await at.connect(["claude-code", "--hooks", "--hold", "0"]);
  const folder = join(at.home, ".config/svc/hooks");
  const config = join(folder, "svc.config.yaml");
  const options = { cwd: at.home, env: { HOME: at.home } };
  const server = await startSvcServer(["--config", config], options);
  const pointed = { ...at.settings("claude-code"), server: server.url };
  writeFileSync(join(folder, "claude-code.json"), JSON.stringify(pointed));
  const { hooks } = JSON.parse(readFileSync(join(at.home, ".claude/settings.json"), "utf8"));
  let n = 0;
  /** A session calls `rm`, which waits for approval if the session is governed. */
  const remove = (session: string, cwd: string): Promise<CliResult> =>
    started(
      hooks.PreToolUse[0].hooks[0].command,
      {
        session_id: session,
        cwd,
        hook_event_name: "PreToolUse",
        tool_name: "Bash",
        tool_input: { command: "rm a.txt" },
        tool_use_id: `t${n++}`,
      },
      cwd,
    );
  const runs = async () => (await svc(["runs", "--json", "--config", config], options)).out;
  // The first event starts the process that judges. On a busy machine, that can take longer than a decision may.
  await until(async () => (await remove("first", at.home)).code === 0, "the hook answers");
  return { ...at, folder, server, remove, runs };
}

const REFUSED = { code: 2, out: "", err: expect.stringContaining("approval required") };
const PASSED = { code: 0, out: "", err: "" };

describe("svc connect --hooks", () => {
  it.each(HOOK_CLIENTS)(
    "installs the hook of %s for the user and registers the workspace",
    async (client) => {
      verifies("beyond.hooks.user-level");
      const { home, shop, connect, settings } = place();
      mkdirSync(join(shop, "src"));
      const made = await connect([client, "--hooks"], join(shop, "src"));
      expect([made.code, made.err]).toEqual([0, ""]);
      expect(existsSync(join(shop, hooksFile(client)))).toBe(false);
      expect(readFileSync(join(home, hooksFile(client)), "utf8")).toContain(` hook ${client} --settings `);
      expect(settings(client).workspaces).toEqual([shop]);
      const other = join(home, "other");
      mkdirSync(other);
      await connect([client, "--hooks"], other);
      expect(settings(client).workspaces).toEqual([shop, other]);
      await connect([client, "--hooks", "--user"], other);
      expect(settings(client).workspaces).toBe("all");
      // A workspace more changes nothing then.
      await connect([client, "--hooks"], other);
      expect(settings(client).workspaces).toBe("all");
    },
  );

  it.each([
    ["claude-code", "CLAUDE_CONFIG_DIR", "settings.json"],
    ["codex", "CODEX_HOME", "hooks.json"],
    ["gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"],
  ])("follows %s to the directory that %s names, and protects the file", async (client, variable, name) => {
    verifies("beyond.hooks.user-level");
    const { home, connect, settings } = place();
    const moved = join(home, "elsewhere");
    const made = await connect([client, "--hooks"], undefined, { [variable]: moved });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(readFileSync(join(moved, name), "utf8")).toContain(` hook ${client} --settings `);
    expect(settings(client).protect).toEqual([join(moved, name)]);
  });

  it("takes no program from a workspace, and names the installation outside", async () => {
    verifies("beyond.hooks.own-programs");
    const { home, shop, git } = place();
    const installed = (folder: string, name = "takeback") => {
      const bin = join(folder, "node_modules", name, "bin");
      mkdirSync(bin, { recursive: true });
      writeFileSync(join(bin, "svc.js"), "");
      return join(bin, "svc.js");
    };
    const connected = async (program: string, cwd: string, flags: object = {}) => {
      const [real] = process.argv.splice(1, 1, program);
      const io = { env: { HOME: home }, cwd, out: () => {}, err: () => {} };
      try {
        await connectHooks({ io } as unknown as CommandContext, "codex", {
          url: "http://127.0.0.1:1",
          ...flags,
        });
        return "connected";
      } catch (error) {
        return (error as Error).message;
      } finally {
        process.argv.splice(1, 1, real!);
      }
    };
    const other = join(home, "other");
    mkdirSync(other);
    const own = installed(shop);
    const refused = `the hook would start ${own}, which the agent of that workspace can change; install it outside with npm install --global takeback, then run svc connect codex --hooks`;
    symlinkSync(join(shop, "node_modules/takeback"), join(home, "linked"));
    for (const program of [own, join(home, "linked/bin/svc.js")]) {
      expect(await connected(program, shop)).toBe(refused);
      expect(await connected(program, join(shop, "node_modules"))).toBe(refused);
    }
    expect(await connected(own, shop, { print: true })).toBe(refused);
    // Every directory is a workspace.
    expect(await connected(own, other, { user: true })).toBe(refused);
    expect(existsSync(join(home, ".config/svc/hooks"))).toBe(false);
    expect(existsSync(join(home, ".codex"))).toBe(false);
    expect(await connected(own, other)).toBe("connected");
    // An installation for the user is in the home directory, which may be a repository.
    git("init", "-q", home);
    const versions = installed(join(home, ".versions/lib"));
    expect(await connected(versions, shop, { user: true })).toBe("connected");
    expect(await connected(versions, home)).toBe("connected");
    expect(await connected(installed(home), home)).toContain("install it outside");
  });

  it("takes no carrier through a link in the workspace, and says slow without one", async () => {
    verifies("beyond.hooks.own-programs", "beyond.hooks.carrier");
    const { home, shop, connect } = place();
    symlinkSync("/usr/bin/perl", join(shop, "perl"));
    const words = (cwd: string) => carrierWords({ env: { PATH: shop }, cwd } as unknown as CommandIo);
    expect(words(shop)).toEqual([]);
    expect(words(tempDir("elsewhere"))[0]).toBe(join(shop, "perl"));
    const made = await connect(["codex", "--hooks"], home, { PATH: "/nowhere" });
    expect(made.out).toContain("slow: without perl and nc");
  });

  it("writes the project's file with --project, warns if git tracks it, and moves the hook out again", async () => {
    verifies("beyond.hooks.project");
    const { home, shop, git, connect, settings } = place();
    const file = join(shop, ".claude/settings.json");
    const first = await connect(["claude-code", "--hooks", "--project"]);
    expect([first.code, first.err]).toEqual([0, ""]);
    git("add", "-A");
    git("commit", "-q", "-m", "hook");
    const tracked = await connect(["claude-code", "--hooks", "--project"]);
    expect([tracked.code, tracked.err]).toEqual([0, expect.stringContaining("git tracks")]);
    expect(existsSync(join(home, ".claude/settings.json"))).toBe(false);
    // The team adds to the file, so that no backup fits any more.
    const shared = { ...JSON.parse(readFileSync(file, "utf8")), model: "opus" };
    writeFileSync(file, JSON.stringify(shared));
    const moved = await connect(["claude-code", "--hooks"]);
    expect(moved.out).toContain(`took the hook out of ${file}\ngit tracks this file: commit the change`);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ model: "opus" });
    expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toContain(" hook claude-code ");
    expect(settings("claude-code").workspaces).toEqual([shop]);
  });

  it("removes the registration, and the hook with the last one", async () => {
    verifies("beyond.hooks.undo-refused");
    const { home, shop, connect, settings } = place();
    const mine = '{"model": "opus"}\n';
    mkdirSync(join(home, ".claude"));
    writeFileSync(join(home, ".claude/settings.json"), mine);
    const other = join(home, "other");
    mkdirSync(other);
    await connect(["claude-code", "--hooks"]);
    await connect(["claude-code", "--hooks"], other);
    const stranger = await connect(["claude-code", "--hooks", "--undo"], home);
    expect([stranger.code, stranger.err]).toEqual([1, expect.stringContaining("is not registered")]);
    expect((await connect(["claude-code", "--hooks", "--undo"], other)).code).toBe(0);
    expect(settings("claude-code").workspaces).toEqual([shop]);
    expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toContain(" hook claude-code ");
    expect((await connect(["claude-code", "--hooks", "--undo"])).code).toBe(0);
    expect(settings("claude-code").workspaces).toEqual([]);
    expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toBe(mine);
    await connect(["claude-code", "--hooks", "--user"]);
    const all = await connect(["claude-code", "--hooks", "--undo"]);
    expect([all.code, all.err]).toEqual([1, expect.stringContaining("--user --undo")]);
    expect((await connect(["claude-code", "--hooks", "--user", "--undo"])).code).toBe(0);
    expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toBe(mine);
  });

  it.each(["CLAUDECODE", "GEMINI_CLI", "CODEX_THREAD_ID", "CURSOR_AGENT"])(
    "refuses --undo in a coding agent's shell, which sets %s",
    async (variable) => {
      verifies("beyond.hooks.undo-refused");
      const { home, connect } = place();
      await connect(["claude-code", "--hooks"]);
      const before = readFileSync(join(home, ".claude/settings.json"), "utf8");
      const refused = await connect(["claude-code", "--hooks", "--undo"], undefined, { [variable]: "1" });
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("in your own terminal")]);
      expect(readFileSync(join(home, ".claude/settings.json"), "utf8")).toBe(before);
    },
  );
});

describe("a governed workspace", () => {
  it("stays hooked when git changes its files", async () => {
    verifies("beyond.hooks.stays-hooked");
    const { shop, git, server, remove } = await governed();
    mkdirSync(join(shop, ".claude"));
    writeFileSync(join(shop, ".claude/settings.json"), '{"model": "opus"}\n');
    git("add", "-A");
    git("commit", "-q", "-m", "settings of the team");
    git("branch", "topic");
    expect(await remove("s1", shop)).toMatchObject(REFUSED);
    const moves: string[][] = [
      ["checkout", "-q", "HEAD~1"],
      ["checkout", "-q", "-b", "old"],
      ["checkout", "-q", "main"],
      ["merge", "-q", "topic"],
      ["rebase", "-q", "old"],
      ["rm", "-q", "-r", "--cached", ".claude"],
      ["stash", "-u", "-q"],
      ["clean", "-q", "-fdx"],
      ["reset", "-q", "--hard", "HEAD"],
    ];
    for (const move of moves) {
      git(...move);
      expect([move, await remove("s1", shop)]).toMatchObject([move, REFUSED]);
      expect([move, await remove(`new after ${move.join(" ")}`, shop)]).toMatchObject([move, REFUSED]);
    }
    await server.stop();
  });

  it("counts from the resolved directory of a session's beginning, with every linked work tree", async () => {
    verifies("beyond.hooks.registered-places", "beyond.hooks.unregistered", "beyond.hooks.stays-governed");
    const { home, shop, git, folder, server, remove, runs } = await governed();
    const other = join(home, "shop-other");
    mkdirSync(other);
    symlinkSync(shop, join(home, "link"));
    symlinkSync(other, join(shop, "out"));
    mkdirSync(join(shop, "src/deep"), { recursive: true });
    const linked = join(home, "linked");
    git("worktree", "add", "-q", linked, "-b", "second");
    for (const inside of [
      shop,
      join(home, "link"),
      join(shop, "src/deep"),
      linked,
      join(linked, "..", "linked"),
    ])
      expect([inside, await remove(`in ${inside}`, inside)]).toMatchObject([inside, REFUSED]);
    const before = await runs();
    // Another directory, one above, one that only begins alike, and one that a link of the workspace leads to.
    for (const outside of [other, home, join(shop, "out")])
      expect([outside, await remove(`in ${outside}`, outside)]).toEqual([outside, PASSED]);
    expect(await runs()).toBe(before);
    // It began outside, and stays ungoverned inside.
    expect(await remove(`in ${other}`, shop)).toEqual(PASSED);
    expect(await remove(`in ${shop}`, other)).toMatchObject(REFUSED);
    // Even after the workspace was renamed, or its registration removed.
    renameSync(shop, join(home, "renamed"));
    const settings = join(folder, "claude-code.json");
    writeFileSync(
      settings,
      JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), workspaces: [] }),
    );
    expect(await remove(`in ${shop}`, other)).toMatchObject(REFUSED);
    expect(await remove("another", other)).toEqual(PASSED);
    await server.stop();
  });

  it("refuses where the state of a session or the list of workspaces cannot be read", async () => {
    verifies("beyond.hooks.stays-governed");
    const { home, folder, server, remove } = await governed();
    expect(await remove("s", home)).toEqual(PASSED);
    const sessions = join(folder, "sessions");
    for (const name of readdirSync(sessions)) writeFileSync(join(sessions, name), "{");
    expect(await remove("s", home)).toMatchObject(REFUSED);
    const settings = join(folder, "claude-code.json");
    writeFileSync(
      settings,
      JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), workspaces: "shop" }),
    );
    expect(await remove("t", home)).toMatchObject({
      code: 2,
      err: expect.stringContaining("workspaces: must be"),
    });
    await server.stop();
  });

  it("governs a project whose own file starts the hook, though nobody registered it", async () => {
    verifies("beyond.hooks.project");
    const { home, server, remove, connect, folder } = await governed();
    const team = join(home, "team");
    mkdirSync(team);
    await connect(["claude-code", "--hooks", "--project"], team);
    const settings = join(folder, "claude-code.json");
    writeFileSync(
      settings,
      JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), workspaces: [] }),
    );
    expect(await remove("t", team)).toMatchObject(REFUSED);
    await server.stop();
  });
});

describe("svc connect --hooks --managed", () => {
  const real = Object.fromEntries(HOOK_CLIENTS.map((client) => [client, CLIENT_FILES[client].managed]));
  afterEach(() => {
    vi.restoreAllMocks();
    for (const client of HOOK_CLIENTS) CLIENT_FILES[client].managed = real[client]!;
  });

  /** Runs the command within this process, with the machine's file in a temporary directory. */
  async function managed(client: HookClient, file: string | undefined, flags: object, uid = 0) {
    const said: string[] = [];
    CLIENT_FILES[client].managed = file === undefined ? {} : { [process.platform]: file };
    vi.spyOn(process, "getuid").mockReturnValue(uid);
    const out = (text: string) => void said.push(text);
    const io = { env: { PATH: process.env["PATH"] }, cwd: tempDir("hooks"), out, err: out };
    await connectHooks({ io } as unknown as CommandContext, client, { managed: true, ...flags });
    return said.join("\n");
  }

  it.each(HOOK_CLIENTS)(
    "writes the machine's settings of %s as root alone, and undoes that",
    async (client) => {
      verifies("beyond.hooks.managed");
      const file = join(tempDir("managed"), "etc/hooks.json");
      await expect(managed(client, file, {}, 1_000)).rejects.toThrow("only root can write");
      await expect(managed(client, undefined, {})).rejects.toThrow("no settings of the machine");
      expect(existsSync(file)).toBe(false);
      expect(await managed(client, file, {})).toContain("every account needs its own settings");
      const text = readFileSync(file, "utf8");
      expect(text).toContain(` hook ${client} --managed`);
      expect(text).not.toContain("HOME=");
      await managed(client, file, { undo: true });
      expect(existsSync(file)).toBe(false);
    },
  );

  it("denies an account without its own hook settings, with any HOME", async () => {
    verifies("beyond.hooks.managed");
    const { home, connect } = place();
    await connect(["claude-code", "--hooks", "--user"]);
    const refused = await svc(["hook", "nobody-has-this", "--managed"], { env: { HOME: home } });
    expect(refused.code).toBe(2);
    const event = {
      session_id: "s",
      cwd: home,
      hook_event_name: "PreToolUse",
      tool_name: "Read",
      tool_input: {},
    };
    const asked = await svc(["hook", "cursor", "--managed"], {
      env: { HOME: home, XDG_CONFIG_HOME: join(home, ".config") },
      input: JSON.stringify({ ...event, hook_event_name: "preToolUse" }),
    });
    expect([asked.code, asked.out]).toEqual([2, ""]);
    expect(asked.err).not.toContain(home);
  });
});
