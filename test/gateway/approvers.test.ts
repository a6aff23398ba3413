/** The gateway verifies signed approvals itself, regardless of its service's decision. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { dispatchOperation } from "../../src/operations/pipeline/dispatch.ts";
import type { ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { openChallenge } from "../../src/operations/signing/challenges.ts";
import { addPasskey, passkeyOptions } from "../../src/operations/signing/passkeys.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { SoftPasskey } from "../support/passkeys.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { call, fakeUpstream, type GatewayTest, testGateway } from "./support/gateway.ts";

const AT = "https://svc.example.com";
const soft = new SoftPasskey(AT);
const file = join(tempDir("gateway-approvers"), "approvers.json");
const store = new MemoryStore();
let g: GatewayTest;

beforeAll(async () => {
  writeFileSync(
    file,
    JSON.stringify({
      version: 1,
      ledger: "example.com/ledger",
      rp_id: "svc.example.com",
      origins: [AT],
      approvers: [{ name: "approver", groups: [], keys: [soft.entry()] }],
      require: [{ tool: "{create,delete}", groups: [], quorum: 1 }],
    }),
  );
  g = await testGateway({
    upstreams: [fakeUpstream()],
    store,
    policy:
      "version: 1\nrules:\n  - {id: all, match: {tool: create}, action: require_approval, approval: {signed: true}}\n",
    config: {
      approvers: file,
      console_url: AT,
      ledger_origin: "example.com/ledger",
      passkeys: { enrol: "self" },
    },
  });
  const options = await as("approver", passkeyOptions, {});
  const response = soft.create(options as { challenge: string });
  await as("approver", addPasskey, { response });
});

/** Performs an operation of the gateway's own service as the holder of a key. */
async function as(key: string, op: object, input: object): Promise<unknown> {
  const principal = await g.service.auth.authenticate(`Bearer ${key}`);
  const caller = { app: g.service, principal, signal: new AbortController().signal };
  return dispatchOperation(op as ServiceOperation, caller, input);
}
const requestIn = (said: unknown) => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(said))![0];

it("forwards a call that its approver signed, and undoes nothing unsigned", async () => {
  verifies("beyond.approvers.gateway", "beyond.approvers.undo");
  const agent = await g.connect("agent");
  const approval_id = requestIn(await call(agent, "create", { name: "x" }));
  const asked = await as("approver", openChallenge, {
    kind: "approval",
    id: approval_id,
    decision: "approve",
  });
  await as("approver", approveRequest, {
    approval_id,
    signature: soft.sign(asked as { payload: object }),
  });
  const made = JSON.stringify(await call(agent, "create", { name: "x" }));
  expect(made).not.toContain("requires signatures");
  expect(made).toContain("svc/step");
  const run_id = /"svc\/run_id":"([^"]+)"/.exec(made)![1]!;
  const operator = await g.connect("operator", { path: "/operator/mcp" });
  const undone = JSON.stringify(await call(operator, "svc.execute_rollback", { run_id, confirm: true }));
  expect(undone).toContain("requires signatures");
});

it("forwards no call for an approval that nobody gave", async () => {
  verifies("beyond.approvers.forging-gateway");
  const agent = await g.connect("agent2");
  const id = requestIn(await call(agent, "create", { name: "y" }));
  // Somebody with the database writes the approval themselves.
  await store.transact({
    run(tx) {
      const found = tx.get("approvals", id)!;
      const signature = {
        payload: {
          v: 1 as const,
          kind: "approval" as const,
          decision: "approve",
          by: "approver",
          nonce: "n",
          policy_hash: g.service.core.rules().policy.hash,
        },
        assertion: { ...soft.assert("AAAA"), type: "public-key" as const },
        key: soft.entry(),
      };
      tx.put("approvals", id, {
        ...found,
        status: "approved",
        votes: [{ by: "approver", decision: "approve", note: null, at_ms: 1, for: null }],
        decided_by: "approver",
        decided_ms: 1,
        internal: {
          ...found.internal,
          voters: [{ groups: [], signed: g.service.core.rules().policy.hash }],
          signatures: [signature],
        },
      });
    },
  });
  const said = JSON.stringify(await call(agent, "create", { name: "y" }));
  expect(said).toContain("create was not called: the approvers file requires signatures");
  // Or they change the policy, so that the service allows everything.
  writeFileSync(join(g.folder, "policy.yaml"), "version: 1\n");
  await g.service.reload();
  const plain = JSON.stringify(await call(agent, "create", { name: "z" }));
  expect(plain).toContain("create was not called");
  expect(await g.events()).toContain("failed");
  expect(JSON.stringify(await call(agent, "echo", { text: "hi" }))).not.toContain("was not called");
});

it("does not start without the file", async () => {
  verifies("beyond.approvers.missing");
  const starting = testGateway({ config: { approvers: join(tempDir("none"), "missing.json") } });
  await expect(starting).rejects.toThrow("does not exist");
});
