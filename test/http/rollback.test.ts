import { beforeAll, describe, expect, it } from "vitest";
import { afterInput, undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}, residue: [a trace stays]}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- {tool: thing.look, effect: read, permission: p}
- {tool: thing.send, effect: irreversible, permission: p}
`;
const compensator = undoesAll();
const reader = afterInput("console.log(JSON.stringify({gone: true}))");

let s: TestServer;
let n = 0;
async function made(server: TestServer, tools: string[]): Promise<string> {
  const id = `run-${n++}`;
  await server.call("agent", "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
  for (const [i, tool] of tools.entries()) {
    await server.call("agent", "POST", `/v1/runs/${id}/intents`, { tool, args: {}, reason: "r" });
    await server.call("agent", "POST", `/v1/runs/${id}/steps/${i}/outcome`, {
      status: "succeeded",
      result: { id: i },
    });
  }
  return id;
}
async function finished(server: TestServer, id: string) {
  const job = async () => (await server.call("auditor", "GET", `/v1/runs/${id}/rollback`)).body.job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return job();
}

beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    config: `rollback: {compensator_cmd: "${compensator}", reader_cmd: "${reader}"}\n`,
  });
});

describe("the plan", () => {
  it("is read by auditors and changes nothing", async () => {
    verifies("core.route.plan", "core.rollback.plan-is-dry", "core.auth.approver-reads-plan");
    const id = await made(s, ["thing.make", "thing.look"]);
    const before = (await s.call("auditor", "GET", `/v1/runs/${id}/export`)).text;
    const plan = await s.call("approver", "GET", `/v1/runs/${id}/plan`);
    expect(plan).toMatchObject({
      status: 200,
      body: {
        run_id: id,
        fully_reversible: true,
        actions: [
          { step: 1, tool: "thing.look", kind: "skip" },
          {
            step: 0,
            tool: "thing.make",
            kind: "compensate",
            compensation_tool: "thing.unmake",
            args: { id: 0 },
            idempotency_key: expect.stringMatching(/^[0-9a-f]{64}$/),
            needs_approval: false,
            residue: ["a trace stays"],
            compensation_kind: "compensation",
            verified: true,
          },
        ],
      },
    });
    expect((await s.call("auditor", "GET", `/v1/runs/${id}/export`)).text).toBe(before);
  });
});

describe("the server's job", () => {
  it("shows the plan without confirm, and starts with it", async () => {
    verifies(
      "contract.http.rollback-dry",
      "contract.http.rollback-202",
      "core.route.rollback-202",
      "core.route.rollback-progress",
      "core.rollback.server-job",
      "core.rollback.job-reader",
      "core.purpose.operator-rolls-back",
    );
    const id = await made(s, ["thing.make", "thing.make"]);
    expect((await s.call("auditor", "GET", `/v1/runs/${id}/rollback`)).status).toBe(404);
    expect((await s.call("approver", "POST", `/v1/runs/${id}/rollback`, { confirm: true })).status).toBe(403);
    expect((await s.call("operator", "POST", `/v1/runs/${id}/rollback`, {})).body).toMatchObject({
      dry_run: true,
      plan: { fully_reversible: true },
    });
    const started = await s.call("operator", "POST", `/v1/runs/${id}/rollback`, {
      confirm: true,
      retries: 2,
    });
    expect(started).toMatchObject({
      status: 202,
      body: { job: { run_id: id, state: "running", by: "operator" } },
    });
    const job = await finished(s, id);
    expect(job).toMatchObject({
      state: "done",
      by: "operator",
      report: { compensated: [1, 0], complete: true },
    });
    const trail = (
      await s.call("auditor", "GET", `/v1/runs/${id}/export`, undefined, { accept: "application/json" })
    ).body.records;
    expect(
      trail.slice(4).map((record: { event: string; step: number }) => `${record.event} ${record.step}`),
    ).toEqual([
      "compensating 1",
      "verified 1",
      "compensated 1",
      "compensating 0",
      "verified 0",
      "compensated 0",
    ]);
  });

  it("takes retries from 1 to 10 and says what else it takes", async () => {
    verifies("contract.http.rollback-options");
    const id = await made(s, ["thing.make"]);
    for (const body of [{ retries: 0 }, { retries: 11 }, { retries: "2" }, { nope: 1 }]) {
      expect(
        (await s.call("operator", "POST", `/v1/runs/${id}/rollback`, { confirm: true, ...body })).status,
      ).toBe(400);
    }
  });

  it("is not there without a compensator, and ends unverified without a reader", async () => {
    verifies("contract.http.rollback-404", "core.rollback.job-no-reader");
    const off = await testServer({ manifests: MANIFESTS });
    const id = await made(off, ["thing.make"]);
    expect(await off.call("operator", "POST", `/v1/runs/${id}/rollback`, { confirm: true })).toMatchObject({
      status: 404,
      body: { error: expect.stringContaining("SVC_COMPENSATOR_CMD") },
    });
    const blind = await testServer({
      manifests: MANIFESTS,
      config: `rollback: {compensator_cmd: "${compensator}"}\n`,
    });
    const run = await made(blind, ["thing.make"]);
    await blind.call("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true });
    expect((await finished(blind, run)).report).toMatchObject({
      compensated: [0],
      unverified: [0],
      complete: false,
    });
  });
});

describe("a remote worker", () => {
  it("begins and completes a compensation in its turn", async () => {
    verifies(
      "core.route.compensation-begin",
      "core.route.compensation-outcome",
      "core.auth.approver-compensation-403",
    );
    const id = await made(s, ["thing.make"]);
    const at = `/v1/runs/${id}/steps/0/compensation`;
    expect((await s.call("approver", "POST", at)).status).toBe(403);
    const begun = await s.call("operator", "POST", at);
    expect(begun).toMatchObject({
      status: 200,
      body: {
        run_id: id,
        step: 0,
        tool: "thing.unmake",
        original_tool: "thing.make",
        args: { id: 0 },
        verification: { tool: "thing.get", arguments: { id: 0 }, expect: { gone: true } },
      },
    });
    expect((await s.call("admin", "POST", at)).status).toBe(409);
    const done = await s.call("operator", "POST", `${at}/outcome`, {
      status: "succeeded",
      observed: { gone: true },
    });
    expect(done).toMatchObject({ status: 200, body: { step: 0, status: "compensated" } });
    expect((await s.call("operator", "POST", at)).status).toBe(409);
    expect((await s.call("operator", "POST", `${at}/outcome`, { status: "odd" })).status).toBe(400);
  });
});
