/** The coding agents of a machine, as `svc agents` finds them. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { expect, it } from "vitest";
import type { AgentEntry } from "../../src/hook/inventory.ts";
import { svc } from "../support/cli.ts";
import { ROOT } from "../support/files.ts";
import { hookedPlace } from "../support/hooked.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const GIT = await program("git");

function machine() {
  const home = realpathSync(tempDir("agents"));
  const shop = join(home, "shop");
  const bin = join(home, "pkg/bin");
  for (const folder of [shop, bin]) mkdirSync(folder, { recursive: true });
  const env = { HOME: home, PATH: `${bin}:${process.env["PATH"]}` };
  const install = (name: string, version: string) => {
    writeFileSync(join(bin, name), '#!/bin/sh\necho started > "$HOME/started"\n');
    chmodSync(join(bin, name), 0o755);
    writeFileSync(join(home, "pkg/package.json"), JSON.stringify({ version }));
  };
  const run = (...args: string[]) => svc(args, { cwd: shop, env });
  const agents = async (): Promise<AgentEntry[]> => JSON.parse((await run("agents", "--json")).out).agents;
  const row = async (client: string, workspace: string | null) =>
    (await agents()).find((one) => one.client === client && one.workspace === workspace);
  return { home, shop, env, install, run, agents, row };
}

it("lists agents that are governed, partly, and not, with the reason", async () => {
  verifies("beyond.hooks.inventory");
  const { home, shop, install, run, agents, row } = machine();
  expect(await agents()).toEqual([]);
  install("claude", "2.1.197");
  expect(await row("claude-code", null)).toMatchObject({
    version: "2.1.197",
    governed: "no",
    missing: [expect.stringContaining("not connected")],
  });
  await run("connect", "claude-code", "--hooks");
  expect(await row("claude-code", shop)).toMatchObject({
    governed: "partly",
    missing: [expect.stringContaining("before 2.1.295")],
    last_seen_ms: null,
  });
  expect(await row("claude-code", null)).toMatchObject({
    governed: "no",
    missing: ["the workspace is not registered"],
  });
  install("claude", "2.1.327");
  expect(await row("claude-code", shop)).toMatchObject({ governed: "yes", missing: [] });
  await run("connect", "codex", "--hooks");
  expect(await row("codex", shop)).toMatchObject({
    governed: "partly",
    missing: [expect.stringContaining("trust")],
  });
  mkdirSync(join(shop, ".claude"));
  writeFileSync(join(shop, ".claude/settings.json"), '{"disableAllHooks": true}');
  expect(await row("claude-code", shop)).toMatchObject({
    governed: "no",
    missing: [expect.stringContaining("switches all hooks off")],
  });
  writeFileSync(join(home, ".claude/settings.json"), "{}");
  expect((await row("claude-code", shop))!.missing[0]).toContain("does not start the hook");
  // Nothing that it lists was started.
  expect((await run("agents")).out).not.toContain("started");
  const servers = {
    mcpServers: { notes: { command: "notes" }, svc: { command: "node", args: ["/x/bin/svc.js", "gateway"] } },
  };
  writeFileSync(join(shop, ".mcp.json"), JSON.stringify(servers));
  expect(
    (await agents())
      .filter(({ client }) => client.includes("MCP"))
      .map(({ client, governed }) => [client, governed]),
  ).toEqual([
    ["claude-code MCP server notes", "no"],
    ["claude-code MCP server svc", "yes"],
  ]);
});

it("lists a workspace that the hook saw and that nobody registered", async () => {
  verifies("beyond.hooks.inventory", "beyond.hooks.unregistered", "beyond.hooks.inventory-routes");
  const place = await hookedPlace("claude-code", "--hold", "0");
  const other = join(place.home, "other");
  mkdirSync(other);
  const look = { tool_name: "Bash", tool_input: { command: "ls" } };
  expect((await place.ask({ ...look, cwd: other, session_id: "elsewhere" })).code).toBe(0);
  expect((await place.ask(look)).code).toBe(0);
  const { out } = await svc(["agents", "--json"], { cwd: place.shop, env: { HOME: place.home } });
  const rows = (JSON.parse(out).agents as AgentEntry[]).filter(({ client }) => client === "claude-code");
  expect(rows).toMatchObject([
    {
      workspace: other,
      governed: "no",
      missing: ["the workspace is not registered"],
      last_seen_ms: expect.any(Number),
    },
    { workspace: place.shop, governed: "yes", last_seen_ms: expect.any(Number) },
    { workspace: null, governed: "no" },
  ]);
  // The resident process reports them when a session ends.
  await place.ask({ hook_event_name: "SessionEnd", tool_use_id: undefined });
  const created = await place.svc("keys", "add", "ann", "--role", "auditor");
  const token = created.out.trim();
  process.kill(place.server.pid, "SIGHUP");
  const reported = async () => {
    const answer = await fetch(`${place.server.url}/v1/agents`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return ((await answer.json()) as { agents?: AgentEntry[] }).agents ?? [];
  };
  await until(async () => (await reported()).length > 0, "the report");
  expect((await reported()).map(({ workspace }) => workspace)).toEqual([other, place.shop, null]);
  await place.server.stop();
});

it("says slow for a hook that starts Node, even if the machine has perl since", async () => {
  verifies("beyond.hooks.slow");
  const { shop, env, run } = machine();
  // Without perl and nc.
  const made = await svc(["connect", "codex", "--hooks"], { cwd: shop, env: { ...env, PATH: "/nowhere" } });
  expect(made.out).toContain("slow: without perl and nc every event starts Node");
  await run("connect", "claude-code", "--hooks");
  const slow =
    "slow: every event of codex starts Node; install perl or nc, and run svc connect codex --hooks\n";
  const poor = { cwd: shop, env: { ...env, PATH: "/nowhere" } };
  expect([(await run("agents")).err, (await svc(["agents"], poor)).err]).toEqual([slow, slow]);
  await run("connect", "codex", "--hooks");
  expect((await run("agents")).err).toBe("");
});

it("takes a server for the gateway only if it sends the agent's key there", async () => {
  verifies("beyond.hooks.inventory");
  const { shop, run, agents } = machine();
  await run("connect", "claude-code", "--url", "http://127.0.0.1:8787/mcp");
  const file = join(shop, ".mcp.json");
  const config = JSON.parse(readFileSync(file, "utf8"));
  config.mcpServers.other = { type: "http", url: "https://tools.example.net/mcp" };
  writeFileSync(file, JSON.stringify(config));
  const rows = (await agents()).map(({ client, governed }) => [client, governed]);
  expect(rows).toEqual(
    expect.arrayContaining([
      ["claude-code MCP server svc", "yes"],
      ["claude-code MCP server other", "no"],
    ]),
  );
});

it("puts the servers that clients start behind gateways, and leaves others with the reason", async () => {
  verifies("beyond.hooks.connect-all");
  const { home, shop, env, run, agents } = machine();
  const server = join(ROOT, "test/gateway/support/fake-upstream.mjs");
  const own = { command: process.execPath, args: [server], env: { SECRET_TOKEN: "s3cret" } };
  const before = JSON.stringify({
    mcpServers: {
      tools: own,
      broken: { command: "/nowhere/server" },
      remote: { type: "http", url: "https://tools.example.net/mcp" },
      inputs: { ...own, args: [["$", "{input:token}"].join("")] },
      held: { ...own, trust: true },
    },
  });
  writeFileSync(join(shop, ".mcp.json"), before);
  const gateways = join(home, ".config/svc/gateways");
  const asked = await run("connect", "--all");
  expect([asked.code, asked.err]).toEqual([1, expect.stringContaining("--yes")]);
  const line = (name: string, what: string) => `claude-code: ${name} of ${join(shop, ".mcp.json")} ${what}`;
  const behind = (name: string) =>
    `is started once to read its tools, and then behind a gateway in ${join(gateways, `claude-code-${name}`)}`;
  expect(asked.out.trim().split("\n")).toEqual([
    "no coding agent was found",
    line("tools", behind("tools")),
    line("broken", behind("broken")),
    line("remote", "is left: it is not started by a command"),
    line("inputs", "is left: its command uses variables of the client"),
    line("held", "is left: a gateway does not support its trust"),
  ]);
  expect([existsSync(gateways), readFileSync(join(shop, ".mcp.json"), "utf8")]).toEqual([false, before]);

  const done = await run("connect", "--all", "--yes");
  expect([done.code, done.err]).toEqual([1, expect.stringContaining("claude-code: broken is left: ")]);
  const { mcpServers } = JSON.parse(readFileSync(join(shop, ".mcp.json"), "utf8"));
  const { tools: _, ...others } = JSON.parse(before).mcpServers;
  expect(mcpServers).toMatchObject({ ...others, tools: { args: expect.arrayContaining(["gateway"]) } });
  // Values of variables stay in the client's file.
  const config = join(gateways, "claude-code-tools/svc.config.yaml");
  expect(readFileSync(config, "utf8")).not.toContain("s3cret");
  expect((await agents()).find(({ client }) => client.endsWith(" tools"))?.governed).toBe("yes");
  // The client starts the gateway, and the gateway the server.
  const client = new Client({ name: "test", version: "1" });
  const { command, args } = mcpServers.tools;
  await client.connect(new StdioClientTransport({ command, args, env: { ...env, ...mcpServers.tools.env } }));
  const offered = (await client.listTools()).tools.map(({ name }) => name);
  await client.close();
  expect(offered).toContain("echo");
  await run("connect", "claude-code", "--undo");
  expect(readFileSync(join(shop, ".mcp.json"), "utf8")).toBe(before);
});

it("leaves servers of a file that git tracks", async () => {
  verifies("beyond.hooks.connect-all");
  const { shop, run } = machine();
  const git = (...args: string[]) => execFileSync(GIT, args, { cwd: shop });
  git("init", "-q");
  writeFileSync(join(shop, ".mcp.json"), '{"mcpServers": {"tools": {"command": "tools"}}}');
  git("add", ".mcp.json");
  const { out, code } = await run("connect", "--all", "--yes");
  expect([out, code]).toEqual([expect.stringContaining("is left: git tracks its file"), 0]);
});

it("connects all that it finds after one confirmation", async () => {
  verifies("beyond.hooks.connect-all");
  const { home, shop, install, run, row } = machine();
  const none = await run("connect", "--all");
  expect([none.code, none.out]).toEqual([0, "no coding agent was found\n"]);
  install("claude", "2.1.327");
  mkdirSync(join(home, ".gemini"));
  const asked = await run("connect", "--all");
  expect(asked.code).toBe(1);
  expect(asked.err).toContain("--yes");
  expect(asked.out.split("\n").filter(Boolean)).toEqual([
    `claude-code: adds the hook to ${home}/.claude/settings.json and registers ${shop}`,
    `gemini: adds the hook to ${home}/.gemini/settings.json and registers ${shop}`,
  ]);
  expect(await row("claude-code", shop)).toBeUndefined();
  expect((await run("connect", "--all", "--yes")).code).toBe(0);
  expect(await row("claude-code", shop)).toMatchObject({ governed: "yes" });
  expect(await row("gemini", shop)).toMatchObject({ governed: "partly" });
  expect((await run("connect", "--all", "--yes")).out).toBe(
    "every coding agent that was found is connected\n",
  );
  expect((await run("connect", "claude-code", "--all")).code).toBe(1);
  expect((await run("connect")).code).toBe(1);
});
