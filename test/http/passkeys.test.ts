/** Passkeys over HTTP: who can add, confirm, list and revoke them, and attempts to cheat. */
import { beforeEach, describe, expect, it } from "vitest";
import { fingerprintOf } from "../../src/auth/keys.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { SoftPasskey } from "../support/passkeys.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const URL_ = "https://svc.example.com";
const CONFIG = `console_url: ${URL_}\n`;

let s: TestServer;
const open = (config = CONFIG) =>
  testServer({
    config,
    keys: [
      { name: "admin2", role: "admin" },
      { name: "ann", role: "approver" },
    ],
  });
beforeEach(async () => {
  s = await open();
});

const options = async (key: string) => (await s.call(key, "POST", "/v1/passkeys/options", {})).body;
const enrol = async (key: string, soft = new SoftPasskey(URL_), lies = {}) => {
  const made = soft.create(await options(key), lies);
  return { soft, answer: await s.call(key, "POST", "/v1/passkeys", { response: made }) };
};
const confirm = (key: string, id: string, body: object) =>
  s.call(key, "POST", `/v1/passkeys/${id}/confirm`, body);
const active = async (key: string, soft = new SoftPasskey(URL_)) => {
  const { answer } = await enrol(key, soft);
  const done = await confirm(key === "admin" ? "admin2" : "admin", answer.body.id, { code: soft.code });
  expect(done.body.status).toBe("active");
  return { soft, id: answer.body.id as string };
};
const records = async () =>
  (await s.call("auditor", "GET", "/v1/search/records?limit=50")).body.records
    .filter(({ event }: { event: string }) => event.startsWith("passkey_"))
    .map(({ event, actor, detail }: Record<string, string>) => [event, actor, detail]);

describe("enrolling", () => {
  it.each(["ES256", "EdDSA", "RS256"] as const)(
    "takes %s, and counts once another admin compared the code",
    async (alg) => {
      verifies("beyond.passkeys.algorithms", "beyond.passkeys.first", "beyond.passkeys.added-record");
      const { soft, answer } = await enrol("ann", new SoftPasskey(URL_, { alg }));
      expect(answer).toMatchObject({
        status: 201,
        body: { status: "pending", code: soft.code, alg, name: "ann" },
      });
      expect(answer.body.public_key).toBe(soft.spki.toString("base64"));
      expect(await records()).toEqual([]);
      const done = await confirm("admin", answer.body.id, { code: soft.code });
      expect(done).toMatchObject({ status: 200, body: { status: "active", confirmed_by: "admin" } });
      expect(await records()).toEqual([
        ["passkey_added", "admin", `passkey ${soft.code} of ann, ${answer.body.id}`],
      ]);
    },
  );

  it("asks for user verification and attestation none", async () => {
    verifies("beyond.passkeys.options");
    expect(await options("ann")).toMatchObject({
      rp: { id: "svc.example.com" },
      attestation: "none",
      authenticatorSelection: { userVerification: "required" },
      pubKeyCredParams: [{ alg: -7 }, { alg: -8 }, { alg: -257 }],
    });
  });

  it("refuses registrations that lie", async () => {
    verifies("beyond.passkeys.registration-lies");
    for (const lies of [
      { origin: "https://evil.example.com" },
      { rp_id: "evil.example.com" },
      { flags: 0x41 },
      { flags: 0x44 },
      { type: "webauthn.get" },
      { fmt: "packed" },
      { cross_origin: true },
    ]) {
      const { answer } = await enrol("ann", new SoftPasskey(URL_), lies);
      expect([answer.status, answer.body.error]).toEqual([400, expect.stringContaining("response: ")]);
    }
    const { answer } = await enrol("ann", new SoftPasskey(URL_), { challenge: "AAAA" });
    expect(answer.status).toBe(409);
  });

  it("uses each challenge once, for the person who asked for it, for five minutes", async () => {
    verifies("beyond.passkeys.challenge-once");
    const asked = await options("ann");
    const stolen = new SoftPasskey(URL_).create(asked);
    expect((await s.call("admin", "POST", "/v1/passkeys", { response: stolen })).status).toBe(409);
    const first = await s.call("ann", "POST", "/v1/passkeys", { response: stolen });
    expect(first.status).toBe(201);
    const again = new SoftPasskey(URL_).create(asked);
    expect((await s.call("ann", "POST", "/v1/passkeys", { response: again })).status).toBe(409);
    const late = new SoftPasskey(URL_).create(await options("ann"));
    await s.env.advance(5 * 60_000);
    expect((await s.call("ann", "POST", "/v1/passkeys", { response: late })).status).toBe(409);
  });

  it("is for approvers and above, and holds at most ten", async () => {
    verifies("beyond.passkeys.roles", "beyond.passkeys.ten");
    for (const key of ["agent", "auditor"])
      expect((await s.call(key, "POST", "/v1/passkeys/options", {})).status).toBe(403);
    for (let i = 0; i < 10; i++) expect((await enrol("ann")).answer.status).toBe(201);
    expect((await enrol("ann")).answer).toMatchObject({
      status: 409,
      headers: { "svc-error-code": "passkeys_full" },
    });
  });

  it("is off without console_url, and confirms alone only if the setting allows it", async () => {
    verifies("beyond.passkeys.self");
    s = await open("");
    expect((await s.call("ann", "POST", "/v1/passkeys/options", {})).status).toBe(404);
    s = await open(`${CONFIG}passkeys: {enrol: self, rp_id: example.com}\n`);
    const { answer } = await enrol("ann", new SoftPasskey(URL_, { rp_id: "example.com" }));
    expect(answer.body).toMatchObject({ status: "active", confirmed_by: "ann" });
  });
});

describe("confirming", () => {
  it("takes nobody's own code", async () => {
    verifies("beyond.passkeys.another-admin");
    const { soft, answer } = await enrol("admin");
    const own = await confirm("admin", answer.body.id, { code: soft.code });
    expect([own.status, own.headers["svc-error-code"]]).toEqual([403, "own_passkey"]);
    expect((await confirm("operator", answer.body.id, { code: soft.code })).status).toBe(404);
    expect((await confirm("admin2", answer.body.id, { code: soft.code })).body.status).toBe("active");
  });

  it("ends a passkey after five wrong codes, or after a day", async () => {
    verifies("beyond.passkeys.code");
    const { soft, answer } = await enrol("ann");
    const wrong = soft.code === "00000000" ? "00000001" : "00000000";
    for (let i = 0; i < 5; i++) {
      const tried = await confirm("admin", answer.body.id, { code: wrong });
      expect([tried.status, tried.headers["svc-error-code"]]).toEqual([409, "code_differs"]);
    }
    expect((await confirm("admin", answer.body.id, { code: soft.code })).status).toBe(409);
    const late = await enrol("ann");
    await s.env.advance(24 * 3_600_000);
    expect((await confirm("admin", late.answer.body.id, { code: late.soft.code })).status).toBe(409);
    expect(await records()).toEqual([]);
  });

  const challenge = (key: string, id: string) =>
    s.call(key, "POST", "/v1/challenges", { kind: "passkey", id, decision: "confirm" });

  it("takes a further one by an assertion of an active one of the same person", async () => {
    verifies("beyond.passkeys.further");
    const first = await active("ann");
    const second = await enrol("ann");
    const { id } = second.answer.body;
    const asked = await challenge("ann", id);
    expect(asked.body.payload).toMatchObject({ v: 1, kind: "passkey", id, by: "ann" });
    expect(asked.body.options).toMatchObject({
      userVerification: "required",
      allowCredentials: [{ id: first.soft.id }],
    });
    const signature = first.soft.sign(asked.body);
    const done = await confirm("ann", id, { signature });
    expect(done).toMatchObject({ status: 200, body: { status: "active", confirmed_by: "ann" } });
    expect((await confirm("ann", id, { signature })).status).toBe(403);
  });

  it("does not let a stolen session add one", async () => {
    verifies("beyond.passkeys.stolen-session");
    const first = await active("ann");
    const thief = new SoftPasskey(URL_);
    const { answer } = await enrol("ann", thief);
    const { id } = answer.body;
    const asked = (await challenge("ann", id)).body;
    // The thief has the session and the new device, but not the old one.
    for (const signature of [
      thief.sign(asked),
      thief.sign(asked, { id: first.soft.id }),
      { ...thief.sign(asked), assertion: first.soft.assert("AAAA") },
      first.soft.sign(asked, { origin: "https://evil.example.com" }),
      first.soft.sign(asked, { flags: 0x01 }),
    ])
      expect((await confirm("ann", id, { signature })).status).toBe(403);
    expect((await confirm("ann", id, { code: thief.code })).status).toBe(403);
    expect((await confirm("ann", id, {})).status).toBe(400);
    const list = (await s.call("ann", "GET", "/v1/passkeys")).body.passkeys;
    expect(list.filter(({ status }: { status: string }) => status === "active")).toHaveLength(1);
  });

  it("refuses a counter that does not grow, and takes authenticators that keep none", async () => {
    verifies("beyond.passkeys.counter");
    const kept = await active("ann");
    const copy = kept.soft.counter;
    const second = await enrol("ann");
    const asked = async () => (await challenge("ann", second.answer.body.id)).body;
    kept.soft.counter = 7;
    const signature = kept.soft.sign(await asked());
    expect((await confirm("ann", second.answer.body.id, { signature })).status).toBe(200);
    const third = await enrol("ann");
    const again = kept.soft.sign((await challenge("ann", third.answer.body.id)).body, { counter: copy + 1 });
    expect((await confirm("ann", third.answer.body.id, { signature: again })).status).toBe(403);
    const none = await active("admin", new SoftPasskey(URL_, { counts: false }));
    for (let i = 0; i < 2; i++) {
      const more = (await enrol("admin")).answer.body.id;
      const signed = none.soft.sign((await challenge("admin", more)).body);
      expect((await confirm("admin", more, { signature: signed })).status).toBe(200);
    }
  });
});

describe("belonging", () => {
  it("shows people their own, and admins everybody's", async () => {
    verifies("beyond.passkeys.list");
    await active("ann");
    await active("admin");
    const seen = async (key: string) =>
      (await s.call(key, "GET", "/v1/passkeys")).body.passkeys
        .map(({ name }: { name: string }) => name)
        .sort();
    expect([await seen("ann"), await seen("approver"), await seen("admin2")]).toEqual([
      ["ann"],
      [],
      ["admin", "ann"],
    ]);
    expect((await s.call("auditor", "GET", "/v1/passkeys")).status).toBe(403);
  });

  it("is revoked by the person or an admin, on record, and signs nothing afterwards", async () => {
    verifies("beyond.passkeys.revoke", "beyond.passkeys.lost-device");
    const lost = await active("ann");
    const next = await enrol("ann");
    const asked = (
      await s.call("ann", "POST", "/v1/challenges", {
        kind: "passkey",
        id: next.answer.body.id,
        decision: "confirm",
      })
    ).body;
    const signature = lost.soft.sign(asked);
    expect((await s.call("approver", "DELETE", `/v1/passkeys/${lost.id}`)).status).toBe(404);
    expect((await s.call("ann", "DELETE", `/v1/passkeys/${lost.id}`)).body.status).toBe("revoked");
    expect((await confirm("ann", next.answer.body.id, { signature })).status).toBe(403);
    expect((await s.call("ann", "DELETE", `/v1/passkeys/${lost.id}`)).status).toBe(409);
    expect((await records())[0]).toEqual([
      "passkey_revoked",
      "ann",
      `passkey ${lost.soft.code} of ann, ${lost.id}`,
    ]);
  });

  it("ends with its key entry, and never passes to another key of the same name", async () => {
    verifies("beyond.passkeys.key-entry");
    const { soft, id } = await active("ann");
    const list = (await s.call("admin", "GET", "/v1/keys")).body.keys;
    const entry = list.find(({ name }: { name: string }) => name === "ann");
    expect(entry.fingerprint).toBe(fingerprintOf(sha256Hex("ann")));
    const made = await s.call("admin", "POST", "/v1/keys", { name: "ann", role: "approver" });
    expect((await s.call(made.body.key, "GET", "/v1/passkeys")).body.passkeys).toEqual([]);
    await s.call("admin", "PATCH", `/v1/keys/${entry.index}`, { disabled: true });
    const shown = async () =>
      (await s.call("admin", "GET", "/v1/passkeys")).body.passkeys.find(
        (one: { id: string }) => one.id === id,
      );
    expect((await shown()).status).toBe("revoked");
    await s.call("admin", "DELETE", `/v1/keys/${entry.index}`, undefined, { "if-match": entry.fingerprint });
    expect((await records())[0]).toEqual(["passkey_revoked", "admin", `passkey ${soft.code} of ann, ${id}`]);
  });
});

it("separates the passkeys of tenants", async () => {
  verifies("beyond.passkeys.tenants");
  const bound = { tenant: "acme", tenant_only: true };
  s = await testServer({
    config: CONFIG,
    keys: [
      { name: "acme-admin", role: "admin", ...bound },
      { name: "acme-ann", role: "approver", ...bound },
      { name: "ann", role: "approver" },
    ],
  });
  const theirs = await enrol("acme-ann");
  const other = await enrol("ann");
  const seen = (await s.call("acme-admin", "GET", "/v1/passkeys")).body.passkeys;
  expect(seen.map(({ name }: { name: string }) => name)).toEqual(["acme-ann"]);
  const code = { code: other.soft.code };
  expect((await confirm("acme-admin", other.answer.body.id, code)).status).toBe(404);
  expect((await s.call("acme-admin", "DELETE", `/v1/passkeys/${other.answer.body.id}`)).status).toBe(404);
  expect((await confirm("acme-admin", theirs.answer.body.id, { code: theirs.soft.code })).status).toBe(200);
});
