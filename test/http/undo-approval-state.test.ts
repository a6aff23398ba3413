/** The state of a run, and the tasks of its incident, while an undo needs an approval. */
import { beforeEach, expect, it } from "vitest";
import { undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.lease
  effect: compensable
  permission: p
  compensation: {tool: thing.unlease, args: {}, requires_approval: true}
`;
const DAY = 24 * 3_600_000;

let s: TestServer;
let incident = "";
beforeEach(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    config: `rollback: {compensator_cmd: "${undoesAll()}"}\n`,
    keys: [{ name: "bot", role: "agent" }],
  });
  await s.call("bot", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  await s.call("bot", "POST", "/v1/runs/r/intents", { tool: "thing.lease", args: {}, reason: "r" });
  await s.call("bot", "POST", "/v1/runs/r/steps/0/outcome", { status: "succeeded", result: {} });
  await s.call("admin", "POST", "/v1/halt", { actor: "bot", reason: "runaway" });
  const list = (await s.call("auditor", "GET", "/v1/incidents")).body.incidents;
  incident = list[0].id;
  await rollBack();
  await s.env.advance(3_600_000);
});

async function rollBack() {
  await s.call("operator", "POST", "/v1/runs/r/rollback", { confirm: true, retries: 1 });
  const state = async () => (await s.call("auditor", "GET", "/v1/runs/r/rollback")).body.job.state;
  await until(async () => (await state()) !== "running", "the rollback to end");
}

async function decide(decision: "approve" | "deny") {
  const [{ id }] = (await s.call("approver", "GET", "/v1/approvals?status=pending")).body.approvals;
  const { card_hash } = (await s.call("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const decided = await s.call("approver", "POST", `/v1/approvals/${id}/${decision}`, {
    card_hash,
    note: "n",
  });
  expect(decided.status).toBe(200);
}

/** The run's state in each list that shows one, which must agree, and the tasks about its undo. */
async function seen() {
  const get = async (path: string) => (await s.call("auditor", "GET", `/v1/${path}`)).body;
  const [found] = (await get("search/runs")).runs;
  const [of_agent] = (await get("actors/bot")).runs;
  const shown = (await get("runs/r")).attention === true;
  const listed = (await get("search/runs?attention=1")).runs;
  expect([of_agent.state, found.attention, shown, listed.length]).toEqual([
    found.state,
    found.state === "needs attention",
    found.state === "needs attention",
    found.state === "needs attention" ? 1 : 0,
  ]);
  const { tasks } = await get(`incidents/${incident}`);
  const own = tasks.filter(({ kind }: { kind: string }) => kind !== "lift");
  return [
    found.state,
    ...own.map(({ text, command }: Record<"text" | "command", string>) => `${text} ${command}`),
  ];
}

it("needs attention while the undo waits, and not after a denial", async () => {
  verifies("beyond.run-state.undo-approval", "beyond.incidents.undo-approval");
  const asks = [
    "needs attention",
    expect.stringMatching(/^The undo of step 0 waits for approval\. svc approvals approve apr_/),
  ];
  expect(await seen()).toEqual(asks);
  await decide("deny");
  expect(await seen()).toEqual(["settled"]);
  await rollBack();
  expect(await seen()).toEqual(asks);
  await decide("deny");
  expect(await seen()).toEqual(["settled"]);
});

it("needs attention until an approved undo is done", async () => {
  verifies("beyond.run-state.undo-approval", "beyond.incidents.undo-approval");
  await decide("approve");
  const approved = ["needs attention", "Step 0: its undo is approved, and not done. svc rollback r"];
  expect(await seen()).toEqual(approved);
  await s.env.advance(2 * DAY);
  const expired = [
    "needs attention",
    "Step 0: the approval of its undo expired. Roll back to ask again. svc rollback r",
  ];
  expect(await seen()).toEqual(expired);
  await rollBack();
  await s.env.advance(2 * DAY);
  expect(await seen()).toEqual(expired);
  await rollBack();
  await decide("approve");
  await rollBack();
  const [run] = (await s.call("auditor", "GET", "/v1/runs/r")).body.steps;
  expect(run.status).toBe("compensated");
  // Without a reader, the first rollback leaves the step unverified, and the next one settles it.
  await rollBack();
  expect(await seen()).toEqual(["settled"]);
});
