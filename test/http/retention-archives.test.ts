/** The archive that replaces a deleted run counts only if it holds all of the run. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- {tool: crm.prove, effect: read, permission: p, audit: {evidence_export: required}}
`;
const POLICY = "version: 1\nretention: {default_days: 30}\n";
const DAY = 86_400_000;

const signing = join(tempDir("key"), "sign.key");
writeFileSync(signing, newKeyPair().private_pem, { mode: 0o600 });
const signed = () =>
  testServer({ manifests: MANIFESTS, policy: POLICY, config: `signing_key: ${signing}\n` });

async function call(s: TestServer, id: string, tool = "crm.get"): Promise<void> {
  await s.call("agent", "POST", `/v1/runs/${id}/intents`, { tool, args: {}, reason: "r" });
}
async function run(s: TestServer, id: string, tool?: string): Promise<void> {
  await s.call("agent", "POST", "/v1/runs", { run_id: id, permissions: ["p"] });
  await call(s, id, tool);
}
const apply = async (s: TestServer, body: object) =>
  (await s.call("admin", "POST", "/v1/retention/apply", body)).body;
const bundle = async (s: TestServer, id: string) =>
  (await s.call("auditor", "GET", `/v1/runs/${id}/bundle`)).text;

describe("an archive that is there already", () => {
  let s: TestServer;
  let dir = "";
  let path = "";
  beforeEach(async () => {
    s = await signed();
    dir = tempDir("archive");
    path = join(dir, "r.json");
    await run(s, "r");
  });
  const due = async () => {
    await s.env.advance(31 * DAY);
    return apply(s, { archive_dir: dir });
  };
  const stays = async (why: string) => {
    const there = readFileSync(path, "utf8");
    expect(await due()).toEqual({
      deleted: [],
      would_delete: [],
      archived: [],
      kept: [
        {
          run_id: "r",
          reason: `it could not be archived: the archive at ${path} ${why}; move it away, and the next run creates it again`,
        },
      ],
    });
    expect(readFileSync(path, "utf8")).toBe(there);
    expect((await s.call("auditor", "GET", "/v1/runs/r")).status).toBe(200);
  };

  it("replaces the run if it holds every record of it", async () => {
    writeFileSync(path, await bundle(s, "r"));
    expect(await due()).toMatchObject({ deleted: ["r"], archived: [path] });
  });

  it("does not if the run continued since, until it is moved away", async () => {
    writeFileSync(path, await bundle(s, "r"));
    await call(s, "r");
    await stays("holds 1 of the run's 2 records: the run has continued since");
    renameSync(path, join(dir, "r.earlier.json"));
    expect(await apply(s, { archive_dir: dir })).toMatchObject({ deleted: ["r"], archived: [path] });
    expect(JSON.parse(readFileSync(path, "utf8")).count).toBe(2);
  });

  it("does not when it is of a run by the same name on another ledger", async () => {
    const other = await signed();
    await run(other, "before");
    await run(other, "r");
    writeFileSync(path, await bundle(other, "r"));
    await stays("belongs to another ledger");
  });

  it("does not when it is of another run, or torn", async () => {
    await run(s, "elsewhere");
    await s.call("admin", "POST", "/v1/holds", { run_id: "elsewhere", reason: "stays out of this" });
    writeFileSync(path, await bundle(s, "elsewhere"));
    const kept = (await due()).kept.map(({ reason }: { reason: string }) => reason);
    expect(kept).toContainEqual(expect.stringContaining(`the archive at ${path} belongs to another run`));
    writeFileSync(path, (await bundle(s, "r")).slice(0, 300));
    const again = (await apply(s, { archive_dir: dir })).kept;
    expect(again).toContainEqual({
      run_id: "r",
      reason: expect.stringContaining(`the archive at ${path} does not verify`),
    });
  });

  it("is made again if an interrupted one left nothing but its name", async () => {
    writeFileSync(path, "");
    expect(await due()).toMatchObject({ deleted: ["r"], archived: [path] });
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ run_id: "r", count: 1 });
    expect(readdirSync(dir)).toEqual(["r.json"]);
  });
});

describe("without a signing key", () => {
  it("keeps each run that was to be archived, and names the key", async () => {
    verifies("ops.retention.evidence-skipped");
    const s = await testServer({ manifests: MANIFESTS, policy: POLICY });
    await run(s, "a");
    await run(s, "b");
    await run(s, "proof", "crm.prove");
    await s.env.advance(31 * DAY);
    const archive_dir = join(tempDir("archive"), "new");
    const noKey = expect.stringMatching(/archived first.*need a signing key: set signing_key.*--key/);
    const kept = [
      { run_id: "a", reason: noKey },
      { run_id: "b", reason: noKey },
      {
        run_id: "proof",
        reason: "its manifest requires evidence: an archive directory and signing key are needed",
      },
    ];
    for (const dry_run of [true, false]) {
      expect(await apply(s, { archive_dir, dry_run })).toEqual({
        deleted: [],
        would_delete: [],
        archived: [],
        kept,
      });
    }
    expect(existsSync(archive_dir)).toBe(false);
    // A folder that may not be used is still said first.
    expect((await s.call("admin", "POST", "/v1/retention/apply", { archive_dir: "/" })).status).toBe(400);
    expect(await apply(s, {})).toMatchObject({ deleted: ["a", "b"], kept: [{ run_id: "proof" }] });
  });

  it("does not make the folder in a dry run", async () => {
    const s = await signed();
    await run(s, "a");
    await s.env.advance(31 * DAY);
    const archive_dir = join(tempDir("archive"), "new");
    expect(await apply(s, { archive_dir, dry_run: true })).toMatchObject({ would_delete: ["a"] });
    expect(existsSync(archive_dir)).toBe(false);
    mkdirSync(archive_dir);
    expect(await apply(s, { archive_dir })).toMatchObject({ deleted: ["a"] });
  });
});
