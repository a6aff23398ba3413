/** The whole way as a user goes it: connect, serve, the hook as the client starts it, rollback, undo. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { HOOK_CLIENTS } from "../../src/hook/clients/clients.ts";
import { type CliResult, startSvcServer, svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const PACK = fileURLToPath(new URL("../../packs/coding-agents/", import.meta.url));
const FILES = {
  "claude-code": ".claude/settings.json",
  cursor: ".cursor/hooks.json",
  codex: ".codex/hooks.json",
  gemini: ".gemini/settings.json",
} as const;

/** As clients start a command hook: through a shell. */
function started(command: string, input: object, env: Record<string, string>): Promise<CliResult> {
  return new Promise((resolve) => {
    const child = spawn("sh", ["-c", command], { env: { PATH: process.env["PATH"]!, ...env } });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (err += text));
    child.on("close", (code) => resolve({ code, out, err }));
    child.stdin.end(JSON.stringify(input));
  });
}

function pointAt(settings: string, server: string): void {
  writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), server }));
}

describe("svc hook", () => {
  it("is one file that loads little of Node before its call is read", () => {
    verifies("beyond.hooks.quick");
    const built = readFileSync(new URL("../../dist/hook/bin.cjs", import.meta.url), "utf8");
    const loaded = [...built.matchAll(/\brequire\("(.*?)"\)/g)].map(([, name]) => name);
    expect([...new Set(loaded)].sort()).toEqual(["node:fs", "node:http", "node:os", "node:path"]);
  });
});

describe("a hook that cannot answer", () => {
  it.each([
    ["hook cursor"],
    ["--data d hook cursor"],
    ["hook --settings nowhere.json cursor"],
    ["hook cursor --settings"],
    ["--unknown hook cursor"],
    ["hook --unknown cursor"],
    ["hook unheard-of"],
    ["hook"],
  ])("refuses the call, however its options stand: svc %s", async (line) => {
    verifies("beyond.hooks.fails-closed");
    // Clients take any other code for leave to go ahead.
    expect((await svc(line.split(" "), { cwd: tempDir("hooks") })).code).toBe(2);
  });
});

describe("svc connect --hooks", () => {
  it("governs a session of Claude Code from the first call to the rollback", async () => {
    verifies("beyond.hooks.connect", "beyond.hooks.restores", "beyond.hooks.fails-closed");
    const home = tempDir("hooks");
    const cwd = join(home, "shop");
    mkdirSync(cwd);
    const env = { HOME: home };
    const made = await svc(["connect", "claude-code", "--hooks"], { cwd, env });
    expect([made.code, made.err]).toEqual([0, ""]);
    const folder = join(home, ".config/svc/hooks");
    expect(statSync(join(folder, "claude-code.key")).mode & 0o077).toBe(0);
    const { hooks } = JSON.parse(readFileSync(join(home, ".claude/settings.json"), "utf8"));
    const { command, onFailure } = hooks.PreToolUse[0].hooks[0];
    expect(onFailure).toBe("block");

    const config = join(folder, "svc.config.yaml");
    const server = await startSvcServer(["--config", config], { cwd, env });
    pointAt(join(folder, "claude-code.json"), server.url);
    const path = join(cwd, "a.txt");
    writeFileSync(path, "as it was\r\n");
    const call = {
      session_id: "first",
      cwd,
      hook_event_name: "PreToolUse",
      tool_name: "Write",
      tool_input: { file_path: path, content: "changed" },
      tool_use_id: "toolu_1",
    };
    expect(await started(command, call, env)).toEqual({ code: 0, out: "", err: "" });
    writeFileSync(path, "changed");
    expect((await started(command, { ...call, hook_event_name: "PostToolUse" }, env)).code).toBe(0);
    await server.stop();
    const away = await started(command, { ...call, tool_use_id: "toolu_2" }, env);
    expect(away).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("the service cannot be reached"),
    });
    const undone = await svc(["rollback", "claude-code-first", "--config", config], { cwd, env });
    expect(undone.out).toBe("run claude-code-first: rollback complete\n  compensated: 0 (Edit a.txt)\n");
    expect(readFileSync(path, "utf8")).toBe("as it was\r\n");
    const back = await svc(["connect", "claude-code", "--hooks", "--undo"], { cwd, env });
    expect([back.code, existsSync(join(home, ".claude/settings.json"))]).toEqual([0, false]);
  });

  it("keeps existing entries, in the client's settings and in the service's directory", async () => {
    verifies("beyond.hooks.connect");
    const cwd = tempDir("hooks");
    const options = { cwd, env: { HOME: cwd } };
    mkdirSync(join(cwd, ".gemini"));
    const mine = { theme: "x", hooks: { BeforeTool: [{ hooks: [{ type: "command", command: "mine" }] }] } };
    writeFileSync(join(cwd, ".gemini/settings.json"), JSON.stringify(mine));
    for (const client of HOOK_CLIENTS) {
      await svc(["connect", client, "--hooks", "--dir", "svc"], options);
      // What a person changed there stays: another port, another path that nothing may touch.
      const own = { server: "http://127.0.0.1:9797", protect: ["secret.txt"], hold_s: 0 };
      const settings = join(cwd, "svc", `${client}.json`);
      writeFileSync(settings, JSON.stringify({ ...JSON.parse(readFileSync(settings, "utf8")), ...own }));
      const again = await svc(["connect", client, "--hooks", "--dir", "svc", "--observe"], options);
      expect([again.code, again.out]).toEqual([0, expect.stringContaining(`kept ${cwd}/svc/policy.yaml`)]);
      expect(again.out).toContain("to see what would have been blocked");
      const text = readFileSync(join(cwd, FILES[client]), "utf8");
      expect(text.match(new RegExp(`hook ${client} --settings`, "g"))).toHaveLength(
        Object.keys(JSON.parse(text).hooks).length,
      );
      expect(JSON.parse(readFileSync(settings, "utf8"))).toEqual({
        ...own,
        key_file: `${client}.key`,
        mode: "observe",
        workspaces: [realpathSync(cwd)],
        hooks_file: join(cwd, FILES[client]),
      });
    }
    const gemini = JSON.parse(readFileSync(join(cwd, ".gemini/settings.json"), "utf8"));
    expect([gemini.theme, gemini.hooks.BeforeTool[0]]).toEqual(["x", mine.hooks.BeforeTool[0]]);
    const keys = JSON.parse(readFileSync(join(cwd, "svc/keys.json"), "utf8")) as { name: string }[];
    expect(keys.map(({ name }) => name)).toEqual([...HOOK_CLIENTS]);
    const here = await svc(["connect", "codex", "--hooks", "--dir", "."], options);
    expect([here.code, here.err]).toEqual([
      1,
      expect.stringContaining("--dir: must not contain the working directory"),
    ]);
    const other = await svc(["connect", "vscode", "--hooks"], options);
    expect([other.code, other.err]).toEqual([
      1,
      expect.stringContaining("supported are claude-code, cursor, codex, gemini"),
    ]);
  });

  it("points a second client at the port that the kept configuration listens on", async () => {
    verifies("beyond.hooks.second-client");
    const cwd = tempDir("hooks");
    const options = { cwd, env: { HOME: cwd } };
    await svc(["connect", "claude-code", "--hooks", "--dir", "svc"], options);
    const config = join(cwd, "svc/svc.config.yaml");
    writeFileSync(config, readFileSync(config, "utf8").replace("port: 8787", "port: 9191"));
    const second = await svc(["connect", "codex", "--hooks", "--dir", "svc"], options);
    expect([second.code, second.out]).toEqual([0, expect.stringContaining("service http://127.0.0.1:9191")]);
    const { server } = JSON.parse(readFileSync(join(cwd, "svc/codex.json"), "utf8"));
    expect(server).toBe("http://127.0.0.1:9191");
  });

  it("ships a pack that is valid and passes its own tests", async () => {
    verifies("beyond.hooks.pack");
    const valid = await svc(["validate", join(PACK, "manifests.yaml")]);
    expect([valid.code, valid.out]).toEqual([0, expect.stringMatching(/^ok: \d+ tool manifests valid/)]);
    const tested = await svc([
      "policy",
      "test",
      join(PACK, "policy.yaml"),
      "-m",
      join(PACK, "manifests.yaml"),
    ]);
    expect([tested.code, tested.out]).toEqual([0, expect.stringMatching(/\d+ passed/)]);
  });
});
