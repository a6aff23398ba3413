/** The coding agents of a machine, as `svc agents` finds them. */
import { chmodSync, mkdirSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { AgentEntry } from "../../src/hook/inventory.ts";
import { svc } from "../support/cli.ts";
import { hookedPlace } from "../support/hooked.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

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
  return { home, shop, install, run, agents, row };
}

it("lists what is governed, partly, and not, with the reason", async () => {
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
