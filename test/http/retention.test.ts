import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: crm.keep, effect: read, permission: p, audit: {retention_days: 90}}
- {tool: crm.prove, effect: read, permission: p, audit: {evidence_export: required}}
`;
const POLICY = `
version: 1
retention:
  default_days: 30
  rules:
    - {match: {tool: "crm.k*"}, days: 60}
`;
const DAY = 86_400_000;

let s: TestServer;
const signing = join(tempDir("key"), "sign.key");
writeFileSync(signing, newKeyPair().private_pem, { mode: 0o600 });
beforeEach(async () => {
  s = await testServer({ manifests: MANIFESTS, policy: POLICY, config: `signing_key: ${signing}\n` });
});

async function run(id: string, tool: string): Promise<void> {
  await s.call("agent", "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
  await s.call("agent", "POST", `/v1/runs/${id}/intents`, { tool, args: { secret: "canary" }, reason: "r" });
  await s.call("agent", "POST", `/v1/runs/${id}/steps/0/outcome`, { status: "succeeded" });
}
const plan = async () => (await s.call("auditor", "GET", "/v1/retention/plan")).body.runs;
const apply = async (body: object = {}) => (await s.call("admin", "POST", "/v1/retention/apply", body)).body;

it(`what retention, holds and delegations list is paged ${verifies("contract.http.lists-paged")}`, async () => {
  for (const id of ["a", "b", "c"]) {
    await run(id, "crm.get");
    expect((await s.call("admin", "POST", "/v1/holds", { run_id: id, reason: "lawsuit" })).status).toBe(201);
    const lent = {
      to: "auditor",
      expires_at: new Date(s.env.now() + DAY).toISOString(),
      reason: `away ${id}`,
    };
    expect((await s.call("approver", "POST", "/v1/delegations", lent)).status).toBe(201);
  }
  for (const [path, list, id] of [
    ["/v1/retention/plan", "runs", "run_id"],
    ["/v1/holds", "holds", "id"],
    ["/v1/delegations", "delegations", "id"],
  ] as const) {
    const whole = (await s.call("auditor", "GET", path)).body;
    const first = (await s.call("auditor", "GET", `${path}?limit=2`)).body;
    const rest = (await s.call("auditor", "GET", `${path}?limit=2&cursor=${first.next_cursor}`)).body;
    const ids = [...first[list], ...rest[list]].map((row) => row[id]);
    expect([ids, rest.next_cursor], path).toEqual([
      whole[list].map((row: Record<string, string>) => row[id]),
      null,
    ]);
    expect(new Set(ids).size, path).toBe(3);
    expect((await s.call("auditor", "GET", `${path}?limit=501`)).status, path).toBe(400);
  }
});

describe("retention", () => {
  it("is not there without the section", async () => {
    verifies("ops.retention-route.404", "core.error.message-retention", "ops.retention.off-without-section");
    const off = await testServer();
    for (const [method, path] of [
      ["GET", "/v1/holds"],
      ["GET", "/v1/retention/plan"],
    ] as const) {
      expect(await off.call("auditor", method, path)).toMatchObject({
        status: 404,
        body: { error: "no retention settings" },
      });
    }
    expect((await off.call("admin", "POST", "/v1/retention/apply", {})).status).toBe(404);
    expect((await off.call("admin", "POST", "/v1/holds", { run_id: "x", reason: "because" })).status).toBe(
      404,
    );
  });

  it("keeps a run for the longest required time, and deletes due runs", async () => {
    verifies(
      "contract.http.retention-plan",
      "contract.http.retention-apply",
      "ops.retention.longest-wins",
      "ops.retention.match-tool",
      "ops.retention-state.decision-keep",
      "ops.retention-state.decision-due",
      "ops.retention-state.decision-evidence",
      "ops.retention-state.deleted-on-apply",
      "ops.retention-state.purged-record",
      "ops.retention-state.due",
      "ops.retention.keeps-ledger",
      "ops.retention.deletes-state",
      "core.event.purged",
      "core.purpose.ledger-never-deleted",
      "core.error.evidence-required",
      "ops.retention.evidence-skipped",
      "core.manifest.audit-evidence-forces-bundle",
      "contract.readings.retention-days",
    );
    await run("plain", "crm.get");
    await run("long", "crm.keep");
    await run("proof", "crm.prove");
    await s.env.advance(30 * DAY);
    expect(await plan()).toEqual([
      { run_id: "long", age_days: 30, keep_days: 90, decision: "keep", hold_id: null },
      { run_id: "plain", age_days: 30, keep_days: 30, decision: "due", hold_id: null },
      {
        run_id: "proof",
        age_days: 30,
        keep_days: 30,
        decision: "due; needs an evidence bundle first",
        hold_id: null,
      },
    ]);
    expect(await apply({ dry_run: true })).toMatchObject({ deleted: [], would_delete: ["plain"] });
    const before = (await s.call("auditor", "GET", "/v1/runs/plain/export")).text;
    const report = await apply();
    expect(report.deleted).toEqual(["plain"]);
    expect(report.kept).toEqual([
      { run_id: "long", reason: "30 of 90 days old" },
      {
        run_id: "proof",
        reason: "its manifest requires evidence: an archive directory and signing key are needed",
      },
    ]);
    expect((await s.call("auditor", "GET", "/v1/runs/plain")).status).toBe(404);
    expect((await s.call("agent", "POST", "/v1/runs", { run_id: "plain", permissions: [] })).status).toBe(
      409,
    );
    const after = (await s.call("auditor", "GET", "/v1/runs/plain/export")).text;
    expect(after.startsWith(before)).toBe(true);
    const last = JSON.parse(after.trimEnd().split("\n").at(-1)!);
    expect(last).toMatchObject({
      event: "purged",
      actor: "admin",
      detail: "retention: older than 30 days",
      run_seq: 2,
    });
    expect(await apply({ days: 1 })).toMatchObject({
      deleted: [],
      kept: [{ run_id: "long" }, { run_id: "proof" }],
    });
  });

  it("archives, verifies, then deletes; never overwrites, never follows a link", async () => {
    verifies(
      "contract.http.archive-no-overwrite",
      "contract.http.archive-not-inside",
      "ops.retention.archive-first",
      "ops.retention.archive-configured-key",
      "ops.retention.purged-detail",
      "ops.retention-route.apply",
      "ops.evidence.one-key-archives",
    );
    await run("proof", "crm.prove");
    await run("link", "crm.get");
    await s.env.advance(31 * DAY);
    const dir = join(tempDir("archive"), "deep");
    mkdirSync(dir);
    const outside = join(tempDir("outside"), "target.json");
    symlinkSync(outside, join(dir, "link.json"));
    const report = await apply({ archive_dir: dir });
    expect(report).toMatchObject({ deleted: ["proof"], archived: [join(dir, "proof.json")] });
    expect(report.kept[0]).toMatchObject({
      run_id: "link",
      reason: expect.stringContaining("could not be archived"),
    });
    expect(existsSync(outside)).toBe(false);
    const bundle = JSON.parse(readFileSync(join(dir, "proof.json"), "utf8"));
    expect(bundle).toMatchObject({ format: "svc-bundle", kind: "run", run_id: "proof", count: 2 });
    const purged = (await s.call("auditor", "GET", "/v1/search/records?event=purged")).body.records[0];
    expect(purged.detail).toBe(`retention: older than 30 days; archived to ${join(dir, "proof.json")}`);
    for (const bad of [s.folder, join(s.folder, "data"), "/"]) {
      expect((await s.call("admin", "POST", "/v1/retention/apply", { archive_dir: bad })).status).toBe(400);
    }
  });

  it("is stopped by a legal hold until it is released", async () => {
    verifies(
      "contract.http.holds-get",
      "contract.http.holds-post",
      "contract.http.holds-delete",
      "ops.hold.id-form",
      "ops.hold.scope-tool",
      "ops.hold.scope-actor",
      "ops.hold.no-scope-refused",
      "ops.hold.reason-length",
      "ops.hold.released-kept",
      "ops.hold-state.release",
      "ops.retention-state.decision-held",
      "ops.retention.held-message",
      "ops.holds-route.get",
      "ops.holds-route.post",
      "ops.holds-route.delete",
      "ops.error.hold-no-scope",
      "ops.error.hold-short-reason",
    );
    await run("a", "crm.get");
    await run("b", "crm.keep");
    const place = (body: object) => s.call("admin", "POST", "/v1/holds", body);
    expect((await place({ reason: "long enough" })).body.error).toBe(
      "a legal hold needs a scope (a run, tenant, actor or tool)",
    );
    expect((await place({ run_id: "a", reason: "abc" })).status).toBe(400);
    expect(
      (await s.call("operator", "POST", "/v1/holds", { run_id: "a", reason: "long enough" })).status,
    ).toBe(403);
    const hold = await place({ tool: "crm.get", actor: "agent", reason: "lawsuit 7" });
    expect(hold).toMatchObject({
      status: 201,
      body: { id: expect.stringMatching(/^hold_/), by: "admin", released_ms: null },
    });
    // Shown from the start, though the run is not yet due.
    expect(await plan()).toMatchObject([
      { decision: "HELD (lawsuit 7)", hold_id: hold.body.id },
      { decision: "keep", hold_id: null },
    ]);
    expect((await apply()).kept[0]).toEqual({
      run_id: "a",
      reason: `legal hold ${hold.body.id}: lawsuit 7`,
    });
    await s.env.advance(100 * DAY);
    expect((await plan()).map((one: { decision: string }) => one.decision)).toEqual([
      "HELD (lawsuit 7)",
      "due",
    ]);
    expect(await apply()).toMatchObject({
      deleted: ["b"],
      kept: [{ run_id: "a", reason: `legal hold ${hold.body.id}: lawsuit 7` }],
    });
    expect((await s.call("admin", "DELETE", `/v1/holds/${hold.body.id}`)).body).toMatchObject({
      released_by: "admin",
    });
    expect((await s.call("admin", "DELETE", `/v1/holds/${hold.body.id}`)).status).toBe(409);
    expect((await s.call("auditor", "GET", "/v1/holds")).body.holds).toEqual([]);
    expect((await s.call("auditor", "GET", "/v1/holds?all=1")).body.holds).toHaveLength(1);
    expect((await apply()).deleted).toEqual(["a"]);
    expect(await s.app.core.store.count("steps")).toBe(0);
    expect(await s.app.core.store.count("run_tools")).toBe(0);
  });
});
