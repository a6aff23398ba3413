import { execFile } from "node:child_process";
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { systemEnv } from "../kernel/env.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { KeyFile } from "./key-file.ts";
import { KeyManager } from "./key-manager.ts";

const entry = (name: string, more: object = {}) => ({
  name,
  role: "agent",
  key_sha256: sha256Hex(name),
  ...more,
});
const root = entry("root", { role: "admin" });

async function managed(...entries: object[]) {
  const path = join(tempDir("k"), "keys.json");
  writeFileSync(path, JSON.stringify(entries), { mode: 0o600 });
  const live = await KeyFile.open(path, { env: systemEnv });
  const manager = new KeyManager(path, { env: systemEnv, live });
  const raw = () => JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>[];
  return { path, live, manager, raw };
}

const refusal = async (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  );

describe("managing keys", () => {
  test("the list shows everything but the hash", async () => {
    const { manager } = await managed(root, entry("bot", { max_permissions: ["a"], tenant: "t" }));
    const list = await manager.list();
    expect(list[1]).toEqual({
      index: 1,
      name: "bot",
      roles: ["agent"],
      groups: [],
      tenant: "t",
      max_permissions: ["a"],
      not_before: null,
      expires_at: null,
      disabled: false,
      allow_observe: false,
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(JSON.stringify(list)).not.toContain(sha256Hex("bot").slice(0, 16));
  });

  test("a new key is shown once, works at once, and only its hash is kept", async () => {
    verifies("core.key.never-stored");
    const { manager, live, raw, path } = await managed(root);
    const made = await manager.create("bot", {
      roles: ["agent"],
      max_permissions: ["crm.*"],
      expires_at: "2099-01-01T00:00:00Z",
    });
    expect(made).toMatchObject({
      index: 1,
      name: "bot",
      roles: ["agent"],
      key: expect.stringMatching(/^svc_[A-Za-z0-9_-]{43}$/),
    });
    expect(live.ring.find(made.key, Date.now())).toMatchObject({ principal: { name: "bot" } });
    expect(readFileSync(path, "utf8")).not.toContain(made.key);
    expect(raw()[1]).toEqual({
      name: "bot",
      roles: ["agent"],
      max_permissions: ["crm.*"],
      expires_at: "2099-01-01T00:00:00Z",
      key_sha256: sha256Hex(made.key),
    });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dirname(path))).toEqual(["keys.json"]);
  });

  test("a patch changes its fields alone and keeps order and the others as they were", async () => {
    verifies("contract.http.keys-atomic");
    const { manager, live, raw } = await managed(root, entry("a", { tenant: "t" }), entry("b"));
    await manager.patch(1, { disabled: true, tenant: null, groups: ["g"] });
    expect(raw()).toEqual([
      root,
      { name: "a", role: "agent", key_sha256: sha256Hex("a"), disabled: true, groups: ["g"] },
      entry("b"),
    ]);
    expect(live.ring.find("a", Date.now())).toBe("disabled");
    await manager.patch(1, { roles: ["auditor", "agent"], disabled: false });
    expect(raw()[1]).toEqual({
      name: "a",
      key_sha256: sha256Hex("a"),
      disabled: false,
      groups: ["g"],
      roles: ["auditor", "agent"],
    });
    await manager.patch(1, { role: "operator" });
    expect((await manager.list())[1]?.roles).toEqual(["operator"]);
  });

  test("an invalid entry is refused and nothing is written", async () => {
    const { manager, raw } = await managed(root, entry("a"));
    const before = raw();
    expect(await refusal(manager.create("engine", { role: "agent" }))).toMatch(
      /^invalid: name: is a name of the service/,
    );
    expect(await refusal(manager.create("x", {}))).toMatch(/^invalid: roles: is missing/);
    expect(await refusal(manager.create("x", { role: "agent", key_sha256: "0" } as object))).toMatch(
      /^invalid: unknown field "key_sha256"/,
    );
    expect(await refusal(manager.patch(1, { name: "b" } as object))).toMatch(
      /^invalid: the name of a key cannot be changed/,
    );
    expect(await refusal(manager.patch(1, { expires_at: "soon" }))).toMatch(/^invalid: expires_at/);
    expect(await refusal(manager.patch(1, { roles: null, role: null }))).toMatch(/^invalid: roles/);
    for (const index of [2, -1, 0.5, Number.NaN])
      expect(await refusal(manager.remove(index))).toMatch(/^not_found: /);
    expect(raw()).toEqual(before);
  });

  test("the fingerprint says which key is meant, however the index moved", async () => {
    const { manager, raw } = await managed(root, entry("a"), entry("b"));
    const [, a, b] = await manager.list();
    await manager.remove(1, a!.fingerprint);
    expect(await refusal(manager.patch(1, { disabled: true }, a!.fingerprint))).toMatch(
      /^conflict: another key has this index/,
    );
    expect(await refusal(manager.remove(2, b!.fingerprint))).toMatch(/^conflict: /);
    expect(raw()).toEqual([root, entry("b")]);
    await manager.patch(1, { disabled: true }, `"${b!.fingerprint}"`);
    await manager.remove(1, "*");
    expect(raw()).toEqual([root]);
  });

  test("the last enabled admin stays", async () => {
    const late = entry("late", { role: "admin", expires_at: "2020-01-01" });
    const off = entry("off", { role: "admin", disabled: true });
    const soon = entry("soon", { role: "admin", not_before: "2099-01-01" });
    const { manager, raw } = await managed(root, late, off, soon);
    const before = raw();
    const last = /^conflict: this is the last enabled admin key/;
    expect(await refusal(manager.patch(0, { disabled: true }))).toMatch(last);
    expect(await refusal(manager.patch(0, { role: "operator" }))).toMatch(last);
    expect(await refusal(manager.patch(0, { expires_at: "2020-01-01" }))).toMatch(last);
    expect(await refusal(manager.patch(0, { not_before: "2099-01-01" }))).toMatch(last);
    expect(await refusal(manager.remove(0))).toMatch(last);
    expect(raw()).toEqual(before);
    await manager.patch(2, { disabled: false });
    await manager.remove(0);
    expect(await refusal(manager.remove(1))).toMatch(last);
  });

  test("a broken file is not edited, a missing one only where it may be made", async () => {
    const { manager, path } = await managed(root);
    writeFileSync(path, "[");
    expect(await refusal(manager.create("a", { role: "agent" }))).toMatch(
      /^conflict: the key file does not load/,
    );
    expect(readFileSync(path, "utf8")).toBe("[");
    const fresh = join(tempDir("k"), "sub/keys.json");
    expect(await refusal(new KeyManager(fresh, { env: systemEnv }).list())).toMatch(/does not exist/);
  });

  test("the first key makes the file", async () => {
    const path = join(tempDir("k"), "keys.json");
    const manager = new KeyManager(path, { env: systemEnv, create_file: true });
    expect(await manager.list()).toEqual([]);
    await manager.create("root", { role: "admin" });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(await manager.list()).toHaveLength(1);
  });

  test("a link to the file stays a link", async () => {
    const { path } = await managed(root);
    const link = join(tempDir("k"), "link.json");
    symlinkSync(path, link);
    await new KeyManager(link, { env: systemEnv }).create("a", { role: "agent" });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(path, "utf8"))).toHaveLength(2);
  });
});

describe("edits at the same time", () => {
  test("fifty from one process are all there", async () => {
    const { manager, raw, path } = await managed(root);
    await Promise.all(Array.from({ length: 50 }, (_, i) => manager.create(`bot-${i}`, { role: "agent" })));
    expect(raw()).toHaveLength(51);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test("and from several processes too", async () => {
    const { path, raw } = await managed(root);
    const script = `
      import { KeyManager } from "${join(import.meta.dirname, "key-manager.ts")}";
      import { systemEnv } from "${join(import.meta.dirname, "../kernel/env.ts")}";
      const manager = new KeyManager(process.argv[1], { env: systemEnv });
      for (let i = 0; i < 5; i++) await manager.create(process.argv[2] + "-" + i, { role: "agent" });
    `;
    const run = (name: string) =>
      promisify(execFile)(
        process.execPath,
        ["--import", "tsx", "--input-type=module", "--eval", script, "--", path, name],
        { cwd: join(import.meta.dirname, "../..") },
      );
    await Promise.all(["a", "b", "c"].map(run));
    expect(new Set(raw().map((key) => key["name"])).size).toBe(16);
  });

  test("a dead process's lock is taken over; a held one is waited for, then reported", async () => {
    const { manager, path, raw } = await managed(root);
    const dead = 2 ** 22 + 1;
    writeFileSync(`${path}.lock`, `${dead}@${hostname()} 00`);
    await manager.create("a", { role: "agent" });
    expect(raw()).toHaveLength(2);
    writeFileSync(`${path}.lock`, `${process.pid}@${hostname()} 00`);
    const impatient = new KeyManager(path, { env: { ...systemEnv, elapsed: () => (clock += 1_000) } });
    let clock = 0;
    expect(await refusal(impatient.create("b", { role: "agent" }))).toMatch(/^conflict: another edit/);
    expect(raw()).toHaveLength(2);
  });

  test("a lock of another machine goes by how long it was seen, not by the time on its file", async () => {
    const { manager, path, raw } = await managed(root);
    let clock = 0;
    let held = true;
    const other = new KeyManager(path, {
      env: {
        ...systemEnv,
        elapsed: () => clock,
        sleep: async () => {
          clock += 1_000;
          if (held) writeFileSync(`${path}.lock`, `1@elsewhere ${clock}`);
          utimesSync(`${path}.lock`, 0, clock);
        },
      },
    });
    writeFileSync(`${path}.lock`, "1@elsewhere 00");
    // It changes all the time: its holders live, although the file's time is long ago.
    expect(await refusal(other.create("a", { role: "agent" }))).toMatch(/^conflict: another edit/);
    held = false;
    const pass = async (): Promise<void> => {
      clock += 1_000;
    };
    const watching = new KeyManager(path, {
      env: { ...systemEnv, elapsed: () => clock, sleep: pass },
    });
    await watching.create("b", { role: "agent" });
    await manager.create("c", { role: "agent" });
    expect(raw()).toHaveLength(3);
  });
});
