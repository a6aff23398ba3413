/** What a containment previews, against what it then does: deadlines, commands, read-backs, approvals, surprises. */
import { expect, it } from "vitest";
import { undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: thing.get, effect: read, permission: p}
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
- tool: thing.book
  effect: compensable
  permission: p
  compensation: {tool: thing.cancel, args: {id: $result.id}, until: 1h}
- tool: thing.check
  effect: compensable
  permission: p
  compensation: {tool: thing.uncheck, args: {id: $result.id}}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- tool: thing.lease
  effect: compensable
  permission: p
  compensation: {tool: thing.unlease, args: {}, requires_approval: true}
`;

async function serverAfter(tools: readonly string[], rollback: string): Promise<TestServer> {
  const config = rollback === "" ? "" : `rollback: {${rollback}}\n`;
  const s = await testServer({ manifests: MANIFESTS, config, keys: [{ name: "bot", role: "agent" }] });
  await s.call("bot", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  for (const [step, tool] of tools.entries()) {
    await s.call("bot", "POST", "/v1/runs/r/intents", { tool, args: {}, reason: "r" });
    const outcome = { status: "succeeded", result: { id: step } };
    expect((await s.call("bot", "POST", `/v1/runs/r/steps/${step}/outcome`, outcome)).status).toBe(200);
  }
  return s;
}

const ASKED = { actor: "bot", reason: "r" };
const preview = async (s: TestServer) => (await s.call("admin", "POST", "/v1/contain", ASKED)).body;

async function contained(s: TestServer) {
  const { body } = await s.call("admin", "POST", "/v1/contain", { ...ASKED, confirm: true });
  const job = async () => (await s.call("auditor", "GET", `/v1/contain/${body.job.id}`)).body.job;
  await until(async () => {
    // Failed undos are tried again, after a pause.
    await s.env.advance(200);
    return (await job()).state !== "running";
  }, "the containment to end");
  return (await job()).report;
}

const stepsOf = ({ runs: [run], undone, left, complete }: Awaited<ReturnType<typeof preview>>) => ({
  undone: run.undone,
  cannot: run.cannot,
  unknown: run.unknown,
  counts: [undone, left, complete],
});

it("names an undo whose time is over, with the time, before and after", async () => {
  verifies("beyond.previews.deadline", "beyond.previews.differences");
  const s = await serverAfter(["thing.make", "thing.book"], `compensator_cmd: "${undoesAll()}"`);
  expect(stepsOf(await preview(s)).counts).toEqual([2, 0, true]);
  await s.env.advance(3_600_000);
  const before = await preview(s);
  expect(stepsOf(before)).toMatchObject({
    undone: [{ step: 0 }],
    cannot: [{ step: 1, why: expect.stringMatching(/^its undo closed at \d{4}-/) }],
    counts: [1, 1, false],
  });
  const after = await contained(s);
  expect(stepsOf(after)).toEqual(stepsOf(before));
  expect(after.differences).toEqual([]);
});

it("previews that nothing is undone by a command that cannot be started", async () => {
  verifies("beyond.previews.program");
  const s = await serverAfter(["thing.make"], 'compensator_cmd: "/nowhere/undo --all"');
  expect(stepsOf(await preview(s))).toMatchObject({
    cannot: [{ why: "nothing here can undo it: the program /nowhere/undo cannot be started" }],
    counts: [0, 1, false],
  });
  const after = await contained(s);
  expect([stepsOf(after).counts, after.differences]).toEqual([[0, 1, false], []]);
});

it("previews an undo that nothing reads back, or whose reader cannot be started", async () => {
  verifies("beyond.previews.program");
  const compensator = `compensator_cmd: "${undoesAll()}"`;
  const unread = await serverAfter(["thing.check"], compensator);
  const before = await preview(unread);
  expect(stepsOf(before)).toMatchObject({
    undone: [{ step: 0 }],
    unknown: [{ step: 0, why: "undone, but not read back" }],
    counts: [1, 1, false],
  });
  const after = await contained(unread);
  expect([stepsOf(after), after.differences]).toEqual([stepsOf(before), []]);

  const broken = await serverAfter(["thing.check"], `${compensator}, reader_cmd: "no-such-reader"`);
  expect(stepsOf(await preview(broken))).toMatchObject({
    undone: [],
    cannot: [{ why: "its undo cannot be read back: the program no-such-reader cannot be started" }],
  });
  const failed = await contained(broken);
  expect([stepsOf(failed).counts, failed.differences]).toEqual([[0, 1, false], []]);
});

it("previews an undo that waits for approval", async () => {
  verifies("beyond.previews.approval");
  const s = await serverAfter(["thing.make", "thing.lease"], `compensator_cmd: "${undoesAll()}"`);
  const before = await preview(s);
  expect(stepsOf(before)).toMatchObject({
    undone: [{ step: 0 }],
    cannot: [{ step: 1, why: "its undo requires approval" }],
  });
  const after = await contained(s);
  expect([stepsOf(after).counts, after.differences]).toEqual([stepsOf(before).counts, []]);
});

it("lists the steps that ended otherwise than previewed", async () => {
  verifies("beyond.previews.differences");
  const s = await serverAfter(["thing.make", "thing.check"], "");
  let calls = 0;
  // It promises to undo both, and fails on one: the reader lies until the undo is read back.
  s.app.jobTools = {
    compensator: async ({ tool }) => {
      calls++;
      if (tool === "thing.unmake") throw new Error("the service is down");
    },
    reader: async () => ({ gone: calls === 0 }),
    stop: s.app.background.signal,
  };
  expect(stepsOf(await preview(s)).counts).toEqual([2, 0, true]);
  const { differences } = await contained(s);
  expect(differences).toMatchObject([
    { run_id: "r", step: 1, tool: "thing.check", promised: "undone" },
    { run_id: "r", step: 0, tool: "thing.make", promised: "undone" },
  ]);
  expect(differences[0].happened).toMatch(/^verification failed: thing\.get/);
  expect(differences[1].happened).toContain("the service is down");
});
