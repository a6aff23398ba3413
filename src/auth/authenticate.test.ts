import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { fakeEnv } from "../../test/support/env.ts";
import { tempDir } from "../../test/support/tmp.ts";
import { SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { type AuthFailure, RequestAuthenticator } from "./authenticate.ts";
import { readEntry } from "./key-entry.ts";
import { KeyFile } from "./key-file.ts";
import { KeyRing } from "./keys.ts";

async function setUp(entries: object[] = [{ name: "ann", role: "admin", key_sha256: sha256Hex("s3cret") }]) {
  const path = join(tempDir("k"), "keys.json");
  const write = (list: object[]) => writeFileSync(path, JSON.stringify(list), { mode: 0o600 });
  write(entries);
  const env = fakeEnv();
  const failures: AuthFailure[] = [];
  const keys = await KeyFile.open(path, { env });
  const auth = new RequestAuthenticator({
    env,
    keys,
    oidc: null,
    failed: (failure) => failures.push(failure),
  });
  return { auth, env, failures, write };
}
const told = (work: Promise<unknown>) =>
  work.then(
    () => "accepted",
    (error: unknown) =>
      error instanceof SvcError ? `${error.code}: ${error.message}` : `not ours: ${error}`,
  );
const INVALID = "unauthenticated: invalid credential";

describe("an Authorization header", () => {
  test("with a key that counts", async () => {
    const { auth, failures } = await setUp();
    for (const header of ["Bearer s3cret", "bearer s3cret", "BEARER   s3cret "]) {
      expect(await auth.authenticate(header)).toMatchObject({ id: "key:ann", name: "ann" });
    }
    expect(failures).toEqual([]);
  });

  test("that is missing gets an explanation, one that is wrong gets none", async () => {
    const { auth, failures } = await setUp();
    expect(await told(auth.authenticate(undefined))).toBe(
      "unauthenticated: missing credential: send Authorization: Bearer <API key or OIDC token>",
    );
    expect(await told(auth.authenticate(""))).toMatch(/missing credential/);
    const wrong = [
      "s3cret",
      "Basic s3cret",
      "Bearer",
      "Bearer ",
      "Bearer s3cret x",
      "Bearer s3cret, Bearer s3cret",
      "Bearer s3cret\u0000",
      "Bearer ünïcode",
      "Bearer\ts3cret",
      `Bearer ${"x".repeat(20_000)}`,
      "Bearer S3CRET",
      "Bearer a.b.c",
      `Bearer ${sha256Hex("s3cret")}`,
    ];
    for (const header of wrong) expect(await told(auth.authenticate(header))).toBe(INVALID);
    expect(failures.filter((failure) => failure === "missing")).toHaveLength(2);
    expect(failures).toHaveLength(wrong.length + 2);
  });
});

describe("an empty credential", () => {
  test("is nobody's, on every surface, with any key ring", async () => {
    const { env } = await setUp();
    const nothing = ["", " ", "\n", "\r\n", "\t", "\u0000"];
    const { entry } = readEntry({ name: "n", role: "admin", key_sha256: sha256Hex("something") });
    const entries = nothing.map((key) => ({ ...entry!, key_sha256: sha256Hex(key) }));
    const keys = { ring: new KeyRing(entries) } as KeyFile;
    const auth = new RequestAuthenticator({ env, keys, oidc: null });
    for (const key of nothing) {
      expect(await told(auth.authenticateToken(key))).toBe(INVALID);
      expect(await told(auth.authenticate(`Bearer ${key}`))).toBe(INVALID);
      expect(auth.keyHolder(`Bearer ${key}`)).toBeUndefined();
    }
  });
});

describe("a key's validity is judged on every call", () => {
  test("expiry and beginning follow the clock", async () => {
    const { auth, env, failures } = await setUp([
      { name: "a", role: "agent", key_sha256: sha256Hex("a"), expires_at: "2026-01-01T00:01:00Z" },
      { name: "b", role: "agent", key_sha256: sha256Hex("b"), not_before: "2026-01-01T00:01:00Z" },
      { name: "c", role: "agent", key_sha256: sha256Hex("c"), disabled: true },
    ]);
    const all = async () =>
      Promise.all(["a", "b", "c"].map((key) => told(auth.authenticate(`Bearer ${key}`))));
    expect(await all()).toEqual(["accepted", INVALID, INVALID]);
    await env.advance(60_000);
    expect(await all()).toEqual([INVALID, "accepted", INVALID]);
    expect(failures).toEqual(["not_yet_valid", "disabled", "expired", "disabled"]);
  });

  test("a disabled key stops counting with the reload, for requests and for sessions", async () => {
    const { auth, write } = await setUp();
    const { key_sha256, kind } = await auth.authenticateToken("s3cret");
    expect(kind).toBe("key");
    expect(auth.holderOf(key_sha256!)?.name).toBe("ann");
    expect(auth.named("ann")?.roles).toEqual(["admin"]);
    write([{ name: "ann", role: "admin", key_sha256: sha256Hex("s3cret"), disabled: true }]);
    expect(await auth.reload()).toBe(1);
    expect(await told(auth.authenticate("Bearer s3cret"))).toBe(INVALID);
    expect(auth.holderOf(key_sha256!)).toBeUndefined();
    expect(auth.named("ann")).toBeUndefined();
  });

  test("without keys and without an issuer nobody comes in", async () => {
    const auth = new RequestAuthenticator({ env: fakeEnv(), keys: null, oidc: null });
    expect(await told(auth.authenticate("Bearer x"))).toBe(INVALID);
    expect(auth.holderOf("x")).toBeUndefined();
    expect(await auth.reload()).toBe(0);
  });
});
