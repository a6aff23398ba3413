/** `svc init` and `svc connect`: from a tool server to a governed client, and back. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, vi } from "vitest";
import { draftManifests } from "../../src/gateway/init/guess.ts";
import { suggestName } from "../../src/gateway/init/read-tools.ts";
import { manifestText, scalar } from "../../src/gateway/init/render.ts";
import { readName, undoes } from "../../src/gateway/init/verbs.ts";
import type { JsonObject } from "../../src/kernel/json.ts";
import { readManifests } from "../../src/model/manifest/load.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { FAKE } from "./support/gateway.ts";
import { httpUpstream } from "./support/http-upstream.ts";

vi.setConfig({ testTimeout: 120_000 });

const MODULES = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol", import.meta.url));

const drafts = (tools: JsonObject[]) =>
  draftManifests(
    tools.map((definition) => ({
      tool: String(definition["name"]),
      name: String(definition["name"]),
      definition,
    })),
    "x",
  );
const tool = (name: string, more: JsonObject = {}): JsonObject => ({
  name,
  inputSchema: { type: "object" },
  ...more,
});
const needs = (...names: string[]): JsonObject => ({
  inputSchema: {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    required: names,
  },
});

describe("names", () => {
  it.each([
    ["create_contact", "create", "contact"],
    ["contacts.create", "create", "contact"],
    ["createContact", "create", "contact"],
    ["list-open-issues", "list", "open issue"],
    ["git_commit", null, "git commit"],
    ["search", "search", ""],
  ])("%s", (name, verb, object) => {
    expect(readName(name)).toMatchObject({ verb, object });
  });

  it("find what undoes what, and nothing else", () => {
    const is = (a: string, b: string) => undoes(readName(a), readName(b));
    expect(is("create_contact", "delete_contact")).toBe(true);
    expect(is("add_label", "remove_label")).toBe(true);
    expect(is("subscribe_topic", "unsubscribe_topic")).toBe(true);
    expect(is("create_contact", "delete_account")).toBe(false);
    expect(is("delete_contact", "create_contact")).toBe(false);
    expect(is("get_contact", "delete_contact")).toBe(false);
  });

  it.each([
    [["npx", "-y", "@modelcontextprotocol/server-filesystem@2026.1.1", "/tmp"], "filesystem"],
    [["uvx", "mcp-server-git", "--repository", "."], "git"],
    [["node", "/opt/tools/crm.mjs"], "crm"],
    [["node"], "tools"],
  ])("%j is called %s", (words, name) => {
    expect(suggestName({ words })).toBe(name);
  });

  it("of an address come from its host", () => {
    expect(suggestName({ url: "https://mcp.linear.app/sse", words: [] })).toBe("linear");
    expect(suggestName({ url: "http://localhost:3000/mcp", words: [] })).toBe("tools");
  });
});

describe("guesses", () => {
  it("believe what a tool says of itself, and are careful with what it does not say", () => {
    const guessed = drafts([
      tool("fetch_page", { annotations: { openWorldHint: true } }),
      tool("frobnicate", { annotations: { readOnlyHint: true } }),
      tool("get_and_reset", { annotations: { destructiveHint: true } }),
      tool("set_flag", { annotations: { idempotentHint: true } }),
      tool("send_mail"),
      tool("whatever"),
    ]);
    expect(guessed.map(({ effect, permission }) => [effect, permission])).toEqual([
      ["read", "x.read"],
      ["read", "x.read"],
      ["irreversible", "x.destroy"],
      ["idempotent", "x.write"],
      ["irreversible", "x.destroy"],
      ["irreversible", "x.destroy"],
    ]);
    expect(guessed[0]!.external).toBe(true);
  });

  it("propose pairs with the arguments they can find", () => {
    const guessed = drafts([
      tool("create_contact", { ...needs("email"), outputSchema: { type: "object", properties: { id: {} } } }),
      tool("delete_contact", needs("id")),
      tool("add_label", needs("issue", "label")),
      tool("remove_label", needs("issue", "label")),
      tool("create_room", needs("name")),
      tool("delete_room", needs("room_id")),
      tool("create_thing", needs("name")),
      tool("delete_thing", needs("confirmation")),
      tool("move_file", needs("source", "destination")),
    ]);
    const undo = (name: string) => guessed.find(({ tool }) => tool === name)?.compensation;
    expect(undo("create_contact")).toMatchObject({
      tool: "delete_contact",
      args: [{ name: "id", value: "$result.id" }],
    });
    expect(undo("add_label")).toMatchObject({
      tool: "remove_label",
      args: [{ value: "$args.issue" }, { value: "$args.label" }],
    });
    expect(undo("create_room")).toMatchObject({
      args: [{ value: "$result.room_id", why: expect.stringContaining("check") }],
    });
    expect(undo("create_thing")).toBeNull();
    expect(undo("move_file")).toMatchObject({
      kind: "inverse",
      args: [{ value: "$args.destination" }, { value: "$args.source" }],
    });
  });

  it("survive tools that were named to do harm", () => {
    const bad = ["a: b", "- x", "x\ny: z", "*", "x # guess"];
    const odd = ["#", "'\"", "{", "true", "null", "ünï", "~", "&a", "!t", "%"];
    const text = manifestText(
      drafts([...bad, ...odd].map((name) => tool(name, { description: "---\n- tool: evil" }))),
      "evil\n- tool: injected\n  effect: read",
    );
    const { all } = readManifests([{ file: "m.yaml", text }]);
    expect(odd).toEqual(expect.arrayContaining(all.map((manifest) => manifest.tool)));
    expect(all.length + (text.match(/^# left out: /gm)?.length ?? 0)).toBe(bad.length + odd.length);
    expect(all.every(({ lifecycle }) => lifecycle === "draft")).toBe(true);
    expect(scalar("yes")).toBe('"yes"');
    expect(scalar("files.read")).toBe("files.read");
  });
});

describe("svc init", () => {
  it("drafts a gateway for the filesystem server that works as it stands", async () => {
    const folder = tempDir("init");
    const work = join(folder, "work");
    mkdirSync(work);
    const from = `node ${join(MODULES, "server-filesystem", "dist", "index.js")} ${work}`;
    const made = await svc(["init", "--from", from, "--name", "files"], { cwd: folder });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(made.out).toContain("14 tools: 10 read, 1 with a proposed undo, 3 to look at");
    const manifests = readFileSync(join(folder, "manifests", "files.yaml"), "utf8");
    expect(manifests).toContain("guess: it says it is read-only");
    expect(manifests).toMatch(
      /- tool: move_file[\s\S]*kind: inverse\n {4}args:\n {6}source: "\$args\.destination"/,
    );
    expect((await svc(["validate", "manifests"], { cwd: folder })).out.trim()).toBe(
      "ok: 14 tool manifests valid",
    );
    expect((await svc(["policy", "test", "policy.yaml"], { cwd: folder })).code).toBe(0);

    const again = await svc(["init", "--from", from, "--name", "files"], { cwd: folder });
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("already there: ")]);
    expect((await svc(["init", "--from", from, "--name", "files", "--force"], { cwd: folder })).code).toBe(0);

    const { Client } = await import("@modelcontextprotocol/client");
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    const bin = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
    const client = new Client({ name: "t", version: "1" });
    const args = [bin, "gateway", "--config", join(folder, "svc.config.yaml")];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }));
    try {
      const written = await client.callTool({
        name: "write_file",
        arguments: { path: join(work, "a.txt"), content: "hi" },
      });
      expect(written._meta).toMatchObject({ "svc/decision": expect.stringMatching(/allow|would_block/) });
      expect(readFileSync(join(work, "a.txt"), "utf8")).toBe("hi");
    } finally {
      await client.close();
    }
  });

  it("reads an address too, and keeps secrets out of the file", async () => {
    const up = await httpUpstream();
    const folder = tempDir("init-url");
    const args = [
      "init",
      "--from",
      up.url,
      "--name",
      "web",
      "--namespace",
      "--header",
      "X-Api-Key: canary-secret",
    ];
    const made = await svc(args, { cwd: folder });
    expect([made.code, made.err]).toEqual([0, ""]);
    expect(up.seen[0]!.headers["x-api-key"]).toBe("canary-secret");
    const config = readFileSync(join(folder, "svc.config.yaml"), "utf8");
    expect(config).toContain(`X-Api-Key: \${UPSTREAM_X_API_KEY}`);
    expect(config).not.toContain("canary-secret");
    expect(readFileSync(join(folder, "manifests", "web.yaml"), "utf8")).toContain("- tool: web.where");
  });

  it("says what is wrong in one line", async () => {
    const folder = tempDir("init-bad");
    for (const [args, why] of [
      [["--from", "/no/such/program"], "cannot read the tools"],
      [["--from", `${process.execPath} -e process.exit(3)`], "cannot read the tools"],
      [["--from", "'unclosed"], "a quote is not closed"],
      [["--from", "node x", "--name", "svc"], "--name"],
      [["--from", "node x", "--env", "NOVALUE"], "--env"],
      [[], "--from"],
    ] as const) {
      const { code, err } = await svc(["init", ...args], { cwd: folder });
      expect([args, code]).toEqual([args, 1]);
      expect(err).toContain(why);
    }
    expect(existsSync(join(folder, "svc.config.yaml"))).toBe(false);
    expect(FAKE).toContain("fake-upstream");
  });
});

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

  it("leaves the rest of a file alone, and restores it to the byte", async () => {
    const { folder, options } = home();
    const file = join(folder, ".mcp.json");
    const before = '{\n    "mcpServers": {"other": {"command": "x"}},\n    "more": [1,  2]\n}';
    writeFileSync(file, before);
    await svc(["connect", "claude-code", "--name", "gate"], options);
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

  it("does not undo over somebody else's change, nor write what it cannot read", async () => {
    const { folder, options } = home();
    const file = join(folder, ".vscode", "mcp.json");
    await svc(["connect", "vscode"], options);
    writeFileSync(file, "{}");
    const undone = await svc(["connect", "vscode", "--undo"], options);
    expect([undone.code, undone.err]).toEqual([1, expect.stringContaining("was changed since")]);
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
      "leave out --url",
    );
    expect((await svc(["connect", "cursor", "--url", "ftp://x"], options)).err).toContain("--url");
  });
});
