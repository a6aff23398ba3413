/** Four eyes, on every surface of an approval, and checked again when it is used. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const rules = (four_eyes: boolean, quorum = 1) => `
version: 1
approvals: {four_eyes: ${four_eyes}, quorum: ${quorum}}
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: a person must see it}
`;
const MANIFESTS = `
- {tool: mail.send, effect: irreversible, permission: mail.send}
- tool: crm.create
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}, requires_approval: true}
- {tool: crm.delete, effect: idempotent, permission: crm.write}
`;
const OWN = { status: 403, body: { error: "you cannot decide your own request" } };
const ALLOWED = { decision: "allow" };
const BLOCKED = { decision: "block" };

let s: TestServer;
beforeEach(async () => {
  s = await testServer({
    policy: rules(false),
    manifests: MANIFESTS,
    keys: [{ name: "both", roles: ["agent", "admin"] }],
  });
  const run = { run_id: "own", permissions: ["mail.send", "crm.write"] };
  expect((await s.call("both", "POST", "/v1/runs", run)).status).toBe(201);
});

async function policy(four_eyes: boolean, quorum?: number): Promise<void> {
  writeFileSync(join(s.folder, "policy.yaml"), rules(four_eyes, quorum));
  expect((await s.call("admin", "POST", "/v1/reload")).status).toBe(200);
}
const call = { tool: "mail.send", args: { to: "x" } };
const ask = async () => (await s.call("both", "POST", "/v1/runs/own/intents", { ...call, reason: "r" })).body;
const request = async (): Promise<string> => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask()))![0];
const ahead = (key: string) => s.call(key, "POST", "/v1/runs/own/approvals", call);
const decide = (key: string, id: string, verb = "approve", body: object = {}) =>
  s.call(key, "POST", `/v1/approvals/${id}/${verb}`, body);

describe("under four eyes", () => {
  it("nobody approves their own call, by any door", async () => {
    verifies("contract.approval.four-eyes");
    await policy(true);
    expect(await ahead("both")).toMatchObject(OWN);
    const id = await request();
    expect(await decide("both", id)).toMatchObject(OWN);
    expect(await decide("both", id, "deny")).toMatchObject(OWN);
    expect(await decide("both", id, "break-glass", { reason: "the site is down" })).toMatchObject(OWN);
    expect(await ask()).toMatchObject(BLOCKED);
  });

  it("somebody else approves it by each of them", async () => {
    await policy(true);
    expect((await ahead("approver")).status).toBe(201);
    expect(await ask()).toMatchObject(ALLOWED);
    expect((await decide("approver", await request())).status).toBe(200);
    expect(await ask()).toMatchObject(ALLOWED);
    const forced = await decide("admin", await request(), "break-glass", { reason: "the site is down" });
    expect(forced.status).toBe(200);
    expect(await ask()).toMatchObject(ALLOWED);
  });
});

describe("an approval of the requester, from before four eyes were turned on", () => {
  it.each([
    ["given ahead", async () => void (await ahead("both"))],
    ["by deciding", async () => void (await decide("both", await request()))],
    [
      "by breaking glass",
      async () => void (await decide("both", await request(), "break-glass", { reason: "the site is down" })),
    ],
  ])("is usable before and not after: %s", async (_name, approve) => {
    await approve();
    expect(await ask()).toMatchObject(ALLOWED);
    await approve();
    await policy(true);
    const again = await request();
    expect((await decide("approver", again)).status).toBe(200);
    expect(await ask()).toMatchObject(ALLOWED);
  });

  it("is not one of two", async () => {
    await policy(false, 2);
    const id = await request();
    expect((await decide("both", id)).body).toMatchObject({ status: "pending" });
    await policy(true, 2);
    expect((await decide("approver", id)).body).toMatchObject({ status: "pending" });
    expect(await ask()).toMatchObject(BLOCKED);
    expect((await decide("admin", id)).body).toMatchObject({ status: "approved" });
    expect(await ask()).toMatchObject(ALLOWED);
  });
});

describe("an undo that needs approval", () => {
  const begin = (key: string) => s.call(key, "POST", "/v1/runs/own/steps/0/compensation");
  async function step(): Promise<void> {
    const intent = { tool: "crm.create", args: {}, reason: "r" };
    expect((await s.call("both", "POST", "/v1/runs/own/intents", intent)).body).toMatchObject(ALLOWED);
    await s.call("both", "POST", "/v1/runs/own/steps/0/outcome", { status: "succeeded", result: { id: 1 } });
  }
  const waitsFor = async () => /apr_[0-9a-f-]{36}/.exec((await begin("operator")).body.error)![0];

  it("is not begun on one's own consent from before, and is on somebody else's", async () => {
    await step();
    const id = await waitsFor();
    expect((await decide("both", id)).body).toMatchObject({ status: "approved" });
    await policy(true);
    const next = await waitsFor();
    expect(next).not.toBe(id);
    expect(await decide("both", next)).toMatchObject(OWN);
    expect((await decide("approver", next)).status).toBe(200);
    expect((await begin("operator")).status).toBe(200);
  });

  it("is not approved with all the others by the one whose run it is", async () => {
    await policy(true);
    await step();
    const { executeRollback } = await import("../../src/rollback/undo/execute.ts");
    const undo = (actor: string) =>
      executeRollback(s.app.core, "own", {
        actor,
        compensator: async () => ({}),
        approve_compensations: true,
      });
    expect(await undo("both")).toMatchObject({ awaiting_approval: [0], compensated: [] });
    expect(await undo("operator")).toMatchObject({ compensated: [0], complete: true });
  });
});
