/** Signed approvals in bundles and archives: three verifiers check them, and lies about them pass none. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newKeyPair, parseSigningKey } from "../../src/evidence/signing.ts";
import type { GrantDoc } from "../../src/govern/grants/grant.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { bundleOf } from "./support/bundles.ts";
import { approversOf, liesOf, type SignedWorld, signedWorld } from "./support/signed.ts";
import { askBrowser, askPython, askTypeScript, python } from "./support/verifiers.ts";

const folder = tempDir("signed-bundles");
const pair = newKeyPair();
const key = parseSigningKey(pair.private_pem, "test key");
const signing = join(folder, "k.key");
writeFileSync(signing, pair.private_pem, { mode: 0o600 });
const pub = join(folder, "k.pub");
writeFileSync(pub, key.pem);
let world: SignedWorld;
let n = 0;

beforeAll(async () => {
  world = await signedWorld();
});

function fileOf(text: string): string {
  const file = join(folder, `${n++}.json`);
  writeFileSync(file, text);
  return file;
}

/** What each verifier says of each file: null where it holds. */
async function verdictsOf(files: readonly string[]): Promise<(string | null)[][]> {
  const all = [
    await askTypeScript("bundle", files, key),
    await askPython("bundle", files, pub),
    await askBrowser("bundle", files, key),
  ];
  return files.map((file) => all.map((verdicts) => verdicts.get(file)!));
}

describe("a bundle", () => {
  it("has each signature that its records name, and three verifiers check them", async () => {
    verifies("beyond.signed.bundles", "beyond.signed.three-verifiers");
    const whole = await bundleOf(world.store, key);
    const run = await bundleOf(world.store, key, world.run_id);
    const kinds = (text: string) =>
      (JSON.parse(text).signatures as { payload: { kind: string } }[]).map(({ payload }) => payload.kind);
    const ofRun = ["approval", "offer", "break_glass", "pre_approval", "plan"];
    expect(kinds(whole)).toEqual([...ofRun, "grant", "delegation"]);
    expect(kinds(run)).toEqual(ofRun);
    expect(await verdictsOf([fileOf(whole), fileOf(run)])).toEqual([
      [null, null, null],
      [null, null, null],
    ]);
  });

  it("fails at all three with any lie about a signature", async () => {
    verifies("beyond.signed.missing", "beyond.signed.bundle-lies");
    const lies = await liesOf(world, key);
    const verdicts = await verdictsOf(lies.map(([, text]) => fileOf(text)));
    const passed = lies.flatMap(([name], i) => (verdicts[i]!.includes(null) ? [[name, verdicts[i]]] : []));
    expect(passed).toEqual([]);
    const other = verdicts
      .flat()
      .filter((why) => !/ signatures? (?!does not match)|names a signature/.test(why!));
    expect(other).toEqual([]);
  });

  it("is not signed where a signature is gone from the store", async () => {
    const [row] = await world.store.list("grants", { limit: 1 });
    const { internal, ...grant } = row!.doc;
    const put = (doc: GrantDoc) => world.store.transact({ run: (tx) => tx.put("grants", grant.id, doc) });
    const { signature: _, ...bare } = internal;
    await put({ ...grant, internal: bare });
    await expect(bundleOf(world.store, key)).rejects.toThrow(SvcError);
    await put(row!.doc);
  });

  it("stays as it was without signatures", async () => {
    verifies("beyond.signed.bundles-off");
    const run_id = "plain";
    await world.s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
    const made = JSON.parse(await bundleOf(world.store, key, run_id)) as JsonObject;
    expect(Object.keys(made)).not.toContain("signatures");
  });
});

describe("a note that imitates a signature", () => {
  it("names none", async () => {
    verifies("beyond.signed.imitation");
    const { id, run_id } = await world.s.ask("pay.plain");
    const note = `fine; signed ${"a".repeat(64)}`;
    await world.s.call("ann", "POST", `/v1/approvals/${id}/approve`, { note });
    const file = fileOf(await bundleOf(world.store, key, run_id));
    expect(await verdictsOf([file])).toEqual([[null, null, null]]);
  });
});

describe("--approvers", () => {
  const said = async (change: object = {}) => {
    const bundle = fileOf(await bundleOf(world.store, key));
    const approvers = fileOf(JSON.stringify(approversOf(world.s, change)));
    return svc(["verify-bundle", bundle, "--pub", pub, "--approvers", approvers]);
  };

  it("says who signed what", async () => {
    verifies("beyond.signed.approvers-option");
    const { code, out } = await said();
    expect(out).toMatch(/ann signed with [0-9a-f]{8}: approve, approval, pay\.refund, apr_/);
    expect(out).toMatch(/bob signed with [0-9a-f]{8}: offer, offer, pay\.refund/);
    expect(out).toMatch(/admin signed with [0-9a-f]{8}: approve, break_glass/);
    expect(out).not.toContain("UNKNOWN");
    expect(code).toBe(0);
  });

  it("exits 2 with a signer whom the file does not know", async () => {
    verifies("beyond.signed.unknown-signer");
    const { approvers } = approversOf(world.s) as unknown as { approvers: { keys: object[] }[] };
    const [ann, bob, admin] = approvers as [{ keys: object[] }, { keys: object[] }, { keys: object[] }];
    const unknown: [object, string][] = [
      [{ approvers: [ann, bob] }, "nobody's"],
      [{ approvers: [ann, bob, { ...admin, name: "eve" }] }, "eve's"],
      [{ approvers: [ann, bob, { ...admin, keys: [{ ...admin.keys[0], revoked: true }] }] }, "revoked"],
      [{ ledger: "example.com/other" }, "another ledger"],
      [{ rp_id: "other.example" }, "does not permit it"],
      [{ origins: ["https://other.example"] }, "does not permit it"],
    ];
    for (const [change, why] of unknown) {
      const { code, out } = await said(change);
      expect([code, out]).toEqual([2, expect.stringMatching(new RegExp(`UNKNOWN:.*${why}`))]);
    }
  });

  it("is the same in Python", async () => {
    const bundle = fileOf(await bundleOf(world.store, key));
    const ask = async (change: object) => {
      const approvers = fileOf(JSON.stringify(approversOf(world.s, change)));
      return (await python(["verify-bundle", "--pub", pub, "--approvers", approvers, bundle])).join("\n");
    };
    const good = await ask({});
    expect(good).toMatch(/ann signed with [0-9a-f]{8}: approve, approval, pay\.refund, apr_/);
    expect(good).not.toContain("UNKNOWN");
    expect(await ask({ approvers: [] })).toContain("UNKNOWN");
  });

  it.each([
    ["no origins", { origins: [] }],
    ["an unknown member", { more: 1 }],
    ["a quorum of none", { require: [{ tool: "*", groups: [], quorum: 0 }] }],
  ])("refuses a file with %s, also in Python", async (_, change) => {
    verifies("beyond.approvers.python-option");
    expect((await said(change)).code).toBe(1);
    const bundle = fileOf(await bundleOf(world.store, key));
    const approvers = fileOf(JSON.stringify(approversOf(world.s, change)));
    const lines = await python(["verify-bundle", "--pub", pub, "--approvers", approvers, bundle]);
    expect(lines.join("\n")).toContain("is not an approvers file");
  });
});

describe("an archive", () => {
  it("holds the signatures of a run that retention deletes; the ledger's bundle then names it", async () => {
    verifies("beyond.signed.archives");
    const other = await signedWorld(`signing_key: ${signing}\n`);
    await other.s.env.advance(400 * 86_400_000);
    const archive_dir = tempDir("archive");
    const applied = await other.s.call("admin", "POST", "/v1/retention/apply", { archive_dir });
    expect(applied.body).toMatchObject({ deleted: [other.run_id] });
    const archive = join(archive_dir, `${other.run_id}.json`);
    expect(JSON.parse(readFileSync(archive, "utf8")).signatures).toHaveLength(5);
    const whole = fileOf(await bundleOf(other.store, key));
    expect(JSON.parse(readFileSync(whole, "utf8")).signatures).toHaveLength(2);
    expect(await verdictsOf([archive, whole])).toEqual([
      [null, null, null],
      [null, null, null],
    ]);
    const approvers = fileOf(JSON.stringify(approversOf(other.s)));
    const { code, out } = await svc(["verify-bundle", whole, "--pub", pub, "--approvers", approvers]);
    expect([code, out]).toEqual([2, expect.stringContaining("of runs that retention deleted")]);
  });
});
