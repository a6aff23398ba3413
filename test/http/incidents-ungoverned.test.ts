/** Calls that ran without a decision, as a client's transcript shows them, and the incident that they open. */
import { beforeEach, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeEach(async () => {
  s = await testServer();
});

const list = async () => (await s.call("auditor", "GET", "/v1/incidents")).body.incidents;
const called = (ref: string, ran = true) => ({ ref, tool: "Bash", at_ms: 1, ran });
const reconcile = (run: string, refs: string[], key = "agent") =>
  s.call(key, "POST", `/v1/runs/${run}/reconcile`, {
    source: "claude-code",
    calls: refs.map((ref) => called(ref)),
  });
async function asked(run: string, ref: string): Promise<void> {
  const body = { tool: "crm.get", args: {}, reason: "r", ref };
  expect((await s.call("agent", "POST", `/v1/runs/${run}/intents`, body)).body.decision).toBe("allow");
}
const open = (run_id: string, more: object = {}) =>
  s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"], ...more });

it("opens one incident, which a later report does not end or repeat, until a person closes it", async () => {
  verifies("beyond.incidents.ungoverned");
  await open("r");
  await asked("r", "a");
  await reconcile("r", ["a"]);
  expect(await list()).toEqual([]);
  await reconcile("r", ["a", "sneaked-1", "sneaked-2"]);
  const [one, ...others] = await list();
  expect(others).toEqual([]);
  expect(one).toMatchObject({ actor: "agent", status: "open", runs: ["r"], left: 1 });
  expect(one.causes).toMatchObject([{ kind: "ungoverned", text: "run r: 2 calls ran without a decision" }]);
  await reconcile("r", ["a"]);
  expect(await list()).toMatchObject([{ id: one.id, status: "open", left: 1 }]);
  const { tasks } = (await s.call("auditor", "GET", `/v1/incidents/${one.id}`)).body;
  expect(tasks).toMatchObject([{ kind: "review", run_id: "r" }]);
  const close = (body: object) => s.call("operator", "POST", `/v1/incidents/${one.id}/close`, body);
  expect((await close({})).status).toBe(400);
  expect((await close({ reason: "a build script" })).status).toBe(200);
  await reconcile("r", ["a"]);
  expect(await list()).toMatchObject([{ id: one.id, status: "closed" }]);
  await reconcile("r", ["a", "again"]);
  expect(await list()).toHaveLength(2);
});

it("counts the calls of a session's sub-agents as decided, in whichever run of the tree", async () => {
  verifies("beyond.incidents.ungoverned", "beyond.tree.reconciled");
  await open("top");
  await open("sub", { parent: "top" });
  await asked("top", "a");
  await asked("sub", "b");
  const { body } = await reconcile("top", ["a", "b"]);
  expect(body).toMatchObject({ asked: 2, ran: 2, ungoverned: [], unused: [] });
  expect(await list()).toEqual([]);
});
