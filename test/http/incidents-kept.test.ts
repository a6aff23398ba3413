/** Incidents between tenants, under retention and holds, over a restart, and conflicts that workers meet. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openFilesStore } from "../../src/store/files/store.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const ROLES = ["agent", "auditor", "operator", "admin"];
const bound = ["acme", "globex"].flatMap((tenant) =>
  ROLES.map((role) => ({ name: `${tenant}-${role}`, role, tenant, tenant_only: true })),
);
const DAY = 86_400_000;
const list = async (s: TestServer, key = "auditor") =>
  (await s.call(key, "GET", "/v1/incidents")).body.incidents;

describe("tenants", () => {
  it("see their own incidents alone", async () => {
    verifies("beyond.incidents.tenant", "beyond.incidents.tenant-causes");
    const s = await testServer({ keys: bound });
    for (const tenant of ["acme", "globex"])
      await s.call(`${tenant}-admin`, "POST", "/v1/halt", { reason: tenant, actor: `${tenant}-agent` });
    const [acme] = await list(s, "acme-auditor");
    expect(await list(s, "acme-auditor")).toHaveLength(1);
    expect(acme).toMatchObject({ tenant: "acme", actor: "acme-agent", left: 1 });
    expect(await list(s)).toHaveLength(2);
    const foreign = `/v1/incidents/${acme.id}`;
    for (const [method, path, body] of [
      ["GET", foreign, undefined],
      ["GET", `${foreign}?format=pdf`, undefined],
      ["POST", `${foreign}/notes`, { text: "n" }],
      ["POST", `${foreign}/assign`, { to: "me" }],
      ["POST", `${foreign}/close`, { reason: "mine" }],
    ] as const)
      expect([path, (await s.call("globex-admin", method, path, body)).status]).toEqual([path, 404]);
    expect((await s.call("acme-operator", "POST", `${foreign}/notes`, { text: "ours" })).status).toBe(201);
  });

  it("do not see a halt of the whole service, and do not end its incident", async () => {
    verifies("beyond.incidents.tenant-causes");
    const s = await testServer({ keys: bound });
    for (const tool of ["a.b", "c.d", "e.f"])
      await s.call("admin", "POST", "/v1/halt", { reason: "hush-9", actor: "acme-agent", tool });
    const [seen] = await list(s, "acme-auditor");
    expect(seen).toMatchObject({ status: "open", causes: [], left: 0, tenant: "acme" });
    const report = await s.call("acme-auditor", "GET", `/v1/incidents/${seen.id}`);
    expect(report.text).not.toContain("hush-9");
    const early = await s.call("acme-operator", "POST", `/v1/incidents/${seen.id}/close`, {});
    expect(early).toMatchObject({
      status: 400,
      body: { error: "reason: the service has tasks left; give a reason to close it" },
    });
    expect((await list(s))[0]).toMatchObject({ status: "open", left: 3 });
  });
});

describe("retention", () => {
  const POLICY = "version: 1\nretention: {default_days: 30}\n";
  async function closedIncident(s: TestServer) {
    for (const run_id of ["r1", "r2"]) {
      await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
      const intent = { tool: "crm.get", args: {}, reason: "r" };
      await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, intent);
      await s.call("agent", "POST", `/v1/runs/${run_id}/steps/0/outcome`, { status: "succeeded" });
    }
    await s.call("admin", "POST", "/v1/halt", { reason: "stop", actor: "agent" });
    const [{ id, runs }] = await list(s);
    expect(runs).toEqual(["r1", "r2"]);
    await s.call("operator", "POST", `/v1/incidents/${id}/notes`, { text: "seen" });
    await s.call("operator", "POST", `/v1/incidents/${id}/close`, { reason: "done" });
    await s.env.advance(40 * DAY);
    return id;
  }
  const apply = (s: TestServer) => s.call("admin", "POST", "/v1/retention/apply", {});

  it("deletes an incident with the last run that it names", async () => {
    verifies("beyond.incidents.retention");
    const s = await testServer({ policy: POLICY });
    const id = await closedIncident(s);
    expect((await apply(s)).body.deleted).toEqual(["r1", "r2"]);
    expect((await s.call("auditor", "GET", `/v1/incidents/${id}`)).status).toBe(404);
    for (const table of ["incidents", "incident_causes", "incident_entries"] as const)
      expect([table, await s.app.core.store.count(table)]).toEqual([table, 0]);
  });

  it("a hold keeps it and its notes, and it names the held run alone", async () => {
    verifies("beyond.incidents.hold");
    const s = await testServer({ policy: POLICY });
    const id = await closedIncident(s);
    const hold = (await s.call("admin", "POST", "/v1/holds", { run_id: "r2", reason: "lawsuit" })).body;
    await apply(s);
    const kept = (await s.call("auditor", "GET", `/v1/incidents/${id}`)).body;
    expect(kept).toMatchObject({ runs: ["r2"], notes: [{ text: "seen" }, { kind: "closed" }] });
    await s.call("admin", "DELETE", `/v1/holds/${hold.id}`);
    await apply(s);
    expect((await s.call("auditor", "GET", `/v1/incidents/${id}`)).status).toBe(404);
  });

  it("deletes an incident without a run when it is old, unless a hold covers its agent", async () => {
    verifies("beyond.incidents.retention", "beyond.incidents.hold");
    const s = await testServer({ policy: POLICY });
    await s.call("admin", "POST", "/v1/halt", { reason: "stop", actor: "ghost" });
    const [{ id }] = await list(s);
    await s.call("operator", "POST", `/v1/incidents/${id}/close`, { reason: "done" });
    await apply(s);
    expect(await list(s)).toHaveLength(1);
    await s.env.advance(31 * DAY);
    const hold = (await s.call("admin", "POST", "/v1/holds", { actor: "ghost", reason: "lawsuit" })).body;
    await apply(s);
    expect(await list(s)).toHaveLength(1);
    await s.call("admin", "DELETE", `/v1/holds/${hold.id}`);
    await apply(s);
    expect(await list(s)).toEqual([]);
  });
});

it.each([
  ["files", openFilesStore],
  ["sqlite", openSqliteStore],
] as const)(
  "survives a restart of the %s store, and stays the one open incident",
  async (kind, openStore) => {
    verifies("beyond.incidents.restart", "beyond.incidents.one-open");
    const folder = join(tempDir("incidents"), kind);
    mkdirSync(folder);
    const s = await testServer({ store: await openStore(folder, () => {}) });
    await s.call("admin", "POST", "/v1/halt", { reason: "one", actor: "agent" });
    const [{ id }] = await list(s);
    await s.call("operator", "POST", `/v1/incidents/${id}/notes`, { text: "before" });
    await s.http.close();
    await s.app.close();
    const again = await testServer({ store: await openStore(folder, () => {}) });
    // The seeded clock and ids begin again: the second halt needs its own id.
    for (let i = 0; i < 20; i++) again.env.uuid();
    await again.call("admin", "POST", "/v1/halt", { reason: "two", actor: "agent" });
    expect(await list(again)).toEqual([
      expect.objectContaining({
        id,
        status: "open",
        left: 2,
        causes: [expect.anything(), expect.anything()],
      }),
    ]);
    expect((await again.call("auditor", "GET", `/v1/incidents/${id}`)).body.notes).toEqual([
      expect.objectContaining({ text: "before", by: "operator" }),
    ]);
  },
);
