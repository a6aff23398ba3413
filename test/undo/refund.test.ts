/** What an undo gives back to limits and budgets: only what the service itself saw undone, once, where it was counted. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { nodeCommand, undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- tool: thing.buy
  effect: compensable
  permission: p
  compensation: {tool: thing.sell}
  verification: {tool: thing.get, expect: {gone: true}, retries: 0}
- tool: thing.blind
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
- {tool: thing.get, effect: read, permission: p}
- {tool: thing.send, effect: irreversible, permission: p}
`;
const policy = (refund: boolean) => `
version: 1
limits:
  - {id: at-stake, match: {effect: "{compensable,irreversible}"}, max: 2, per: run, window: 30d, refund: ${refund}}
budgets:
  - {id: spend, match: {tool: thing.buy}, path: $args.amount, max: 0.3, per: actor, window: 1h, refund: ${refund}}
`;
const folder = tempDir("refund");
const stuck = join(folder, "stuck");
const compensator = undoesAll();
const reader = nodeCommand(
  `import { existsSync } from "node:fs";
process.stdin.resume().on("end", () => console.log(JSON.stringify({ gone: !existsSync(${JSON.stringify(stuck)}) })));`,
);

const MINUTE = 60_000;
let s: TestServer;
let calls = 0;

beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy: policy(true),
    config: `rollback: {compensator_cmd: "${compensator}", reader_cmd: "${reader}"}\ncapture: {enabled: true}\n`,
  });
});

async function opened(id: string): Promise<string> {
  await s.call("agent", "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
  return id;
}

/** Makes the call, a minute after the one before, and reports success; returns the decision. */
async function made(id: string, tool: string, args: object = {}): Promise<string> {
  s.env.setNow(s.env.now() + MINUTE);
  calls++;
  const { body } = await s.call("agent", "POST", `/v1/runs/${id}/intents`, { tool, args, reason: "r" });
  if (body.decision === "block") return body.reasons.join();
  const at = `/v1/runs/${id}/steps/${body.step}/outcome`;
  await s.call("agent", "POST", at, { status: "succeeded", result: { id: body.step } });
  return body.decision;
}

async function rolledBack(id: string) {
  s.env.setNow(s.env.now() + MINUTE);
  const started = await s.call("operator", "POST", `/v1/runs/${id}/rollback`, { confirm: true });
  expect(started.status).toBe(202);
  const job = async () => (await s.call("auditor", "GET", `/v1/runs/${id}/rollback`)).body.job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return (await job()).report;
}

const simulated = async (body: object = {}) => (await s.call("operator", "POST", "/v1/simulate", body)).body;
const USED_UP = "limit at-stake: 2 calls per run in 30d are used up";

describe("refund", () => {
  it("gives back what the server saw undone, once, and nothing for what cannot be undone", async () => {
    verifies("beyond.refund.limit");
    const id = await opened("limit");
    expect(await made(id, "thing.make")).toBe("allow");
    expect(await made(id, "thing.make")).toBe("allow");
    expect(await made(id, "thing.make")).toBe(USED_UP);
    // A call is captured after its decision. Only a captured call can be marked as undone.
    await until(async () => (await simulated()).summary.calls === calls, "the calls to be captured");
    expect(await rolledBack(id)).toMatchObject({ compensated: [1, 0] });
    expect(await made(id, "thing.send")).toBe("allow");
    expect(await rolledBack(id)).toMatchObject({ compensated: [] });
    expect(await made(id, "thing.make")).toBe("allow");
    expect(await made(id, "thing.make")).toBe(USED_UP);
  });

  it("is the same in a simulation of what happened", async () => {
    verifies("beyond.refund.simulated");
    await until(async () => (await simulated()).summary.calls === calls, "the calls to be captured");
    expect((await simulated()).summary).toMatchObject({ newly_blocked: 0, newly_allowed: 0 });
    const kept = await simulated({ policy: policy(false) });
    expect(kept.summary).toMatchObject({ newly_blocked: 2, newly_allowed: 0 });
  });

  it("refunds nothing on a worker's word, or if nothing is read back or the read-back fails", async () => {
    verifies("beyond.refund.worker", "beyond.refund.unproven");
    const id = await opened("worker");
    await made(id, "thing.make");
    const at = `/v1/runs/${id}/steps/0/compensation`;
    expect((await s.call("operator", "POST", at, {})).status).toBe(200);
    const told = { status: "succeeded", observed: { gone: true } };
    expect((await s.call("operator", "POST", `${at}/outcome`, told)).body.status).toBe("compensated");
    const { text } = await s.call("auditor", "GET", `/v1/runs/${id}/export`);
    expect(text).toContain('"event":"verified"');
    await made(id, "thing.blind");
    expect(await rolledBack(id)).toMatchObject({ compensated: [1] });
    expect(await made(id, "thing.make")).toBe(USED_UP);

    const failed = await opened("failed");
    await made(failed, "thing.make");
    await made(failed, "thing.make");
    writeFileSync(stuck, "");
    expect((await rolledBack(failed)).failed).toHaveLength(2);
    expect(await made(failed, "thing.make")).toBe(USED_UP);
    rmSync(stuck);
    expect(await rolledBack(failed)).toMatchObject({ compensated: [1, 0] });
    for (const expected of ["allow", "allow", USED_UP])
      expect(await made(failed, "thing.make")).toBe(expected);
  });

  it("gives an amount back into its own window, and not into a later one", async () => {
    verifies("beyond.refund.window");
    const [first, second, third] = [await opened("w-1"), await opened("w-2"), await opened("w-3")];
    const exceeds = "budget spend: this call would exceed 0.3 per actor in 1h";
    expect(await made(first, "thing.buy", { amount: 0.2 })).toBe("allow");
    s.env.setNow(s.env.now() + 61 * MINUTE);
    expect(await made(second, "thing.buy", { amount: 0.2 })).toBe("allow");
    expect(await made(second, "thing.buy", { amount: 0.1 })).toBe("allow");
    expect(await rolledBack(first)).toMatchObject({ compensated: [0] });
    expect(await made(third, "thing.buy", { amount: 0.1 })).toBe(exceeds);
    expect(await rolledBack(second)).toMatchObject({ compensated: [1, 0] });
    expect(await made(third, "thing.buy", { amount: 0.3 })).toBe("allow");
    expect(await made(third, "thing.buy", { amount: 0.1 })).toBe(exceeds);
  });

  it("is true or false, and turning it on is looser", async () => {
    verifies("beyond.refund.validated");
    const b = policy(true).replaceAll("refund: true", "refund: once");
    const bad = await s.call("operator", "POST", "/v1/policy/diff", { b });
    expect(bad.status).toBe(400);
    expect(bad.text).toContain("limits[0].refund: must be true or false");
    const { body } = await s.call("operator", "POST", "/v1/policy/diff", {
      a: policy(false),
      b: policy(true),
    });
    expect(body.looser.length).toBeGreaterThan(0);
    expect(body.stricter).toEqual([]);
    const back = await s.call("operator", "POST", "/v1/policy/diff", { a: policy(true), b: policy(false) });
    expect(back.body.looser).toEqual([]);
    expect(back.body.stricter.length).toBeGreaterThan(0);
  });
});
