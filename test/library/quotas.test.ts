/** A connected library above a quota: it still reports the calls it made, later. */
import { beforeAll, expect, it } from "vitest";
import { connect, type RemoteSvc } from "../../src/index.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const QUOTAS = `
quotas:
  - {match: {actor: slow}, requests_per_second: 1}
  - {match: {tenant: acme}, waiting: 1}
`;
const POLICY =
  "version: 1\nrules:\n  - {id: m, match: {tool: mail.send}, action: require_approval, reason: a}\n";

let s: TestServer;
/** Done when a request was refused with 429. */
let onRefused: () => unknown = () => {};
let url = "";
beforeAll(async () => {
  s = await testServer({
    policy: POLICY,
    config: QUOTAS,
    keys: [
      { name: "slow", role: "agent", self_rollback: true },
      { name: "waits", role: "agent", tenant: "acme" },
      { name: "waits-too", role: "agent", tenant: "acme" },
    ],
  });
  const quotas = s.app.quotas!;
  for (const method of ["admit", "hold"] as const) {
    const counted = quotas[method].bind(quotas) as (...args: unknown[]) => never;
    quotas[method] = (...args: unknown[]) => {
      try {
        return counted(...args);
      } catch (error) {
        void onRefused();
        throw error;
      }
    };
  }
  url = await s.http.listen({ host: "127.0.0.1", port: 0 });
});

async function connected<T>(key: string, work: (svc: RemoteSvc) => Promise<T>): Promise<T> {
  const svc = await connect({ url, key });
  try {
    return await work(svc);
  } finally {
    await svc.close();
  }
}

it("tells the outcome of a call that was made, and rolls back, when the server has time again", async () => {
  verifies("beyond.library.busy");
  let refused = 0;
  onRefused = () => {
    refused++;
    return s.env.advance(1_000);
  };
  await connected("slow", async (svc) => {
    const run = await svc.run({ permissions: ["crm.write"] });
    await s.env.advance(1_000);
    const create = { tool: "crm.create", args: {}, reason: "r" };
    expect(await run.call(create, () => ({ id: 1 }))).toEqual({ id: 1 });
    expect(refused).toBe(1);
    const shown = await s.call("auditor", "GET", `/v1/runs/${run.run_id}`);
    expect(shown.body.steps).toMatchObject([{ status: "succeeded" }]);
    // Nothing was requested, so no report is missing: the caller gets the error at once.
    await expect(run.intent(create)).rejects.toMatchObject({ code: "too_many", retry_after_s: 1 });
    const report = await run.rollback({ compensator: async () => {} });
    expect(report).toMatchObject({ compensated: [0], complete: true });
  });
});

it("continues to wait for a person where too many wait already", async () => {
  verifies("beyond.library.busy");
  const send = { tool: "mail.send", args: {}, reason: "r" };
  const ids: string[] = [];
  await connected("waits-too", async (other) => {
    const first = await (await other.run({ permissions: ["mail.send"] })).intent(send);
    ids.push(/apr_[0-9a-f-]{36}/.exec(JSON.stringify(first))![0]);
  });
  const held = s.call("waits-too", "GET", `/v1/approvals/${ids[0]}?wait=60`);
  await connected("waits", async (svc) => {
    const run = await svc.run({ permissions: ["mail.send"] });
    onRefused = async () => {
      const { body } = await s.call("approver", "GET", "/v1/approvals");
      for (const { id, status } of body.approvals)
        if (status === "pending") await s.call("approver", "POST", `/v1/approvals/${id}/approve`, {});
    };
    expect(await run.call(send, () => "sent", { wait_for_approval: "1m" })).toBe("sent");
  });
  expect((await held).body).toMatchObject({ id: ids[0], status: "approved" });
});
