/** What a containment says beforehand of states that were captured, and what it then does with them. */
import { expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

async function withTwoWrites(config: (shelf: ReturnType<typeof docs>) => string) {
  const shelf = docs();
  const s = await testServer({
    manifests: MANIFESTS,
    config: `rollback: {${config(shelf)}}\n`,
    keys: [{ name: "bot", role: "agent" }],
  });
  await s.call("bot", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  for (const [step, id] of ["mine", "shared"].entries()) {
    const args = { id, text: "new" };
    await s.call("bot", "POST", "/v1/runs/r/intents", { tool: "doc.put", args, reason: "r" });
    const before = shelf.show(id);
    shelf.write(id, "new");
    const outcome = { status: "succeeded", before, after: shelf.show(id) };
    await s.call("bot", "POST", `/v1/runs/r/steps/${step}/outcome`, outcome);
  }
  return { s, shelf };
}

async function contained(s: TestServer) {
  const asked = { actor: "bot", reason: "r" };
  const told = (await s.call("admin", "POST", "/v1/contain", asked)).body;
  const { id } = (await s.call("admin", "POST", "/v1/contain", { ...asked, confirm: true })).body.job;
  const look = async () => (await s.call("auditor", "GET", `/v1/contain/${id}`)).body.job;
  await until(async () => (await look()).state !== "running", "the containment to end");
  return { told, done: (await look()).report };
}

it("leaves what somebody else wrote since, and says so beforehand", async () => {
  verifies("beyond.contain.dry-run");
  const { s, shelf } = await withTwoWrites(
    ({ compensator, reader }) => `compensator_cmd: "${compensator}", reader_cmd: "${reader}"`,
  );
  shelf.write("shared", "by another");
  const { told, done } = await contained(s);
  for (const report of [told, done])
    expect(report).toMatchObject({
      undone: 1,
      left: 1,
      complete: false,
      runs: [{ undone: [{ step: 0 }], cannot: [{ step: 1, why: expect.stringMatching(/^conflict: what/) }] }],
    });
  expect([shelf.text("mine"), shelf.text("shared")]).toEqual([undefined, "by another"]);
});

it("counts what it cannot read as left, beforehand as afterwards", async () => {
  verifies("beyond.contain.dry-run");
  const { s, shelf } = await withTwoWrites(({ compensator }) => `compensator_cmd: "${compensator}"`);
  const { told, done } = await contained(s);
  for (const report of [told, done])
    expect(report).toMatchObject({
      undone: 0,
      left: 2,
      complete: false,
      runs: [
        {
          undone: [],
          cannot: [1, 0].map((step) => ({ step, why: expect.stringMatching(/^conflict: not checked/) })),
        },
      ],
    });
  expect([shelf.text("mine"), shelf.text("shared")]).toEqual(["new", "new"]);
});
