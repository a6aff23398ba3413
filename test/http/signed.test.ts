/** Approvals that only the approver's passkey can make, over HTTP: every kind, and every way around. */
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { canonicalOf } from "../support/canonical.ts";
import { testServer } from "../support/server.ts";
import { LEDGER, SIGNED_POLICY, type SigningServer, signingServer } from "../support/signing.ts";
import { verifies } from "../support/verifies.ts";

let s: SigningServer;
beforeEach(async () => {
  s = await signingServer();
});
const approve = (key: string, id: string, body: object = {}) =>
  s.call(key, "POST", `/v1/approvals/${id}/approve`, body);
const ofApproval = (id: string) => ({ kind: "approval", id, decision: "approve" });
const details = async (event: string) =>
  (await s.call("auditor", "GET", `/v1/search/records?event=${event}&limit=50`)).body.records.map(
    ({ detail }: { detail: string }) => detail,
  );
const retry = async (run_id: string, call: object) =>
  (await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, { reason: "because", ...call })).body;
const needsPasskey = {
  status: 403,
  body: { error: "a passkey is required" },
  headers: { "svc-error-code": "passkey_required" },
};

describe("an approval", () => {
  it("counts only with the person's assertion over exactly this decision", async () => {
    verifies("beyond.signed.payload", "beyond.signed.required", "beyond.signed.suffix");
    await s.enrol("ann");
    const { id, run_id } = await s.ask("pay.refund", { amount: 900 });
    expect(await approve("ann", id)).toMatchObject(needsPasskey);
    const asked = await s.challenge("ann", ofApproval(id));
    const request = (await s.call("ann", "GET", `/v1/approvals/${id}`)).body;
    const card = (await s.call("ann", "GET", `/v1/approvals/${id}/card`)).body;
    expect(asked.body.payload).toEqual({
      v: 1,
      ledger: LEDGER,
      kind: "approval",
      id,
      decision: "approve",
      by: "ann",
      run_id,
      actor: "agent",
      tool: "pay.refund",
      args_hash: request.args_hash,
      card_hash: card.card_hash,
      shown_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      policy_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      expires_ms: request.expires_ms,
      nonce: expect.stringMatching(/^[\w-]{43}$/),
    });
    const signature = s.people["ann"]!.sign(asked.body);
    expect((await approve("ann", id, { signature })).body.status).toBe("approved");
    const { clientExtensionResults: _, ...kept } = signature.assertion;
    expect(await details("approved")).toEqual([`request ${id}; signed ${sha256Hex(canonicalOf(kept))}`]);
    expect(await retry(run_id, { tool: "pay.refund", args: { amount: 900 } })).toMatchObject({
      decision: "allow",
    });
  });

  it("is refused for every lie about it", async () => {
    verifies("beyond.signed.lies");
    await s.enrol("ann");
    await s.enrol("bob");
    const [ann, bob] = [s.people["ann"]!, s.people["bob"]!];
    const one = await s.ask();
    const other = await s.ask();
    const asked = (await s.challenge("ann", ofApproval(one.id))).body as { payload: Record<string, unknown> };
    const lie = (change: object) => ann.sign({ payload: { ...asked.payload, ...change } });
    const tries: [string, object][] = [
      ["ann", bob.sign(asked)],
      ["bob", ann.sign(asked)],
      ["bob", bob.sign(asked)],
      ["ann", lie({ id: other.id })],
      ["ann", lie({ tool: "pay.free" })],
      ["ann", lie({ args_hash: `sha256:${"0".repeat(64)}` })],
      ["ann", lie({ by: "bob" })],
      ["ann", lie({ nonce: "A".repeat(43) })],
      ["ann", lie({ expires_ms: 9_999_999_999_999 })],
      ["ann", ann.sign(asked, { origin: "https://svc.example.com.evil.example" })],
      ["ann", ann.sign(asked, { rp_id: "example.com" })],
      ["ann", ann.sign(asked, { flags: 0x01 })],
      ["ann", ann.sign(asked, { type: "webauthn.create" })],
      ["ann", ann.sign(asked, { cross_origin: true })],
      ["ann", { ...ann.sign(asked), payload: { ...asked.payload, decision: "deny" } }],
    ];
    for (const [key, signature] of tries) {
      const answer = await approve(key, one.id, { signature });
      expect([403, 409], JSON.stringify(signature)).toContain(answer.status);
    }
    expect([403, 409]).toContain((await approve("ann", other.id, { signature: ann.sign(asked) })).status);
    expect((await s.call("ann", "GET", `/v1/approvals/${one.id}`)).body).toMatchObject({
      status: "pending",
      votes: [],
    });
    expect(await details("approved")).toEqual([]);
  });

  it("is good once, and for five minutes", async () => {
    verifies("beyond.signed.nonce");
    await s.enrol("ann");
    const { id } = await s.ask();
    const late = await s.signed("ann", ofApproval(id));
    await s.env.advance(5 * 60_000);
    expect((await approve("ann", id, { signature: late })).status).toBe(409);
    const signature = await s.signed("ann", ofApproval(id));
    expect((await approve("ann", id, { signature })).status).toBe(200);
    expect((await approve("ann", id, { signature })).status).toBeGreaterThanOrEqual(403);
  });

  it("is a 409 once the policy changed, and an older vote no longer counts", async () => {
    verifies("beyond.signed.stale", "beyond.signed.policy-hash");
    const quorum = SIGNED_POLICY.replace("{signed: true}", "{signed: true, quorum: 2}");
    s = await signingServer({ policy: quorum });
    await s.enrol("ann");
    await s.enrol("bob");
    const { id } = await s.ask();
    const first = await approve("ann", id, { signature: await s.signed("ann", ofApproval(id)) });
    expect(first.body).toMatchObject({ status: "pending", votes: [{ by: "ann" }] });
    const old = await s.signed("bob", ofApproval(id));
    writeFileSync(
      join(s.folder, "policy.yaml"),
      `${quorum}  - {id: more, match: {tool: x.y}, action: deny}\n`,
    );
    await s.call("admin", "POST", "/v1/reload", {});
    const stale = await approve("bob", id, { signature: old });
    expect([stale.status, stale.headers["svc-error-code"]]).toEqual([409, "signature_stale"]);
    const bob = await approve("bob", id, { signature: await s.signed("bob", ofApproval(id)) });
    expect(bob.body.status).toBe("pending");
    const ann = await approve("ann", id, { signature: await s.signed("ann", ofApproval(id)) });
    expect(ann.body.status).toBe("approved");
  });

  it("needs none for a plain denial, and takes none", async () => {
    verifies("beyond.signed.denial");
    await s.enrol("ann");
    const { id } = await s.ask();
    const signature = await s.signed("ann", ofApproval(id));
    expect((await s.call("ann", "POST", `/v1/approvals/${id}/deny`, { signature })).status).toBe(400);
    expect((await s.call("ann", "POST", `/v1/approvals/${id}/deny`, {})).body.status).toBe("denied");
  });

  it("is asked for only of those who may decide, and only with an active passkey", async () => {
    verifies("beyond.signed.challenge-role");
    const { id } = await s.ask();
    expect((await s.challenge("agent", ofApproval(id))).status).toBe(403);
    expect((await s.challenge("ann", ofApproval(id))).status).toBe(403);
    await s.enrol("ann");
    expect((await s.challenge("ann", ofApproval("apr_nobody"))).status).toBe(404);
    expect((await s.challenge("ann", { kind: "king", decision: "approve" })).status).toBe(400);
    const other = await s.challenge("ann", { ...ofApproval((await s.ask()).id), decision: "grant" });
    expect([other.status, other.body]).toEqual([
      400,
      { error: 'decision: must be "approve" for the kind approval' },
    ]);
  });

  it("stays as it was for rules that ask for no signature", async () => {
    verifies("beyond.signed.off");
    const { id } = await s.ask("pay.plain");
    expect((await approve("ann", id)).body.status).toBe("approved");
    expect(await details("approved")).toEqual([`request ${id}`]);
  });
});

describe("no way around", () => {
  it("keeps break-glass to the admin's own passkey", async () => {
    verifies("beyond.signed.break-glass");
    const { id, run_id } = await s.ask("pay.refund", { amount: 1 });
    const glass = (body: object) =>
      s.call("admin", "POST", `/v1/approvals/${id}/break-glass`, { reason: "nobody else is here", ...body });
    expect(await glass({})).toMatchObject(needsPasskey);
    await s.enrol("admin");
    const wrong = await s.signed("admin", {
      kind: "break_glass",
      id,
      decision: "approve",
      body: { reason: "another reason" },
    });
    expect((await glass({ signature: wrong })).status).toBe(409);
    const body = { reason: "nobody else is here" };
    const signature = await s.signed("admin", { kind: "break_glass", id, decision: "approve", body });
    expect((await glass({ signature })).body).toMatchObject({ status: "approved", break_glass: true });
    expect((await details("approved"))[0]).toMatch(/^break-glass: nobody else is here; signed [0-9a-f]{64}$/);
    expect(await retry(run_id, { tool: "pay.refund", args: { amount: 1 } })).toMatchObject({
      decision: "allow",
    });
  });

  it("signs pre-approvals and offers, for exactly these arguments", async () => {
    verifies("beyond.signed.pre-approval", "beyond.signed.offer");
    await s.enrol("ann");
    const { id, run_id } = await s.ask("pay.refund", { amount: 900 });
    const ahead = { tool: "pay.refund", args: { amount: 5 } };
    const give = (body: object) =>
      s.call("ann", "POST", `/v1/runs/${run_id}/approvals`, { ...ahead, ...body });
    expect(await give({})).toMatchObject({ status: 403, body: { error: "a passkey is required" } });
    const other = { ...ahead, args: { amount: 6 } };
    const swapped = await s.signed("ann", {
      kind: "pre_approval",
      id: run_id,
      decision: "approve",
      body: other,
    });
    expect((await give({ signature: swapped })).status).toBe(409);
    const signature = await s.signed("ann", {
      kind: "pre_approval",
      id: run_id,
      decision: "approve",
      body: ahead,
    });
    expect(await give({ signature })).toMatchObject({ status: 201 });
    expect(await retry(run_id, ahead)).toMatchObject({ decision: "allow" });

    const offer = { args: { amount: 60 } };
    const deny = (body: object) => s.call("ann", "POST", `/v1/approvals/${id}/deny`, { offer, ...body });
    expect(await deny({})).toMatchObject(needsPasskey);
    const signed = await s.signed("ann", { kind: "offer", id, decision: "offer", body: { offer } });
    const denied = await deny({ signature: signed });
    expect(denied.body).toMatchObject({ status: "denied" });
    expect(denied.body.offer.approval_id).toBe((signed as { payload: { id: string } }).payload.id);
    expect(await retry(run_id, { tool: "pay.refund", ...offer })).toMatchObject({ decision: "allow" });
  });

  it("signs grants, which cover nothing unsigned or under another policy", async () => {
    verifies("beyond.signed.grant");
    await s.enrol("ann");
    const terms = {
      match: { tool: "pay.refund", actor: "agent" },
      rules: ["refunds"],
      max_uses: 5,
      expires_at: new Date(s.env.now() + 3_600_000).toISOString(),
      reason: "the sale",
    };
    const give = (body: object) => s.call("ann", "POST", "/v1/grants", body);
    expect(await give(terms)).toMatchObject({ status: 403, body: { error: "a passkey is required" } });
    const signature = await s.signed("ann", { kind: "grant", decision: "grant", body: terms });
    expect((await give({ ...terms, max_uses: 500, signature })).status).toBe(409);
    expect((await give({ ...terms, signature })).status).toBe(201);
    expect((await give({ ...terms, signature })).status).toBeGreaterThanOrEqual(403);
    const { id } = await s.ask();
    expect(JSON.parse(id)).toMatchObject({ decision: "allow" });
    writeFileSync(
      join(s.folder, "policy.yaml"),
      `${SIGNED_POLICY}  - {id: more, match: {tool: x.y}, action: deny}\n`,
    );
    await s.call("admin", "POST", "/v1/reload", {});
    expect((await s.ask()).id).toMatch(/^apr_/);
  });

  it("counts nothing that was given before the rule asked for signatures", async () => {
    verifies("beyond.signed.before");
    const unsigned = SIGNED_POLICY.replace(", approval: {signed: true}", "");
    s = await signingServer({ policy: unsigned });
    const { id, run_id } = await s.ask("pay.refund", { amount: 3 });
    expect((await approve("ann", id)).body.status).toBe("approved");
    const terms = {
      match: { tool: "pay.refund", actor: "agent" },
      rules: ["refunds"],
      expires_at: new Date(s.env.now() + 3_600_000).toISOString(),
      reason: "the sale",
    };
    expect((await s.call("ann", "POST", "/v1/grants", terms)).status).toBe(201);
    writeFileSync(join(s.folder, "policy.yaml"), SIGNED_POLICY);
    await s.call("admin", "POST", "/v1/reload", {});
    const call = { tool: "pay.refund", args: { amount: 3 } };
    expect(await retry(run_id, call)).toMatchObject({ decision: "block" });
  });

  it("signs delegations, and lets unsigned ones decide nothing that is signed", async () => {
    verifies("beyond.signed.delegation");
    await s.enrol("ann");
    const terms = {
      to: "bob",
      expires_at: new Date(s.env.now() + 3_600_000).toISOString(),
      reason: "away",
    };
    const lend = (body: object) => s.call("ann", "POST", "/v1/delegations", { ...terms, ...body });
    expect(await lend({})).toMatchObject({ status: 403, body: { error: "a passkey is required" } });
    const signature = await s.signed("ann", { kind: "delegation", decision: "delegate", body: terms });
    expect((await lend({ to: "operator", signature })).status).toBe(409);
    const again = await s.signed("ann", { kind: "delegation", decision: "delegate", body: terms });
    expect((await lend({ signature: again })).status).toBe(201);
  });

  it("signs plans as a whole", async () => {
    verifies("beyond.signed.plan");
    await s.enrol("ann");
    await s.call("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["pay"] });
    const calls = [{ tool: "pay.refund", args: { amount: 7 } }];
    const plan = (await s.call("agent", "POST", "/v1/runs/planned/plans", { reason: "both", calls })).body;
    const decide = (body: object) => s.call("ann", "POST", `/v1/plans/${plan.id}/approve`, body);
    expect(await decide({})).toMatchObject(needsPasskey);
    const signature = await s.signed("ann", { kind: "plan", id: plan.id, decision: "approve" });
    expect((await decide({ signature })).body.status).toBe("approved");
    expect(await retry("planned", calls[0]!)).toMatchObject({ decision: "allow" });
    expect((await details("plan_approved"))[0]).toMatch(/; signed [0-9a-f]{64}$/);
  });

  it("offers no groups", async () => {
    verifies("beyond.signed.groups");
    await s.enrol("ann");
    const { id } = await s.ask();
    const signature = await s.signed("ann", ofApproval(id));
    expect(await approve("ann", id, { signature, group_of: 2 })).toMatchObject(needsPasskey);
  });

  it("signs the approvals of undos, and refuses to approve them all at once", async () => {
    verifies("beyond.signed.compensations");
    s = await signingServer({ policy: "version: 1\napprovals: {signed: true}\n" });
    await s.enrol("ann");
    await s.call("agent", "POST", "/v1/runs", { run_id: "undo", permissions: ["pay"] });
    const { step } = await retry("undo", { tool: "pay.refund", args: { amount: 1 } });
    await s.call("agent", "POST", `/v1/runs/undo/steps/${step}/outcome`, {
      status: "succeeded",
      result: { id: 1 },
    });
    const all = { confirm: true, approve_compensations: true };
    expect(await s.call("operator", "POST", "/v1/runs/undo/rollback", all)).toMatchObject({
      status: 403,
      body: { error: "a passkey is required" },
    });
    const begin = () => s.call("operator", "POST", `/v1/runs/undo/steps/${step}/compensation`, {});
    const { id } = { id: /apr_[0-9a-f-]{36}/.exec((await begin()).text)![0] };
    expect(await approve("ann", id)).toMatchObject(needsPasskey);
    const signature = await s.signed("ann", { kind: "compensation", id, decision: "approve" });
    expect((await approve("ann", id, { signature })).body.status).toBe("approved");
    expect((await begin()).status).toBe(200);
  });

  it("answers chat with the page to sign at", async () => {
    verifies("beyond.signed.chat");
    s = await signingServer({ config: "chat: {signing_secret: shh, users: {U1: ann}}\n" });
    const { id } = await s.ask();
    const actions = [{ action_id: "svc_approve", value: id }];
    const payload = JSON.stringify({ type: "block_actions", user: { id: "U1" }, actions });
    const body = new URLSearchParams({ payload }).toString();
    const at = String(Math.floor(s.env.now() / 1_000));
    const mac = createHmac("sha256", "shh").update(`v0:${at}:${body}`).digest("hex");
    const answer = await s.http.inject({
      method: "POST",
      url: "/integrations/chat/actions",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": at,
        "x-slack-signature": `v0=${mac}`,
      },
      payload: body,
    });
    expect(JSON.parse(answer.body)).toEqual({
      text: `a passkey is required: https://svc.example.com/console/approvals/${id}`,
    });
  });

  it("needs a name of the ledger", async () => {
    verifies("beyond.signed.ledger-origin");
    await expect(testServer({ policy: SIGNED_POLICY })).rejects.toThrow(
      "signed approvals need ledger_origin",
    );
  });
});

it("is signed at approve_url too, and nowhere else below the relying party", async () => {
  verifies("beyond.signed.approve-url");
  const own = "https://phone.svc.example.com";
  const at = await signingServer({ config: `approve_url: ${own}\n` });
  const soft = await at.enrol("ann");
  const { id } = await at.ask();
  const asked = (await at.challenge("ann", ofApproval(id))).body;
  const send = (origin: string) =>
    at.call("ann", "POST", `/v1/approvals/${id}/approve`, { signature: soft.sign(asked, { origin }) });
  for (const origin of [
    "https://other.svc.example.com",
    `${own}.example.org`,
    "http://phone.svc.example.com",
  ])
    expect([origin, (await send(origin)).status]).toEqual([origin, 403]);
  expect((await send(own)).body.status).toBe("approved");
  for (const [url, problem] of [
    ["http://phone.svc.example.com", "must be https"],
    ["https://example.com", "on the host of passkeys.rp_id or below it"],
    ["https://notsvc.example.com", "on the host of passkeys.rp_id or below it"],
    ["https://svc.example.com.example.org", "on the host of passkeys.rp_id or below it"],
  ] as const)
    await expect(signingServer({ config: `approve_url: ${url}\n` })).rejects.toThrow(problem);
});

it("compares a policy that removes `signed` as looser", async () => {
  verifies("beyond.signed.looser");
  s = await signingServer();
  const diff = async (a: string, b: string) =>
    (await s.call("operator", "POST", "/v1/policy/diff", { a, b })).body;
  const plain = SIGNED_POLICY.replace(", approval: {signed: true}", "");
  expect((await diff(SIGNED_POLICY, plain)).looser.length).toBeGreaterThan(0);
  expect((await diff(plain, SIGNED_POLICY)).looser).toEqual([]);
  const all = `${plain}approvals: {signed: true}\n`;
  expect((await diff(all, plain)).looser.length).toBeGreaterThan(0);
  expect((await diff(SIGNED_POLICY, all)).looser).toEqual([]);
});
