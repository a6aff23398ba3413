/** Long texts are cut between characters: half of one on the ledger is a record that strict readers cannot verify. */
import { expect, it } from "vitest";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";
import { ask, fakeUpstream, testGateway } from "./support/gateway.ts";

/** The last character takes two places, and there is room for one. */
const LONG = `${"x".repeat(3_999)}😀 and more`;
const CUT = `${"x".repeat(3_999)}\ufffd`;

it("of an agent's error", async () => {
  verifies("beyond.library.whole-characters");
  const s = await testServer();
  const run_id = "r";
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
  await s.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "r" });
  const told = { status: "failed", error: LONG };
  expect((await s.call("agent", "POST", "/v1/runs/r/steps/0/outcome", told)).status).toBe(200);
  const [line] = await s.app.core.store.records({ event: "failed", limit: 1 });
  expect(JSON.parse(line!).detail).toBe(CUT);
});

it("of a reason next to a call through the gateway, and of the tool's message", async () => {
  verifies("beyond.library.whole-characters");
  const g = await testGateway({ upstreams: [fakeUpstream({})] });
  const client = await g.connect("agent");
  const _meta = { "svc/reason": LONG };
  await ask(client, "tools/call", { name: "fail", arguments: {}, _meta });
  const lines = await g.service.core.store.records({ limit: 100 });
  expect(lines.map((line) => JSON.parse(line).reason)).toContain(CUT);
  for (const line of lines) expect(line).not.toMatch(/\\ud[89a-f]/);
});
