import { createHmac } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { aMoment } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: a person must see it}
`;
const SECRET = "chat-secret";
let s: TestServer;
beforeAll(async () => {
  s = await testServer({
    policy: POLICY,
    keys: [{ name: "both", roles: ["agent", "approver"] }],
    config: `chat: {signing_secret: ${SECRET}, users: {U1: approver, U2: auditor, U3: nobody}}\n`,
  });
});
let n = 0;
async function pending(): Promise<{ run: string; id: string; again(): Promise<unknown> }> {
  const run = `run-${n++}`;
  await s.call("agent", "POST", "/v1/runs", { run_id: run, permissions: ["mail.send"] });
  const again = async () =>
    (
      await s.call("agent", "POST", `/v1/runs/${run}/intents`, {
        tool: "mail.send",
        args: { to: "secret-value", cc: 1 },
        reason: "hello",
      })
    ).body;
  const { reasons } = (await again()) as { reasons: string[] };
  const id = /request (apr_\S+) is pending an operator decision; retry after it is approved$/.exec(
    reasons.at(-1)!,
  )![1]!;
  return { run, id, again };
}

describe("approval routes", () => {
  it("show no argument name that is itself a credential, wherever names are shown", async () => {
    const named = `ghp_${"a1B2".repeat(9)}`;
    await s.call("agent", "POST", "/v1/runs", { run_id: "named", permissions: ["mail.send"] });
    const asked = await s.call("agent", "POST", "/v1/runs/named/intents", {
      tool: "mail.send",
      args: { [named]: 1, to: "x", "password=hunter22222": 2 },
      reason: "hello",
    });
    expect(asked.body.decision).toBe("block");
    const { text, body } = await s.call("auditor", "GET", "/v1/approvals?status=pending");
    const { arg_names } = body.approvals.find((one: { run_id: string }) => one.run_id === "named");
    expect(arg_names).toEqual([
      expect.stringContaining("REDACTED"),
      expect.stringContaining("REDACTED"),
      "to",
    ]);
    const kept = [text, ...(await s.app.core.store.records({ limit: 1_000 })), ...s.logged].join("\n");
    expect(kept).not.toContain(named);
    expect(kept).not.toContain("hunter22222");
  });

  it("list requests with argument names and never values", async () => {
    verifies(
      "contract.approval.fields",
      "core.approval.id-form",
      "core.approval.names-not-values",
      "core.route.approvals",
      "core.route.approvals-status",
    );
    const { id, run } = await pending();
    const { body } = await s.call("auditor", "GET", "/v1/approvals?status=pending");
    expect(Object.keys(body)).toEqual(["approvals"]);
    const found = body.approvals.find((one: { id: string }) => one.id === id);
    expect(found).toEqual({
      id,
      run_id: run,
      tool: "mail.send",
      actor: "agent",
      tenant: null,
      args_hash: expect.stringMatching(/^sha256:/),
      arg_names: ["cc", "to"],
      reason: "hello",
      rule: "mails",
      status: "pending",
      requested_ms: s.env.now(),
      expires_ms: s.env.now() + 24 * 3_600_000,
      approvers: { groups: [], quorum: 1 },
      votes: [],
      decided_by: null,
      decided_ms: null,
      note: null,
      kind: "call",
      step: null,
      escalated_ms: null,
      break_glass: false,
    });
    expect(JSON.stringify(body)).not.toContain("secret-value");
    expect((await s.call("agent", "GET", "/v1/approvals")).status).toBe(403);
    expect((await s.call("auditor", "GET", "/v1/approvals?status=odd")).status).toBe(400);
  });

  it("approve with a note, once, and the call passes once", async () => {
    verifies(
      "core.route.approve",
      "core.route.approve-note",
      "core.route.approve-403",
      "core.route.approve-decided-409",
      "core.error.409-approval",
      "core.approval.decided-by",
      "core.approval.note-optional",
      "core.approval-state.approve",
      "core.purpose.approver-decides",
    );
    const { id, again } = await pending();
    expect(await s.call("auditor", "POST", `/v1/approvals/${id}/approve`)).toMatchObject({
      status: 403,
      body: { error: "approver role required" },
    });
    const approved = await s.call("approver", "POST", `/v1/approvals/${id}/approve`, { note: "fine" });
    expect(approved).toMatchObject({
      status: 200,
      body: { status: "approved", decided_by: "approver", note: "fine" },
    });
    expect((await s.call("approver", "POST", `/v1/approvals/${id}/approve`)).status).toBe(409);
    expect((await s.call("admin", "POST", `/v1/approvals/${id}/deny`)).status).toBe(409);
    expect(await again()).toEqual({ decision: "allow", step: 0 });
    expect(await again()).toMatchObject({ decision: "block" });
    expect((await s.call("auditor", "GET", `/v1/approvals/${id}`)).body.status).toBe("consumed");
  });

  it("answer a waiting reader as soon as somebody decides", async () => {
    verifies("core.route.deny", "core.approval-state.deny");
    const { id } = await pending();
    const waiting = s.call("agent", "GET", `/v1/approvals/${id}?wait=60`);
    await aMoment();
    await s.call("approver", "POST", `/v1/approvals/${id}/deny`, { note: "no" });
    expect((await waiting).body).toMatchObject({ status: "denied", note: "no" });
    expect((await s.call("agent2", "GET", `/v1/approvals/${id}`)).status).toBe(404);
    expect((await s.call("agent", "GET", `/v1/approvals/${id}?wait=61`)).status).toBe(400);
  });

  it("break glass needs an admin and a reason", async () => {
    verifies(
      "core.route.break-glass-admin",
      "contract.http.break-glass-reason",
      "contract.http.break-glass-answer",
    );
    const { id, again } = await pending();
    const path = `/v1/approvals/${id}/break-glass`;
    expect((await s.call("operator", "POST", path, { reason: "long enough" })).status).toBe(403);
    expect((await s.call("admin", "POST", path, { reason: "short" })).status).toBe(400);
    expect((await s.call("admin", "POST", path, { reason: "the site is down" })).body).toMatchObject({
      status: "approved",
      break_glass: true,
    });
    expect(await again()).toMatchObject({ decision: "allow" });
  });

  it("pre-approve exactly one call", async () => {
    verifies("core.route.pre-approve", "contract.http.pre-approve");
    const { run } = await pending();
    const body = { tool: "mail.send", args: { to: "x" }, note: "planned", ttl: "1h" };
    const made = await s.call("approver", "POST", `/v1/runs/${run}/approvals`, body);
    expect(made).toMatchObject({
      status: 201,
      body: { status: "approved", expires_ms: s.env.now() + 3_600_000 },
    });
    const ask = (args: unknown) =>
      s.call("agent", "POST", `/v1/runs/${run}/intents`, { tool: "mail.send", args, reason: "r" });
    expect((await ask({ to: "y" })).body.decision).toBe("block");
    expect((await ask({ to: "x" })).body.decision).toBe("allow");
    expect(
      (await s.call("approver", "POST", `/v1/runs/${run}/approvals`, { ...body, ttl: "soon" })).status,
    ).toBe(400);
  });

  it("delegations delegate authority, for a time, without chains", async () => {
    verifies(
      "contract.delegation.lends",
      "contract.delegation.expiry-required",
      "contract.delegation.recorded",
      "contract.delegation.no-chains",
      "contract.http.delegations-get",
      "contract.http.delegations-post",
      "contract.http.delegations-delete",
      "core.route.delegations-read",
      "core.route.delegations-write",
    );
    const inDays = (days: number) => new Date(s.env.now() + days * 86_400_000).toISOString();
    const lend = (key: string, body: object) =>
      s.call(key, "POST", "/v1/delegations", { to: "auditor", reason: "holiday", ...body });
    expect((await lend("auditor", { expires_at: inDays(1) })).status).toBe(403);
    expect((await lend("approver", { expires_at: inDays(31) })).status).toBe(400);
    expect((await lend("approver", { expires_at: inDays(-1) })).status).toBe(400);
    const lent = await lend("approver", { tools: "mail.*", expires_at: inDays(1) });
    expect(lent).toMatchObject({
      status: 201,
      body: {
        id: expect.stringMatching(/^dlg_/),
        from: "approver",
        to: "auditor",
        tools: "mail.*",
        revoked_ms: null,
      },
    });
    expect(Object.keys(lent.body)).not.toContain("authority");
    const first = await pending();
    expect((await s.call("auditor", "POST", `/v1/approvals/${first.id}/approve`)).body).toMatchObject({
      status: "approved",
      decided_by: "auditor",
      votes: [{ by: "auditor", for: "approver" }],
    });
    expect((await lend("auditor", { to: "agent", expires_at: inDays(1) })).status).toBe(403);
    expect((await s.call("approver", "DELETE", `/v1/delegations/${lent.body.id}`)).body.revoked_ms).toBe(
      s.env.now(),
    );
    const second = await pending();
    expect((await s.call("auditor", "POST", `/v1/approvals/${second.id}/approve`)).status).toBe(403);
    expect((await s.call("auditor", "GET", "/v1/delegations")).body.delegations).toHaveLength(1);
  });
});

describe("chat actions", () => {
  const press = (
    id: string,
    more: { user?: string; at?: number; action?: string; signature?: string } = {},
  ) => {
    const payload = {
      type: "block_actions",
      user: { id: more.user ?? "U1" },
      actions: [{ action_id: more.action ?? "svc_approve", value: id }],
    };
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    const at = String(Math.floor((more.at ?? s.env.now()) / 1_000));
    const signature =
      more.signature ?? `v0=${createHmac("sha256", SECRET).update(`v0:${at}:${body}`).digest("hex")}`;
    return s.call(null, "POST", "/integrations/chat/actions", body, {
      "content-type": "application/x-www-form-urlencoded",
      "x-slack-request-timestamp": at,
      "x-slack-signature": signature,
    });
  };

  it("decide as the mapped person, once per signature", async () => {
    verifies(
      "core.route.chat-signature",
      "contract.http.chat-payload",
      "contract.http.chat-headers",
      "contract.http.chat-replay",
      "contract.http.chat-users",
    );
    const { id } = await pending();
    expect((await press(id, { user: "U2" })).status).toBe(403);
    expect((await press(id, { user: "U3" })).status).toBe(403);
    expect((await press(id, { user: "U9" })).status).toBe(403);
    expect((await press(id)).status).toBe(200);
    expect((await s.call("auditor", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
      status: "approved",
      decided_by: "approver",
    });
    expect((await press(id)).status).toBe(401);
    expect((await press(id, { at: s.env.now() + 1_000 })).status).toBe(409);
  });

  it("refuse old, early, unsigned or malformed messages", async () => {
    verifies("contract.http.chat-old");
    const { id } = await pending();
    expect((await press(id, { at: s.env.now() - 301_000 })).status).toBe(401);
    expect((await press(id, { at: s.env.now() + 301_000 })).status).toBe(401);
    for (const signature of ["", "v0=", "v0=00", `v0=${"0".repeat(64)}`])
      expect((await press(id, { signature })).status).toBe(401);
    expect((await press("nope")).status).toBe(400);
    expect((await press(id, { action: "other" })).status).toBe(400);
    const off = await testServer();
    expect(
      (
        await off.call(null, "POST", "/integrations/chat/actions", "payload=x", {
          "content-type": "application/x-www-form-urlencoded",
        })
      ).status,
    ).toBe(404);
  });
});
