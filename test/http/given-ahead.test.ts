/** What a person approved before the call was asked for counts only as long as that person could still approve it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `
version: 1
rules:
  - {id: creates, match: {tool: crm.create}, action: require_approval, reason: ops look, approval: {groups: [ops]}}
`;
const HOUR = 3_600_000;
let s: TestServer;
let n = 0;
beforeEach(async () => {
  s = await testServer({
    policy: POLICY,
    keys: [
      { name: "ann", role: "approver", groups: ["ops"] },
      { name: "bob", role: "approver", groups: ["ops"] },
      { name: "watcher", role: "auditor" },
    ],
  });
});

type Entry = Record<string, unknown> & { name: string };
async function editKey(name: string, edit: (entry: Entry) => Entry | null): Promise<void> {
  const path = join(s.folder, "keys.json");
  const entries = JSON.parse(readFileSync(path, "utf8")) as Entry[];
  const edited = entries.flatMap((entry) => (entry.name === name ? (edit(entry) ?? []) : entry));
  writeFileSync(path, JSON.stringify(edited));
  expect((await s.call("admin", "POST", "/v1/reload")).status).toBe(200);
}

const call = (id: number) => ({ tool: "crm.create", args: { id }, reason: "r" });
const idIn = (body: unknown) => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
async function opened() {
  const run_id = `ahead${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.write"] });
  const ask = async (id: number) =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, call(id))).body;
  return { run_id, ask };
}
type Opened = Awaited<ReturnType<typeof opened>>;

/** Each way to approve call 1 before it is asked for. */
const WAYS: [string, (key: string, run: Opened) => Promise<unknown>][] = [
  [
    "a plan",
    async (key, { run_id }) => {
      const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/plans`, {
        reason: "soon",
        calls: [call(1), call(2)],
      });
      return s.call(key, "POST", `/v1/plans/${body.id}/approve`, {});
    },
  ],
  [
    "an offer",
    async (key, { ask }) =>
      s.call(key, "POST", `/v1/approvals/${idIn(await ask(9))}/deny`, { offer: { args: { id: 1 } } }),
  ],
];
const PRE_APPROVAL: (typeof WAYS)[number] = [
  "a pre-approval",
  (key, { run_id }) =>
    s.call(key, "POST", `/v1/runs/${run_id}/approvals`, { tool: "crm.create", args: { id: 1 } }),
];
const ALL = [...WAYS, PRE_APPROVAL];

const LOSSES: [string, (entry: Entry) => Entry | null][] = [
  ["the key is disabled", (entry) => ({ ...entry, disabled: true })],
  ["the key has expired", (entry) => ({ ...entry, expires_at: "2026-06-15T11:59:59Z" })],
  ["the key is gone", () => null],
  ["the key was replaced", (entry) => ({ ...entry, key_sha256: sha256Hex("another") })],
  ["the role is lost", (entry) => ({ ...entry, role: "auditor" })],
  ["the group is lost", (entry) => ({ ...entry, groups: [] })],
  ["the key is another tenant's", (entry) => ({ ...entry, tenant: "elsewhere", tenant_only: true })],
];

describe.each(ALL)("%s", (_name, approve) => {
  it("lets its call through while its giver could still approve it", async () => {
    const run = await opened();
    expect(await approve("ann", run)).toMatchObject({ status: expect.toBeOneOf([200, 201]) });
    expect(await run.ask(1)).toMatchObject({ decision: "allow" });
  });

  it.each(LOSSES)("counts no more once %s", async (_loss, change) => {
    verifies("beyond.approval.ahead-as-of-now");
    const run = await opened();
    expect(await approve("ann", run)).toMatchObject({ status: expect.toBeOneOf([200, 201]) });
    await editKey("ann", change);
    const blocked = await run.ask(1);
    expect(blocked).toMatchObject({ decision: "block" });
    // A person who may decides the call as it is asked for now.
    const id = idIn(blocked);
    expect(await s.call("bob", "POST", `/v1/approvals/${id}/approve`, {})).toMatchObject({ status: 200 });
    expect(await run.ask(1)).toMatchObject({ decision: "allow" });
  });
});

describe.each(WAYS)("%s by delegated authority", (_name, approve) => {
  const lend = async () => {
    const expires_at = new Date(s.env.now() + HOUR).toISOString();
    const lent = await s.call("ann", "POST", "/v1/delegations", {
      to: "watcher",
      expires_at,
      reason: "away",
    });
    return lent.body.id as string;
  };

  it.each([
    ["the delegation is revoked", (id: string) => s.call("ann", "DELETE", `/v1/delegations/${id}`)],
    ["the delegation has ended", async () => s.env.advance(2 * HOUR)],
    ["its lender's key is disabled", () => editKey("ann", (entry) => ({ ...entry, disabled: true }))],
    ["its user's key is disabled", () => editKey("watcher", (entry) => ({ ...entry, disabled: true }))],
  ])("counts no more once %s", async (_loss, lose) => {
    verifies("beyond.approval.ahead-as-of-now");
    const id = await lend();
    const [used, unused] = [await opened(), await opened()];
    for (const run of [used, unused]) expect(await approve("watcher", run)).toMatchObject({ status: 200 });
    expect(await used.ask(1)).toMatchObject({ decision: "allow" });
    await lose(id);
    expect(await unused.ask(1)).toMatchObject({ decision: "block" });
  });
});

it("the decision on a requested call stays, whichever way the key changes", async () => {
  verifies("beyond.approval.asked-stays");
  const run = await opened();
  const id = idIn(await run.ask(1));
  await s.call("ann", "POST", `/v1/approvals/${id}/approve`, {});
  await editKey("ann", (entry) => ({ ...entry, disabled: true }));
  expect(await run.ask(1)).toMatchObject({ decision: "allow" });
});
