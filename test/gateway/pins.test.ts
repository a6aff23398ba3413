/** Pinned definitions: a tool that changes after it was first seen is another tool. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { ask, call, FAKE_MANIFESTS, fakeUpstream, testGateway, toolNames, until } from "./support/gateway.ts";

const CHANGED = /the definition of this tool changed/;

describe("a definition that changes", () => {
  it(`is noted, hidden and blocked until its manifest is approved again ${verifies("contract.gateway.tool-changed-blocked", "contract.gateway.tool-changed")}`, async () => {
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

    await until(async () => {
      const answer = await fetch(`${g.url}/v1/alerts`, { headers: { authorization: "Bearer auditor" } });
      const { alerts } = (await answer.json()) as { alerts: { kind: string; tool: string }[] };
      return alerts.some(({ kind, tool }) => kind === "tool_changed" && tool === "echo");
    }, "the alert");

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

describe("an undo by a tool whose definition changed", () => {
  const RUN = "changed-undo";
  const REASON =
    /^not tried, an operator is needed for delete: the definition of this tool changed .* approved again\. Then roll back again$/;

  async function refused(tool: "delete" | "get") {
    const seen = join(tempDir("undo"), "seen.jsonl");
    const g = await testGateway({ upstreams: [fakeUpstream({ env: { FAKE_LOG: seen } })] });
    const agent = await g.connect("agent", { headers: { "svc-run-id": RUN } });
    const { id } = (await call(agent, "create", { n: 1 })).structuredContent;
    await call(agent, "redefine", { tools: [tool] });
    await until(async () => !(await toolNames(agent)).includes(tool), "the change is seen");
    const deletes = () =>
      readFileSync(seen, "utf8")
        .split("\n")
        .filter((line) => line.includes('"name":"delete"'));
    const operator = await g.connect("operator", { path: "/operator/mcp" });
    const rollback = async () =>
      (await call(operator, "svc.execute_rollback", { run_id: RUN, confirm: true })).structuredContent;
    return { g, id, deletes, rollback };
  }

  it("is not tried, says why, and is made up for once an operator accepted the definition", async () => {
    const { g, id, deletes, rollback } = await refused("delete");
    expect(await rollback()).toMatchObject({
      compensated: [],
      failed: [{ step: 0, error: expect.stringMatching(REASON) }],
      complete: false,
    });
    expect(deletes()).toEqual([]);
    expect((await g.trail(RUN)).at(-1)).toMatchObject({
      event: "compensation_failed",
      step: 0,
      detail: expect.stringMatching(REASON),
    });
    expect(await g.service.core.store.get("steps", `${RUN}/0`)).toMatchObject({
      status: "compensation_failed",
      error: expect.stringMatching(REASON),
    });
    const answer = await fetch(`${g.url}/v1/alerts`, { headers: { authorization: "Bearer auditor" } });
    const { alerts } = (await answer.json()) as { alerts: { kind: string }[] };
    expect(alerts.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["tool_changed", "compensation_failed"]),
    );
    writeFileSync(
      join(g.folder, "manifests.yaml"),
      FAKE_MANIFESTS.replace("- {tool: delete,", '- {tool: delete, version: "2",'),
    );
    await g.service.reload();
    expect(await rollback()).toMatchObject({ compensated: [0], failed: [], complete: true });
    expect(deletes()).toHaveLength(1);
    expect(deletes()[0]).toContain(`"id":${id}`);
  });

  it("is not tried by a job over the API either", async () => {
    const { g, deletes } = await refused("delete");
    const headers = { authorization: "Bearer operator", "content-type": "application/json" };
    const url = `${g.url}/v1/runs/${RUN}/rollback`;
    const started = await fetch(url, { method: "POST", headers, body: '{"confirm":true}' });
    expect(started.status).toBe(202);
    type Job = { job: { state: string; report: unknown } };
    const job = async () => ((await (await fetch(url, { headers })).json()) as Job).job;
    await until(async () => (await job()).state !== "running", "the job has ended");
    expect(await job()).toMatchObject({
      state: "done",
      report: { failed: [{ step: 0, error: expect.stringMatching(REASON) }], complete: false },
    });
    expect(deletes()).toEqual([]);
  });

  it("is not tried where it could not be read back", async () => {
    const { deletes, rollback } = await refused("get");
    expect((await rollback()).failed).toEqual([
      { step: 0, error: expect.stringMatching(/^not tried, an operator is needed for get: /) },
    ]);
    expect(deletes()).toEqual([]);
  });
});
