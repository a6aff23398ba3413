/** What a credential may is read when it matters: at each intent, after a wait, behind a slow body, in a job. */
import { request } from "node:http";
import { beforeEach, describe, expect, it } from "vitest";
import type { KeyFields } from "../../src/auth/key-manager.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { until } from "../gateway/support/gateway.ts";
import { type TestServer, testServer } from "../support/server.ts";

const POLICY = `
version: 1
rules: [{id: mails, match: {tool: mail.send}, action: require_approval, reason: a person must see it}]
`;
let s: TestServer;
beforeEach(async () => {
  s = await testServer({ policy: POLICY });
});

async function change(name: string, fields: KeyFields): Promise<void> {
  const keys = s.app.keys!;
  const { index, fingerprint } = (await keys.list()).find((key) => key.name === name)!;
  await keys.patch(index, fields, fingerprint);
}
const open = (body: object) =>
  s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.write", "mail.send"], ...body });
const ask = async (tool: string) =>
  (await s.call("agent", "POST", "/v1/runs/r/intents", { tool, args: {}, reason: "r" })).body;

describe("an intent", () => {
  it("is held to what the key may request now, in a run that was opened with more", async () => {
    await open({});
    expect(await ask("crm.create")).toMatchObject({ decision: "allow" });
    await change("agent", { max_permissions: ["mail.*"] });
    expect(await ask("crm.create")).toEqual({
      decision: "block",
      reasons: ["permission crm.write exceeds the current max_permissions of this key"],
    });
    // The run itself is as it was: what it is for does not change with its key.
    expect((await s.call("agent", "GET", "/v1/runs/r")).body.scope.permissions).toContain("crm.write");
    await change("agent", { max_permissions: ["crm.{read,write}"] });
    expect(await ask("crm.create")).toMatchObject({ decision: "allow" });
  });

  it.each(["observe", "advise"])("in %s mode needs a key that may still do that", async (mode) => {
    await open({ mode });
    expect(await ask("mail.send")).toMatchObject({ decision: "would_block" });
    await change("agent", { allow_observe: false });
    expect(await ask("mail.send")).toMatchObject({
      decision: "block",
      reasons: expect.arrayContaining([`mode ${mode} needs a key with allow_observe`]),
    });
  });
});

describe("a reader who waits for a decision", () => {
  it.each([
    ["its key is disabled", { disabled: true }, 401],
    ["it may no longer read the requests of others", { roles: ["agent"] }, 404],
    ["nothing changed for it", { groups: ["g"] }, 200],
  ] as const)("is answered by what it may then: %s", async (_name, fields, status) => {
    await open({});
    const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask("mail.send")))![0];
    const waiting = s.call("auditor", "GET", `/v1/approvals/${id}?wait=60`);
    await change("auditor", fields as KeyFields);
    await s.call("approver", "POST", `/v1/approvals/${id}/approve`);
    expect((await waiting).status).toBe(status);
  });
});

describe("a request whose body takes its time", () => {
  it("is carried out with the authority of its end, not of its beginning", async () => {
    await s.http.listen({ host: "127.0.0.1", port: 0 });
    const { port } = s.http.server.address() as { port: number };
    const slow = (key: string, path: string, more: Record<string, string> = {}) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json", ...more };
      const sent = request({ port, method: "POST", path, headers });
      sent.write('{"reason":');
      const status = new Promise<number>((resolve, reject) => {
        sent.once("error", reject);
        sent.once("response", (response) => resolve(response.resume().statusCode!));
      });
      return { end: (rest = '"x"}') => sent.end(rest), status };
    };
    await s.call("admin", "POST", "/v1/keys", { name: "second", role: "admin" });
    await open({});
    const call = '"x","tool":"crm.create","args":{}}';
    const length = { "content-length": String('{"reason":'.length + call.length) };
    const [before, after] = [slow("admin", "/v1/halt"), slow("admin", "/v1/halt")];
    const intent = slow("agent", "/v1/runs/r/intents", length);
    before.end();
    expect(await before.status).toBe(201);
    await change("agent", { disabled: true });
    await change("admin", { roles: ["operator"] });
    // Both have been accepted by now: the server has answered the requests after them.
    const begun = performance.now();
    await until(() => performance.now() - begun > 2 * SERVICE_LIMITS.look_again_ms, "some time has passed");
    after.end();
    expect(await after.status).toBe(403);
    intent.end(call);
    expect(await intent.status).toBe(401);
  });
});

describe("a rollback job", () => {
  it("stops before the next step when its starter no longer may, and another continues", async () => {
    await open({});
    for (let step = 0; step < 2; step++) {
      await ask("crm.create");
      await s.call("agent", "POST", `/v1/runs/r/steps/${step}/outcome`, {
        status: "succeeded",
        result: { id: step },
      });
    }
    let demote = true;
    s.app.jobTools = {
      today: s.app.today,
      compensator: async () => {
        if (demote) await change("operator", { roles: ["auditor"] });
        demote = false;
        return {};
      },
    };
    const job = async () => (await s.call("auditor", "GET", "/v1/runs/r/rollback")).body.job;
    const start = (key: string) => s.call(key, "POST", "/v1/runs/r/rollback", { confirm: true });
    expect((await start("operator")).status).toBe(202);
    await until(async () => (await job()).state !== "running", "the job has ended");
    expect(await job()).toMatchObject({ state: "failed", error: expect.stringContaining("can no longer") });
    const { steps } = (await s.call("auditor", "GET", "/v1/runs/r")).body;
    expect(steps.map(({ status }: { status: string }) => status)).toEqual(["succeeded", "compensated"]);
    expect((await start("operator")).status).toBe(403);
    expect((await start("admin")).status).toBe(202);
    await until(async () => (await job()).state === "done", "the second job is done");
    expect((await job()).report).toMatchObject({ compensated: [0], complete: true });
  });
});
