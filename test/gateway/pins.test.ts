/** Pinned definitions: a tool that changes after it was first seen is another tool. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { verifies } from "../support/verifies.ts";
import { ask, call, FAKE_MANIFESTS, testGateway, toolNames, until } from "./support/gateway.ts";

const CHANGED = /the definition of this tool changed/;

describe("a definition that changes", () => {
  it(`is noted, hidden and blocked until its manifest is approved anew ${verifies("contract.gateway.tool-changed-blocked", "contract.gateway.tool-changed")}`, async () => {
    const g = await testGateway();
    const client = await g.connect("agent");
    expect((await call(client, "echo")).isError).toBeUndefined();
    await call(client, "redefine");
    await until(async () => !(await toolNames(client)).includes("echo"), "it is no longer listed");
    const blocked = await call(client, "echo", {}, { "svc/reason": "try" });
    expect(blocked.structuredContent).toMatchObject({
      decision: "block",
      reasons: [expect.stringMatching(CHANGED)],
    });
    expect((await g.trail(blocked._meta["svc/run_id"])).at(-1)).toMatchObject({
      event: "blocked",
      tool: "echo",
      detail: expect.stringMatching(CHANGED),
    });
    expect((await call(client, "get")).isError).toBeUndefined();
    expect(await g.service.core.store.get("pins", "echo")).toMatchObject({
      changed_ms: expect.any(Number),
      changed_hash: expect.stringMatching(/^sha256:/),
    });

    await until(
      async () => {
        const answer = await fetch(`${g.url}/v1/alerts`, { headers: { authorization: "Bearer auditor" } });
        const { alerts } = (await answer.json()) as { alerts: { kind: string; tool: string }[] };
        return alerts.some(({ kind, tool }) => kind === "tool_changed" && tool === "echo");
      },
      "the alert",
      30_000,
    );

    // The same manifests loaded again approve nothing.
    await g.service.reload();
    expect((await call(client, "echo")).isError).toBe(true);
    writeFileSync(
      join(g.folder, "manifests.yaml"),
      FAKE_MANIFESTS.replace("{tool: echo,", '{tool: echo, version: "2",'),
    );
    await g.service.reload();
    await until(async () => (await toolNames(client)).includes("echo"), "it is listed again");
    expect((await call(client, "echo")).isError).toBeUndefined();
    expect(await g.service.core.store.get("pins", "echo")).toMatchObject({
      changed_ms: null,
      changed_hash: null,
    });
    const { tools } = await ask(client, "tools/list");
    expect(tools.find(({ name }: { name: string }) => name === "echo").description).toContain("secret");
  });

  it("is only remarked on in observe mode", async () => {
    const g = await testGateway({ mode: "observe" });
    const client = await g.connect("agent");
    await call(client, "redefine");
    await until(
      async () => (await call(client, "echo"))._meta["svc/decision"] === "would_block",
      "it is remarked on",
    );
    expect(await toolNames(client)).toContain("echo");
  });

  it("is noticed over a restart", async () => {
    const store = new MemoryStore();
    store.close = async () => {};
    const first = await testGateway({ store });
    await first.connect("agent").then((client) => call(client, "echo"));
    await first.running.stop();
    const pin = (await store.get("pins", "echo"))!;
    await store.transact({ run: (tx) => tx.put("pins", "echo", { ...pin, hash: "sha256:another" }) });
    const second = await testGateway({ store });
    expect((await call(await second.connect("agent"), "echo")).structuredContent.reasons[0]).toMatch(CHANGED);
  });
});
