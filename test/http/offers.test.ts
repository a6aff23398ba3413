/** Denying with an offer, and taking one's own question back. */
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connectToServer as connect } from "../../src/library/connect.ts";
import { BlockedError } from "../../src/library/errors.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: pay.out, effect: irreversible, permission: pay, audit: {redaction: [$args.iban]}}
- tool: make
  effect: compensable
  permission: pay
  compensation: {tool: unmake, args: {id: $args.id}, requires_approval: true}
`;
const POLICY = `
version: 1
rules:
  - {id: pays, match: {tool: pay.out}, action: require_approval, reason: look first}
  - {id: big, match: {tool: pay.out}, when: [{path: $args.amount, op: gte, value: 500}], action: require_approval, reason: two look, approval: {quorum: 2}}
  - {id: legal, match: {tool: pay.out}, when: [{path: $args.amount, op: eq, value: 77}], action: require_approval, reason: legal looks, approval: {groups: [legal]}}
  - {id: huge, match: {tool: pay.out}, when: [{path: $args.amount, op: gt, value: 9000}], action: deny, reason: never that much}
approvals: {ttl: 4h}
`;
let s: TestServer;
let url = "";
let n = 0;
beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [
      { name: "ann", role: "approver" },
      { name: "bob", role: "approver" },
    ],
  });
  await s.http.listen({ port: 0, host: "127.0.0.1" });
  url = `http://127.0.0.1:${(s.http.server.address() as AddressInfo).port}`;
  afterAll(() => s.http.close());
});

const idIn = (body: unknown) => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];

async function asked(args: object = { amount: 100, iban: "canary-iban" }) {
  const run_id = `offer${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  const ask = async (args: object) =>
    (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { tool: "pay.out", args, reason: "r" }))
      .body;
  const id = idIn(await ask(args));
  const deny = (key: string, offered: object, more: object = {}) =>
    s.call(key, "POST", `/v1/approvals/${id}/deny`, { offer: { args: offered }, ...more });
  const read = async (key: string, which = id) => (await s.call(key, "GET", `/v1/approvals/${which}`)).body;
  const details = async () =>
    (await s.call("auditor", "GET", `/v1/search/records?run_id=${run_id}`)).body.records.map(
      (one: { event: string; actor: string; detail: string }) => `${one.event} ${one.actor} ${one.detail}`,
    );
  return { run_id, id, ask, deny, read, details };
}

describe("an offer", () => {
  it("denies the call and lets the offered one through, once", async () => {
    verifies("beyond.offer.made", "beyond.offer.ttl", "beyond.offer.found", "beyond.offer.hidden");
    const one = await asked();
    const offered = { amount: 60, iban: "canary-iban" };
    const denied = await one.deny("ann", offered, { note: "too much" });
    expect(denied).toMatchObject({ status: 200, body: { status: "denied", note: "too much" } });
    const { offer } = await one.read("agent");
    expect(offer).toEqual({ approval_id: idIn(offer), args: offered });
    // Deciders see it as on a card, others not at all, and no listing has it.
    expect((await one.read("bob")).offer).toEqual({
      approval_id: offer.approval_id,
      args: { amount: 60, iban: "[REDACTED]" },
    });
    expect((await one.read("auditor")).offer).toBeUndefined();
    for (const path of ["/v1/approvals", "/v1/search/records"])
      expect((await s.call("admin", "GET", path)).text).not.toContain("canary-iban");
    const standing = await one.read("agent", offer.approval_id);
    expect(standing).toMatchObject({ status: "approved", decided_by: "ann", tool: "pay.out" });
    expect(standing.expires_ms - standing.requested_ms).toBe(4 * 3_600_000);
    expect(await one.details()).toEqual(
      expect.arrayContaining([
        `denied ann request ${one.id}: too much`,
        `approved ann pre-approved: offered instead of request ${one.id}`,
      ]),
    );
    expect((await one.ask(offered)).decision).toBe("allow");
    expect((await one.ask(offered)).decision).toBe("block");
    expect((await one.read("agent")).offer).toEqual({ approval_id: offer.approval_id, args: null });
    expect(await s.app.core.store.get("approval_values", offer.approval_id)).toBeUndefined();
  });

  it("is in the error that the library throws for the repeated call", async () => {
    verifies("beyond.offer.found", "beyond.withdraw.surfaces");
    const svc = await connect({ url, key: "agent" });
    const run = await svc.run({ permissions: ["pay"] });
    const call = (amount: number) =>
      run
        .call({ tool: "pay.out", args: { amount }, reason: "r" }, () => "done")
        .catch((error: unknown) => error);
    const first = (await call(300)) as BlockedError;
    expect(first).toMatchObject({ offer: null, approval_id: expect.any(String) });
    await s.call("ann", "POST", `/v1/approvals/${first.approval_id}/deny`, {
      offer: { args: { amount: 20 } },
    });
    const second = (await call(300)) as BlockedError;
    expect(second).toBeInstanceOf(BlockedError);
    expect(second.offer).toEqual({ approval_id: expect.any(String), args: { amount: 20 } });
    expect(await run.withdraw(second.approval_id!)).toMatchObject({ status: "expired", note: "withdrawn" });
    expect(await call(20)).toBe("done");
    expect(((await call(300)) as BlockedError).offer).toBeNull();
    await svc.close();
  });

  it("is one vote of its giver, under what the offered arguments ask for", async () => {
    verifies("beyond.offer.one-vote");
    const one = await asked();
    await one.deny("ann", { amount: 600 });
    const { offer } = await one.read("agent");
    expect(await one.read("agent", offer.approval_id)).toMatchObject({
      status: "pending",
      approvers: { quorum: 2 },
    });
    expect((await one.ask({ amount: 600 })).decision).toBe("block");
    expect((await s.call("ann", "POST", `/v1/approvals/${offer.approval_id}/approve`, {})).status).toBe(409);
    await s.call("bob", "POST", `/v1/approvals/${offer.approval_id}/approve`, {});
    expect((await one.ask({ amount: 600 })).decision).toBe("allow");
  });

  it("is refused where its giver could not approve it, and then nothing is decided", async () => {
    verifies("beyond.offer.one-vote", "beyond.offer.refused");
    const one = await asked();
    const refusals: [object, number, RegExp][] = [
      [{ amount: 77 }, 403, /for members of legal/],
      [{ amount: 100, iban: "canary-iban" }, 400, /approve it instead/],
      [{ amount: 10_000 }, 400, /never that much/],
      [{ amount: 1, key: "ghp_0123456789abcdefghijABCDEFGHIJ456789" }, 400, /contain a credential/],
      [{ amount: 1, iban: "[REDACTED]" }, 400, /^offer\.args\.iban: the value is a mask .* real value$/],
      [{ amount: 1, to: ["a [REDACTED:github_token]"] }, 400, /^offer\.args\.to\[0\]: the value is a mask/],
    ];
    for (const [args, status, words] of refusals) {
      const refused = await one.deny("ann", args);
      expect([refused.status, refused.body.error]).toEqual([status, expect.stringMatching(words)]);
    }
    expect((await s.call("ann", "POST", `/v1/approvals/${one.id}/deny`, { offer: {} })).status).toBe(400);
    const waiting = idIn(await one.ask({ amount: 55 }));
    const beside = await one.deny("ann", { amount: 55 });
    expect([beside.status, beside.body.error]).toEqual([
      409,
      `offer.args: request ${waiting} already has these arguments; decide that request, and deny this one without an offer`,
    ]);
    expect(await one.read("agent")).toMatchObject({ status: "pending", votes: [] });
    expect((await one.deny("agent", { amount: 1 })).status).toBe(403);
  });
});

describe("withdrawing", () => {
  it("ends one's own open request", async () => {
    verifies("beyond.withdraw.own", "beyond.card.args-deleted");
    const one = await asked();
    const { status, body } = await s.call("agent", "POST", `/v1/approvals/${one.id}/withdraw`);
    expect([status, body.status, body.note, body.decided_by]).toEqual([200, "expired", "withdrawn", null]);
    expect(await one.details()).toContain(`approval_expired agent request ${one.id}: withdrawn`);
    expect(await s.app.core.store.get("approval_values", one.id)).toBeUndefined();
    expect(idIn(await one.ask({ amount: 100, iban: "canary-iban" }))).not.toBe(one.id);
  });

  it("is for the requester, while it is open", async () => {
    verifies("beyond.withdraw.others");
    const one = await asked();
    const by = async (key: string) => (await s.call(key, "POST", `/v1/approvals/${one.id}/withdraw`)).status;
    expect([await by("agent2"), await by("auditor"), await by("admin")]).toEqual([404, 403, 403]);
    await s.call("ann", "POST", `/v1/approvals/${one.id}/approve`, {});
    expect(await by("agent")).toBe(409);
    expect((await one.ask({ amount: 100, iban: "canary-iban" })).decision).toBe("allow");
    const unknown = "apr_00000000-0000-4000-8000-000000000000";
    expect((await s.call("agent", "POST", `/v1/approvals/${unknown}/withdraw`)).status).toBe(404);
  });

  it("leaves the request for an undo to those who undo", async () => {
    verifies("beyond.withdraw.others");
    const run_id = `undo${n++}`;
    await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
    await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
      tool: "make",
      args: { id: 1 },
      reason: "r",
    });
    await s.call("agent", "POST", `/v1/runs/${run_id}/steps/0/outcome`, { status: "succeeded" });
    const begun = await s.call("operator", "POST", `/v1/runs/${run_id}/steps/0/compensation`);
    const id = idIn(begun.body);
    expect((await s.call("agent", "POST", `/v1/approvals/${id}/withdraw`)).status).toBe(403);
    expect((await s.call("ann", "GET", `/v1/approvals/${id}/card`)).body).toMatchObject({
      sentence: "Undo step 0 with unmake",
      arguments: { id: 1 },
    });
  });
});
