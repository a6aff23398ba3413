/** `svc connect`: an MCP client pointed at the gateway, and back. */
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { describe, expect, it, vi } from "vitest";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { FAKE_MANIFESTS, fakeUpstream } from "./support/gateway.ts";

vi.setConfig({ testTimeout: 120_000 });

describe("svc connect", () => {
  const home = () => {
    const folder = tempDir("connect");
    return { folder, options: { cwd: folder, env: { HOME: folder } } };
  };
  const places: [string, string][] = [
    ["claude-desktop", ".config/Claude/claude_desktop_config.json"],
    ["claude-code", ".mcp.json"],
    ["cursor", ".cursor/mcp.json"],
    ["vscode", ".vscode/mcp.json"],
    ["codex", ".codex/config.toml"],
  ];

  it.each(places)("%s: writes, backs up, undoes", async (client, path) => {
    const { folder, options } = home();
    const file = join(folder, path);
    const made = await svc(["connect", client], options);
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(made.out).toContain(`this file is new; svc connect ${client} --undo removes it`);
    const text = readFileSync(file, "utf8");
    expect(text).toContain(join(folder, "svc.config.yaml"));
    if (path.endsWith("json")) {
      const config = JSON.parse(text);
      const { command, args } = (config.mcpServers ?? config.servers).svc;
      expect([command, args.slice(1, 3)]).toEqual([process.execPath, ["gateway", "--config"]]);
    } else expect(text).toMatch(/^\[mcp_servers\.svc\]\ncommand = "/);
    const undone = await svc(["connect", client, "--undo"], options);
    expect([undone.code, existsSync(file), existsSync(`${file}.svc-backup`)]).toEqual([0, false, false]);
  });

  it("names the config that the options name, wherever they stand, or the environment", async () => {
    const { folder, options } = home();
    const print = ["connect", "cursor", "--print"];
    const env = { ...options.env, SVC_CONFIG: "other.yaml" };
    for (const [argv, more, named] of [
      [[...print, "--config", "gate.yaml"], options, "gate.yaml"],
      [["--config", "gate.yaml", ...print], { ...options, env }, "gate.yaml"],
      [print, { ...options, env }, "other.yaml"],
    ] as const) {
      const { mcpServers } = JSON.parse((await svc([...argv], more)).out);
      expect(mcpServers.svc.args[3]).toBe(join(folder, named));
    }
  });

  it("leaves the rest of a file alone, and restores it to the byte", async () => {
    const { folder, options } = home();
    const file = join(folder, ".mcp.json");
    const before = '{\n    "mcpServers": {"other": {"command": "x"}},\n    "more": [1,  2]\n}';
    writeFileSync(file, before);
    const made = await svc(["connect", "claude-code", "--name", "gate", "--file", ".mcp.json"], options);
    expect(made.out).toContain(
      `the previous file is ${file}.svc-backup; svc connect claude-code --file ${file} --undo restores it`,
    );
    await svc(["connect", "claude-code", "--name", "gate", "--url", "http://127.0.0.1:8787/mcp"], options);
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
      mcpServers: {
        other: { command: "x" },
        gate: {
          type: "http",
          url: "http://127.0.0.1:8787/mcp",
          headers: { Authorization: `Bearer \${SVC_KEY}` },
        },
      },
      more: [1, 2],
    });
    expect((await svc(["connect", "claude-code", "--undo"], options)).code).toBe(0);
    expect(readFileSync(file, "utf8")).toBe(before);
  });

  it("replaces only its own table in a TOML file", async () => {
    const { folder, options } = home();
    const file = join(folder, ".codex", "config.toml");
    mkdirSync(join(folder, ".codex"));
    writeFileSync(
      file,
      'model = "o"\n\n[mcp_servers.svc]\ncommand = "old"\n\n[mcp_servers.svc.env]\nA = "1"\n\n[mcp_servers.other]\ncommand = "x"\n',
    );
    expect((await svc(["connect", "codex", "--url", "http://127.0.0.1:1/mcp"], options)).code).toBe(0);
    const text = readFileSync(file, "utf8");
    expect(text).toBe(
      'model = "o"\n\n[mcp_servers.other]\ncommand = "x"\n\n[mcp_servers.svc]\nurl = "http://127.0.0.1:1/mcp"\nbearer_token_env_var = "SVC_KEY"\n',
    );
  });

  it("does not undo over somebody else's change, or write what it cannot read", async () => {
    const { folder, options } = home();
    const file = join(folder, ".vscode", "mcp.json");
    await svc(["connect", "vscode"], options);
    writeFileSync(file, "{}");
    const undone = await svc(["connect", "vscode", "--undo"], options);
    expect([undone.code, undone.err]).toEqual([1, expect.stringContaining("has changed since")]);
    writeFileSync(file, "// comments\n{}");
    const refused = await svc(["connect", "vscode"], options);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("--print")]);
    expect(readFileSync(file, "utf8")).toBe("// comments\n{}");
    expect((await svc(["connect", "cursor", "--undo"], options)).err).toContain("nothing to undo");
  });

  it("prints instead, and refuses what it does not know", async () => {
    const { folder, options } = home();
    const printed = await svc(["connect", "cursor", "--print"], options);
    expect(JSON.parse(printed.out)).toMatchObject({ mcpServers: { svc: { command: process.execPath } } });
    expect(existsSync(join(folder, ".cursor"))).toBe(false);
    expect((await svc(["connect", "notepad"], options)).err).toContain("known are claude-desktop");
    expect((await svc(["connect", "claude-desktop", "--url", "http://x/mcp"], options)).err).toContain(
      "omit --url",
    );
    expect((await svc(["connect", "cursor", "--url", "ftp://x"], options)).err).toContain("--url");
  });

  it("writes a command that starts a working gateway, for any client", async () => {
    const { folder, options } = home();
    writeFileSync(join(folder, "manifests.yaml"), FAKE_MANIFESTS);
    const config = { manifests: "manifests.yaml", data: "data", upstreams: [fakeUpstream()] };
    writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify(config));
    const commands = new Set<string>();
    for (const [client, path] of places) {
      const made = await svc(["connect", client], options);
      expect([client, made.code, made.out.includes("is not there yet")]).toEqual([client, 0, false]);
      expect(made.out.includes("own tools (")).toBe(client !== "claude-desktop");
      commands.add(JSON.stringify(commandIn(readFileSync(join(folder, path), "utf8"))));
    }
    expect(commands.size).toBe(1);
    const [only] = [...commands].map((text) => JSON.parse(text) as { command: string; args: string[] });
    const client = new Client({ name: "t", version: "1" });
    await client.connect(new StdioClientTransport({ ...only!, cwd: tmpdir(), stderr: "ignore" }));
    try {
      verifies("beyond.names.connect");
      const { tools } = await client.listTools();
      for (const { name } of tools) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      expect(tools[0]!.inputSchema.properties).toHaveProperty("svc_reason");
      const done = await client.callTool({ name: "echo", arguments: { a: 1 } });
      expect(done._meta).toMatchObject({ "svc/decision": "allow", "svc/step": 0 });
    } finally {
      await client.close();
    }
  });

  it("keeps a file's mode and the link that leads to it, on the way there and back", async () => {
    const { folder, options } = home();
    const real = join(folder, "dotfiles.json");
    const link = join(folder, ".mcp.json");
    writeFileSync(real, "{}");
    chmodSync(real, 0o640);
    symlinkSync(real, link);
    for (const more of [[], ["--undo"]]) {
      expect((await svc(["connect", "claude-code", ...more], options)).code).toBe(0);
      expect([lstatSync(link).isSymbolicLink(), statSync(real).mode & 0o777]).toEqual([true, 0o640]);
    }
    expect(readFileSync(real, "utf8")).toBe("{}");
  });

  it("does not touch a file that it could not restore to the byte", async () => {
    const { folder, options } = home();
    const bytes = Buffer.from('{"name": "\xe9"}', "latin1");
    writeFileSync(join(folder, ".mcp.json"), bytes);
    const refused = await svc(["connect", "claude-code"], options);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("is not UTF-8 text")]);
    expect(readFileSync(join(folder, ".mcp.json")).equals(bytes)).toBe(true);
  });

  it("reports a missing config, and a gateway that has to be named instead", async () => {
    const { folder, options } = home();
    expect((await svc(["connect", "cursor"], options)).out).toContain("does not exist yet; svc init --from");
    const listen = { host: "127.0.0.1", port: 8799 };
    writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify({ listen, upstreams: [fakeUpstream()] }));
    const refused = await svc(["connect", "vscode"], options);
    expect([refused.code, refused.err.trim()]).toEqual([
      1,
      "error: this gateway listens on HTTP: start it and connect with --url http://127.0.0.1:8799/mcp",
    ]);
    expect(existsSync(join(folder, ".vscode"))).toBe(false);
  });
});

/** The entry of the gateway in a client's file; the TOML that is written is JSON line by line. */
function commandIn(text: string): { command: string; args: string[] } {
  if (text.startsWith("{")) {
    const config = JSON.parse(text);
    const { command, args } = (config.mcpServers ?? config.servers).svc;
    return { command, args };
  }
  const value = (key: string) => JSON.parse(new RegExp(`^${key} = (.*)$`, "m").exec(text)![1]!);
  return { command: value("command"), args: value("args") };
}
