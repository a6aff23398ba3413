/** Delegated authority: whose it is, that it counts once, and that it ends with the delegator's. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { localIssuer } from "../console/support/issuer.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: two must see it, approval: {quorum: 2}}
  - {id: pays, match: {tool: crm.create}, action: require_approval, reason: ops must see it, approval: {groups: [ops]}}
`;
const HOUR = 3_600_000;
let s: TestServer;
let issuer: Awaited<ReturnType<typeof localIssuer>>;
let n = 0;
beforeAll(async () => {
  issuer = await localIssuer({ now: () => Date.parse("2026-06-15T12:00:00Z") } as never);
});
afterAll(() => issuer.close());
beforeEach(async () => {
  s = await testServer({
    policy: POLICY,
    config: `oidc: {issuer: "${issuer.url}", audience: svc, role_map: {approvers: approver, watchers: auditor}}\n`,
    keys: [
      { name: "ann", role: "approver", groups: ["ops"] },
      { name: "ann-2", role: "auditor" },
      { name: "bob", role: "approver" },
      { name: "dan", role: "approver", groups: ["ops"] },
    ],
  });
});

async function pending(tool = "mail.send") {
  const run_id = `l${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["mail.send", "crm.write"] });
  const ask = async () =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool, args: {}, reason: "r" })).body;
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask()))![0];
  const vote = (key: string, verb = "approve") => s.call(key, "POST", `/v1/approvals/${id}/${verb}`);
  return { id, ask, vote };
}
const lend = async (from: string, to: string, more: object = {}) => {
  const expires_at = new Date(s.env.now() + HOUR).toISOString();
  const lent = await s.call(from, "POST", "/v1/delegations", { to, expires_at, reason: "away", ...more });
  expect(lent.status).toBe(201);
  return lent.body;
};
const listed = async (id: string) =>
  (await s.call("auditor", "GET", "/v1/delegations")).body.delegations.find(
    (one: { id: string }) => one.id === id,
  );

describe("in one request", () => {
  it("a delegator and the delegate count once, in either order", async () => {
    await lend("ann", "ann-2");
    for (const [first, second] of [
      ["ann", "ann-2"],
      ["ann-2", "ann"],
    ] as const) {
      const { vote, ask } = await pending();
      expect((await vote(first)).body).toMatchObject({ status: "pending" });
      expect(await vote(second)).toMatchObject({
        status: 409,
        body: { error: "the authority of ann already counts in this request; another approver must decide" },
      });
      expect(await ask()).toMatchObject({ decision: "block" });
      expect((await vote("bob")).body).toMatchObject({ status: "approved" });
      expect(await ask()).toMatchObject({ decision: "allow" });
    }
  });

  it("nobody counts twice by several loans", async () => {
    for (const from of ["ann", "dan"]) await lend(from, "ann-2");
    const one = await pending();
    expect((await one.vote("ann-2")).body).toMatchObject({ status: "pending" });
    expect((await one.vote("ann-2")).status).toBe(409);
    // Ann counted through her second key. Dan's delegation to her doesn't make her a second person.
    await lend("dan", "ann");
    expect((await one.vote("ann")).status).toBe(409);
    expect((await one.vote("bob")).body).toMatchObject({ status: "approved" });
  });

  it("a second delegation is used if the first delegator counts already", async () => {
    for (const from of ["ann", "dan"]) await lend(from, "ann-2");
    const { vote } = await pending();
    expect((await vote("ann")).body).toMatchObject({ status: "pending" });
    expect((await vote("ann-2")).body).toMatchObject({
      status: "approved",
      votes: [
        { by: "ann", for: null },
        { by: "ann-2", for: "dan" },
      ],
    });
  });

  it("a person who approved, or delegated to somebody who did, can still deny", async () => {
    await lend("ann", "ann-2");
    for (const key of ["ann", "ann-2"]) {
      const { vote } = await pending();
      expect((await vote("ann-2")).status).toBe(200);
      expect((await vote(key, "deny")).body).toMatchObject({ status: "denied" });
    }
  });

  it("a token and a key of one name count once", async () => {
    const { vote } = await pending();
    expect((await vote("bob")).body).toMatchObject({ status: "pending" });
    const token = await issuer.token({ sub: "bob", groups: ["approvers"] });
    expect((await vote(token)).status).toBe(409);
    expect((await vote("dan")).body).toMatchObject({ status: "approved" });
  });

  it("two votes of one delegator from an older store are not enough at use", async () => {
    const { id, ask, vote } = await pending();
    await vote("ann");
    await s.app.core.store.transact({
      needs: [["approvals", id]],
      run(tx) {
        const doc = tx.get("approvals", id)!;
        const votes = [...doc.votes, { ...doc.votes[0]!, by: "ann-2", for: "ann" }];
        const internal = { ...doc.internal, voters: [{ groups: [] }, { groups: [] }] };
        tx.put("approvals", id, { ...doc, status: "approved", votes, internal });
      },
    });
    expect(await ask()).toMatchObject({ decision: "block" });
  });
});

describe("a delegation names a principal", () => {
  const token = (sub: string) => issuer.token({ sub, groups: ["watchers"] });

  it("the key of that name, which a token of the same name is not", async () => {
    verifies("contract.delegation.lends");
    const lent = await lend("ann", "ann-2");
    expect(lent).toMatchObject({
      from: "ann",
      to: "ann-2",
      from_principal: { kind: "key", issuer: null, name: "ann" },
      to_principal: { kind: "key", issuer: null, name: "ann-2" },
      in_force: true,
    });
    const { vote } = await pending("crm.create");
    expect((await vote(await token("ann-2"))).status).toBe(403);
    expect((await vote("ann-2")).body).toMatchObject({ status: "approved" });
  });

  it("the holder of a token, if no key has the name or the delegator names it", async () => {
    expect((await lend("ann", "eve")).to_principal).toEqual({
      kind: "oidc",
      issuer: issuer.url,
      name: "eve",
    });
    const first = await pending("crm.create");
    expect((await first.vote(await token("eve"))).body).toMatchObject({ status: "approved" });
    await lend("ann", "ann-2", { to_kind: "oidc" });
    const second = await pending("crm.create");
    expect((await second.vote("ann-2")).status).toBe(403);
    expect((await second.vote(await token("ann-2"))).body).toMatchObject({ status: "approved" });
    // Somebody who gets a key of that name later gets no more than the key.
    await s.call("admin", "POST", "/v1/keys", { name: "eve", role: "auditor" });
    const { key } = (await s.call("admin", "POST", "/v1/keys", { name: "eve", role: "auditor" })).body;
    expect((await (await pending("crm.create")).vote(key)).status).toBe(403);
  });

  it("a name that only an issuer could know is refused where there is none", async () => {
    const bare = await testServer();
    const expires_at = new Date(bare.env.now() + HOUR).toISOString();
    const body = { to: "eve", to_kind: "oidc", expires_at, reason: "r" };
    expect(await bare.call("approver", "POST", "/v1/delegations", body)).toMatchObject({
      status: 400,
      body: { error: "to_kind: no OIDC issuer is configured on this server" },
    });
  });

  it("of an older store means the key of that name, for as long as a key of the delegator's works", async () => {
    const { id } = await lend("ann", "ann-2");
    await s.app.core.store.transact({
      needs: [["delegations", id]],
      run(tx) {
        const { to_id: _, ...doc } = tx.get("delegations", id)!;
        const { principal, groups } = doc.authority;
        tx.put("delegations", id, { ...doc, authority: { principal, groups } });
      },
    });
    expect(await listed(id)).toMatchObject({ to: "ann-2", to_principal: { kind: "key" }, in_force: true });
    const { vote } = await pending("crm.create");
    expect((await vote(await token("ann-2"))).status).toBe(403);
    expect((await vote("ann-2")).body).toMatchObject({ status: "approved" });
    await editKey("ann", () => null);
    expect((await (await pending("crm.create")).vote("ann-2")).status).toBe(403);
  });
});

type Entry = { name: string } & Record<string, unknown>;

/** As somebody does it by hand: null takes the entry away. */
async function editKey(name: string, change: (entry: Entry) => Entry | null): Promise<void> {
  const path = join(s.folder, "keys.json");
  const entries = JSON.parse(readFileSync(path, "utf8")) as Entry[];
  const edited = entries.flatMap((entry) => (entry.name === name ? (change(entry) ?? []) : [entry]));
  writeFileSync(path, JSON.stringify(edited));
  expect((await s.call("admin", "POST", "/v1/reload")).status).toBe(200);
}

describe("a delegation ends with its delegator's authority", () => {
  const other = { name: "ann", role: "approver", groups: ["ops"], key_sha256: sha256Hex("another of ann's") };
  const changes: [string, (entry: Entry) => Entry | null][] = [
    ["the key is disabled", (entry) => ({ ...entry, disabled: true })],
    ["the key has expired", (entry) => ({ ...entry, expires_at: "2026-06-15T11:59:59Z" })],
    ["the key is gone", () => null],
    ["the role is lost", (entry) => ({ ...entry, role: "auditor" })],
    ["the key was replaced by another of the same name", () => other],
  ];
  it.each(changes)("%s", async (_name, change) => {
    const { id } = await lend("ann", "ann-2");
    expect((await (await pending("crm.create")).vote("ann-2")).status).toBe(200);
    await editKey("ann", change);
    expect(await listed(id)).toMatchObject({ in_force: false });
    const { vote } = await pending("crm.create");
    expect((await vote("ann-2")).status).toBe(403);
    expect((await vote("dan")).status).toBe(200);
  });

  it.each(changes)("so does a vote that waits for others: %s", async (_name, change) => {
    verifies("beyond.approval.votes-stand");
    await lend("ann", "ann-2");
    const [own, lent] = [await pending(), await pending()];
    expect((await own.vote("ann")).body).toMatchObject({ status: "pending" });
    expect((await lent.vote("ann-2")).body).toMatchObject({ status: "pending" });
    await editKey("ann", change);
    for (const { vote, ask } of [own, lent]) {
      expect((await vote("bob")).body).toMatchObject({ status: "pending" });
      expect(await ask()).toMatchObject({ decision: "block" });
      expect((await vote("dan")).body).toMatchObject({ status: "approved" });
      expect(await ask()).toMatchObject({ decision: "allow" });
    }
  });

  it("and a person who gets the role back votes again", async () => {
    verifies("beyond.approval.votes-stand");
    const { vote } = await pending();
    await vote("bob");
    await editKey("bob", (entry) => ({ ...entry, key_sha256: sha256Hex("bobs-next-key") }));
    expect((await vote("bobs-next-key")).body).toMatchObject({ status: "pending" });
    expect((await vote("dan")).body).toMatchObject({ status: "approved" });
  });

  it("and delegates no group that its delegator has lost or got since", async () => {
    const lent = await lend("ann", "ann-2");
    await editKey("ann", (entry) => ({ ...entry, groups: [] }));
    expect((await (await pending("crm.create")).vote("ann-2")).status).toBe(403);
    // What asks for no group can still be decided.
    expect((await (await pending()).vote("ann-2")).status).toBe(200);
    await s.call("ann", "DELETE", `/v1/delegations/${lent.id}`);
    await lend("bob", "ann-2");
    await editKey("bob", (entry) => ({ ...entry, groups: ["ops"] }));
    expect((await (await pending("crm.create")).vote("ann-2")).status).toBe(403);
  });
});
