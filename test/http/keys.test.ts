/** Keys over HTTP: managing entries, and that what a key may do follows its entry at once. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { KeyFile } from "../../src/auth/key-file.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeAll(async () => {
  s = await testServer();
});
const keys = async () => (await s.call("admin", "GET", "/v1/keys")).body.keys;
const create = (body: object, key = "admin") => s.call(key, "POST", "/v1/keys", body);
const change = (index: number, body: object, headers = {}) =>
  s.call("admin", "PATCH", `/v1/keys/${index}`, body, headers);
const remove = (index: number, headers = {}) =>
  s.call("admin", "DELETE", `/v1/keys/${index}`, undefined, headers);
const events = async () =>
  (await s.call("auditor", "GET", "/v1/search/records?limit=50")).body.records.map(
    ({ event, actor, detail }: Record<string, string>) => [event, actor, detail],
  );

describe("managing keys", () => {
  it("is for admins alone", async () => {
    verifies("core.auth.admin-manages-keys", "core.purpose.admin-keys");
    for (const key of ["operator", "approver", "auditor", "agent"]) {
      const answers = [
        await s.call(key, "GET", "/v1/keys"),
        await create({ name: "x", role: "admin" }, key),
        await s.call(key, "PATCH", "/v1/keys/0", { disabled: true }),
        await s.call(key, "DELETE", "/v1/keys/0"),
      ];
      for (const answer of answers)
        expect(answer).toMatchObject({ status: 403, body: { error: "admin only" } });
    }
    expect(await keys()).toHaveLength(6);
  });

  it("takes one role or a list under either name", async () => {
    const own = await testServer();
    for (const roles of [
      { role: "auditor" },
      { role: ["auditor"] },
      { roles: "auditor" },
      { roles: ["auditor"] },
    ]) {
      const made = await own.call("admin", "POST", "/v1/keys", { name: "eve", ...roles });
      expect(made).toMatchObject({ status: 201, body: { roles: ["auditor"] } });
      expect((await own.call(made.body.key, "GET", "/v1/status")).status).toBe(200);
    }
    for (const roles of [{ role: "king" }, { roles: [] }, { role: 7 }, {}]) {
      const refused = await own.call("admin", "POST", "/v1/keys", { name: "eve", ...roles });
      expect([refused.status, refused.body.error]).toEqual([400, expect.stringMatching(/^roles?: /)]);
    }
  });

  it("makes a key that works at once and is shown once", async () => {
    verifies(
      "core.route.keys-create",
      "core.route.keys-list",
      "core.route.keys-shown-once",
      "contract.http.keys-get",
      "contract.http.keys-post",
      "core.auth.no-restart",
    );
    const made = await create({
      name: "robot",
      role: "agent",
      max_permissions: ["crm.*"],
      groups: ["g"],
      tenant: "acme",
      expires_at: "2027-01-01T00:00:00Z",
      allow_observe: true,
    });
    const { key, ...entry } = made.body;
    expect(made.status).toBe(201);
    expect(s.logged.some((line) => line.includes("the key file was reloaded"))).toBe(true);
    expect(entry).toEqual({
      index: 6,
      name: "robot",
      roles: ["agent"],
      groups: ["g"],
      tenant: "acme",
      max_permissions: ["crm.*"],
      not_before: null,
      expires_at: "2027-01-01T00:00:00Z",
      disabled: false,
      allow_observe: true,
      fingerprint: expect.stringMatching(/^[0-9a-f]{16}$/),
    });
    expect(
      (await s.call(key, "POST", "/v1/runs", { permissions: ["crm.read"], mode: "observe" })).status,
    ).toBe(201);
    expect((await keys())[6]).toEqual(entry);
    expect(JSON.stringify(await keys())).not.toContain(key);
    expect(readFileSync(join(s.folder, "keys.json"), "utf8")).not.toContain(key);
    expect(JSON.parse(readFileSync(join(s.folder, "keys.json"), "utf8"))[6].key_sha256).toBe(sha256Hex(key));
  });

  it("changes and deletes entries, and the ledger tells who did it", async () => {
    verifies(
      "core.route.keys-patch",
      "core.route.keys-delete",
      "contract.http.keys-patch",
      "contract.http.keys-delete",
      "contract.event.keys",
      "core.key.disabled",
      "core.auth.disabled-401",
    );
    const { index, key, fingerprint } = (await create({ name: "short-lived", role: "auditor" })).body;
    const works = async () => (await s.call(key, "GET", "/v1/status")).status;
    expect(await works()).toBe(200);
    expect((await change(index, { disabled: true })).body).toMatchObject({
      index,
      disabled: true,
      fingerprint,
    });
    expect(await works()).toBe(401);
    expect((await change(index, { disabled: false, roles: ["agent"] })).status).toBe(200);
    expect(await works()).toBe(403);
    expect((await change(index, { name: "other" })).status).toBe(400);
    expect((await change(index, { key_sha256: "0".repeat(64) })).status).toBe(400);
    expect((await change(99, { disabled: true })).status).toBe(404);
    expect((await remove(index)).body).toMatchObject({ name: "short-lived" });
    expect(await works()).toBe(401);
    expect((await remove(index)).status).toBe(404);
    expect((await events()).slice(0, 4)).toEqual([
      ["key_deleted", "admin", `key short-lived, fingerprint ${fingerprint}`],
      ["key_changed", "admin", "key short-lived: disabled, roles changed"],
      ["key_changed", "admin", "key short-lived: disabled"],
      ["key_created", "admin", `key short-lived (auditor), fingerprint ${fingerprint}`],
    ]);
  });

  it("cannot hit the wrong entry when the list moved on", async () => {
    const first = (await create({ name: "first", role: "auditor" })).body;
    const second = (await create({ name: "second", role: "auditor" })).body;
    await remove(first.index);
    expect(
      (await change(second.index - 1, { disabled: true }, { "if-match": first.fingerprint })).status,
    ).toBe(409);
    expect((await remove(second.index - 1, { "if-match": `"${second.fingerprint}"` })).status).toBe(200);
  });

  describe("by an index of an outdated list", () => {
    let own: TestServer;
    const list = async (key: string) => (await own.call(key, "GET", "/v1/keys")).body.keys;
    const names = async () => (await list("admin")).map(({ name }: { name: string }) => name);
    const hit = (key: string, verb: string, index: number, headers = {}) =>
      own.call(key, verb, `/v1/keys/${index}`, verb === "PATCH" ? { disabled: true } : undefined, headers);
    const options = { keys: ["a", "b", "c", "d", "e"].map((name) => ({ name, role: "admin" })) };
    const A = 6;
    beforeEach(async () => {
      own = await testServer(options);
    });

    it.each(["DELETE", "PATCH"])("%s never hits the neighbour", async (verb) => {
      const before = await list("admin");
      expect((await hit("e", "DELETE", A)).status).toBe(200);
      // Somebody else deleted an entry; then the caller itself does, and continues with the list it has.
      for (const index of [A, A + 1, A + 2]) {
        expect(await hit("admin", verb, index)).toMatchObject({
          status: 409,
          body: { error: "another key has this index now; list the keys again" },
        });
      }
      expect(await names()).toEqual(expect.arrayContaining(["b", "c", "d", "e"]));
      expect((await hit("admin", verb, A)).status).toBe(200);
      if (verb === "DELETE") expect((await hit("admin", verb, A + 1)).status).toBe(409);
      const fingerprint = before.find(({ name }: { name: string }) => name === "d").fingerprint;
      const at = (await names()).indexOf("d");
      expect((await hit("admin", verb, at, { "if-match": fingerprint })).body).toMatchObject({ name: "d" });
    });

    it("is refused to a caller that has not listed since, and entries that never moved are not", async () => {
      await hit("admin", "DELETE", A + 1);
      const stale = {
        status: 409,
        body: { error: expect.stringContaining("send If-Match with the fingerprint") },
      };
      expect(await hit("e", "PATCH", A + 1)).toMatchObject(stale);
      expect(await hit("e", "DELETE", A + 2)).toMatchObject(stale);
      expect((await hit("e", "PATCH", A)).body).toMatchObject({ name: "a" });
      await list("e");
      expect((await hit("e", "DELETE", A + 1)).body).toMatchObject({ name: "c" });
    });

    it("is refused after a restart, and by another process of the store", async () => {
      await hit("admin", "DELETE", A);
      const after = await testServer({ ...options, store: own.app.core.store });
      for (const verb of ["PATCH", "DELETE"])
        expect(
          (await after.call("e", verb, `/v1/keys/${A + 1}`, verb === "PATCH" ? {} : undefined)).status,
        ).toBe(409);
    });

    it("is refused after the file was edited by hand", async () => {
      const path = join(own.folder, "keys.json");
      const entries = JSON.parse(readFileSync(path, "utf8")) as { name: string }[];
      writeFileSync(path, JSON.stringify(entries.filter(({ name }) => name !== "a")));
      expect((await hit("e", "DELETE", A)).status).toBe(409);
      expect((await hit("e", "PATCH", 1)).status).toBe(200);
      expect(await names()).toContain("b");
    });

    it("is taken for a key that was made since, and for the answer about it", async () => {
      const made = (await own.call("admin", "POST", "/v1/keys", { name: "new", role: "auditor" })).body;
      expect((await hit("admin", "PATCH", made.index)).body).toMatchObject({ name: "new" });
      expect((await hit("admin", "DELETE", made.index)).body).toMatchObject({ name: "new" });
      expect((await hit("admin", "DELETE", made.index)).status).toBe(404);
      const next = (await own.call("b", "POST", "/v1/keys", { name: "next", role: "auditor" })).body;
      expect(next.index).toBe(made.index);
      expect((await hit("admin", "DELETE", made.index)).status).toBe(409);
      expect((await hit("b", "DELETE", made.index)).body).toMatchObject({ name: "next" });
    });
  });

  it("leaves the last enabled admin", async () => {
    verifies("contract.http.keys-last-admin");
    const index = (await keys()).findIndex(({ name }: { name: string }) => name === "admin");
    for (const answer of [
      await change(index, { disabled: true }),
      await change(index, { role: "operator" }),
      await remove(index),
    ]) {
      expect(answer).toMatchObject({
        status: 409,
        body: { error: expect.stringContaining("last enabled admin") },
      });
    }
    const { index: other, key } = (await create({ name: "second-admin", role: "admin" })).body;
    expect((await change(index, { disabled: true })).status).toBe(200);
    expect((await s.call(key, "PATCH", `/v1/keys/${index}`, { disabled: false })).status).toBe(200);
    expect((await remove(other)).status).toBe(200);
  });
});

describe("what a key may do", () => {
  it("ends when it expires and begins when it becomes valid", async () => {
    verifies("core.key.expires-at", "core.auth.expired-401", "core.auth.not-before-401");
    const at = (ms: number) => new Date(s.env.now() + ms).toISOString();
    const ends = (await create({ name: "ends", role: "auditor", expires_at: at(60_000) })).body.key;
    const begins = (await create({ name: "begins", role: "auditor", not_before: at(60_000) })).body.key;
    const statuses = async () => [
      (await s.call(ends, "GET", "/v1/status")).status,
      (await s.call(begins, "GET", "/v1/status")).status,
    ];
    expect(await statuses()).toEqual([200, 401]);
    await s.env.advance(60_000);
    expect(await statuses()).toEqual([401, 200]);
  });

  it("is capped by max_permissions, and nothing without it", async () => {
    verifies(
      "core.key.max-permissions",
      "core.auth.agent-cap",
      "core.route.runs-post-cap",
      "contract.readings.no-cap-none",
      "contract.readings.cap-globs",
      "core.key.allow-observe",
      "core.route.runs-post-403-observe",
      "core.route.runs-post-403-advise",
    );
    const none = (await create({ name: "none", role: "agent" })).body.key;
    const some = (await create({ name: "some", role: "agent", max_permissions: ["crm.*", "{a,b}.read"] }))
      .body.key;
    const open = async (key: string, permissions: string[], mode = "enforce") =>
      (await s.call(key, "POST", "/v1/runs", { permissions, mode })).status;
    expect(await open(none, [])).toBe(201);
    expect(await open(none, ["crm.read"])).toBe(403);
    expect(await open(some, ["crm.read", "crm.x.y", "b.read"])).toBe(201);
    expect(await open(some, ["crm.read", "c.read"])).toBe(403);
    for (const mode of ["observe", "advise"]) expect(await open(some, [], mode)).toBe(403);
    const { index } = (await keys()).find(({ name }: { name: string }) => name === "some");
    await change(index, { allow_observe: true });
    for (const mode of ["observe", "advise"]) expect(await open(some, [], mode)).toBe(201);
  });

  it("follows the file, which is looked at every two seconds", async () => {
    verifies("core.limit.key-reload");
    const timers = vi.spyOn(globalThis, "setInterval");
    const path = join(s.folder, "keys.json");
    const file = await KeyFile.open(path, { env: systemEnv });
    file.watch();
    expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([2_000]);
    const look = timers.mock.calls[0]![0] as () => void;
    timers.mockRestore();
    const list = JSON.parse(readFileSync(path, "utf8")) as object[];
    writeFileSync(
      path,
      JSON.stringify([...list, { name: "edited", role: "admin", key_sha256: sha256Hex("by hand") }]),
    );
    look();
    await file.poll();
    expect(file.ring.find("by hand", Date.now())).toMatchObject({ principal: { name: "edited" } });
    file.close();
  });
});
