/** The reports of resident processes. */
import { beforeEach, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeEach(async () => {
  s = await testServer({});
});

const agent = (workspace: string | null) => ({
  client: "codex",
  version: null,
  workspace,
  governed: "no",
  missing: ["the workspace is not registered"],
  last_seen_ms: null,
});
const report = (who: "agent" | "agent2" | "auditor", agents: unknown[]) =>
  s.call(who as "agent", "POST", "/v1/agents", { agents });
const listed = async () => (await s.call("auditor", "GET", "/v1/agents")).body.agents;

it("keeps one report of each key, for auditors", async () => {
  verifies("beyond.hooks.inventory-routes");
  expect(await listed()).toEqual([]);
  expect((await report("agent", [agent("/a"), agent(null)])).status).toBe(200);
  expect((await report("agent2", [agent("/b")])).status).toBe(200);
  expect(await listed()).toEqual([agent("/a"), agent(null), agent("/b")]);
  await report("agent", [agent("/c")]);
  expect(await listed()).toEqual([agent("/c"), agent("/b")]);
  expect((await s.call("agent", "GET", "/v1/agents")).status).toBe(403);
  expect((await report("auditor", [])).status).toBe(403);
  expect((await report("agent", [{ ...agent("/a"), governed: "maybe" }])).status).toBe(400);
});

it("keeps at most 1,000 a tenant", async () => {
  verifies("beyond.hooks.inventory-routes");
  const many = Array.from({ length: 1_000 }, (_, i) => agent(`/w/${i}`));
  expect((await report("agent", [...many, agent("/x")])).status).toBe(400);
  expect((await report("agent", many)).status).toBe(200);
  expect((await report("agent2", [agent("/x")])).status).toBe(400);
  expect(await listed()).toHaveLength(1_000);
  expect((await report("agent", many.slice(1))).status).toBe(200);
  expect((await report("agent2", [agent("/x")])).status).toBe(200);
});
