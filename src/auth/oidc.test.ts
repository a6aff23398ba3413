import { CompactEncrypt, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { OAuth2Server } from "oauth2-mock-server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type FakeEnv, fakeEnv } from "../../test/support/env.ts";
import { type FakeIssuer, fakeIssuer } from "../../test/support/issuer.ts";
import { INVALID, told, verifier } from "../../test/support/oidc.ts";
import { verifies } from "../../test/support/verifies.ts";
import { createEgress } from "../egress/egress.ts";
import { RequestAuthenticator } from "./authenticate.ts";
import { type OidcSettings, OidcVerifier } from "./oidc.ts";

const encode = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");

describe("a good token", () => {
  test("becomes a principal that no API key can be mistaken for", async () => {
    verifies("core.auth.oidc-valid", "core.auth.oidc-role-map", "core.auth.oidc-principal");
    const from = await fakeIssuer();
    const found = await verifier(from).verify(await from.sign({ groups: ["ops", "people", "others"] }));
    expect(found).toEqual({
      expires_ms: (Math.floor(from.env.now() / 1_000) + 300) * 1_000,
      principal: {
        id: "oidc:https://id.example.com#ann",
        name: "ann",
        roles: ["operator", "approver"],
        groups: ["ops", "people", "others"],
        tenant: null,
        max_permissions: null,
        allow_observe: false,
      },
    });
  });

  test.each(["RS256", "PS256", "ES256", "ES384", "EdDSA"])("signed with %s", async (alg) => {
    const from = await fakeIssuer({ alg });
    expect(await told(verifier(from).verify(await from.sign()))).toBe("accepted");
  });

  test("audience as a list, another of our audiences, a single group as text, an access token's type", async () => {
    const from = await fakeIssuer();
    const check = verifier(from);
    for (const token of [
      await from.sign({ aud: ["x", "svc"] }),
      await from.sign({ aud: "svc-beta" }),
      await from.sign({ groups: "ops" }),
      await from.sign({}, { typ: "at+jwt" }),
      await from.sign({}, { typ: "JWT" }),
      await from.sign({ nbf: Math.floor(from.env.now() / 1_000) + 3 }),
    ]) {
      expect(await told(check.verify(token))).toBe("accepted");
    }
  });

  test("groups in another claim, by its whole name or as a path", async () => {
    verifies("contract.oidc.groups-claim");
    const from = await fakeIssuer();
    const roles = async (groups_claim: string, claims: JWTPayload) =>
      (await verifier(from, { groups_claim }).verify(await from.sign({ groups: undefined, ...claims })))
        .principal.roles;
    expect(await roles("roles", { roles: ["ops"] })).toEqual(["operator"]);
    expect(await roles("realm_access.roles", { realm_access: { roles: ["bots"] } })).toEqual(["agent"]);
    expect(
      await roles("https://x.example.com/groups", { "https://x.example.com/groups": ["people"] }),
    ).toEqual(["approver"]);
  });

  test("the cap of an agent is the union of its groups' caps", async () => {
    verifies("contract.readings.oidc-cap");
    const from = await fakeIssuer();
    const capped = verifier(from, { max_permissions: { bots: ["crm.*"], ops: ["mail.*", "crm.*"] } });
    const cap = async (groups: string[]) =>
      (await capped.verify(await from.sign({ groups }))).principal.max_permissions;
    expect(await cap(["bots", "ops"])).toEqual(["crm.*", "mail.*"]);
    expect(await cap(["people", "bots"])).toEqual(["crm.*"]);
    expect(await cap(["people"])).toEqual([]);
  });
});

describe("a token without a place here", () => {
  test("no mapped role is 403, not 401", async () => {
    verifies("contract.oidc.no-role-403");
    const from = await fakeIssuer();
    const check = verifier(from);
    const none = "forbidden: no role is mapped to this token's groups";
    for (const groups of [
      undefined,
      [],
      ["strangers"],
      "strangers",
      7,
      { ops: true },
      [["ops"]],
      ["constructor"],
      ["__proto__"],
    ]) {
      expect(await told(check.verify(await from.sign({ groups })))).toBe(none);
    }
  });

  test("a subject that is a name of the service itself is refused", async () => {
    const from = await fakeIssuer();
    expect(await told(verifier(from).verify(await from.sign({ sub: "engine" })))).toMatch(/^forbidden: /);
  });
});

describe("a bad token", () => {
  type Make = (from: FakeIssuer) => Promise<string> | string;
  const now = (from: FakeIssuer) => Math.floor(from.env.now() / 1_000);
  const bad: [string, Make][] = [
    ["an expired one", (f) => f.sign({ exp: now(f) - 1 })],
    ["one that expires this very second", (f) => f.sign({ exp: now(f) })],
    ["one without expiry", (f) => f.sign({ exp: undefined })],
    ["one not valid yet", (f) => f.sign({ nbf: now(f) + 60 })],
    ["another audience", (f) => f.sign({ aud: "other" })],
    ["an audience that begins like ours", (f) => f.sign({ aud: "svc2" })],
    ["a list of other audiences", (f) => f.sign({ aud: ["a", "svcsvc"] })],
    ["no audience", (f) => f.sign({ aud: undefined })],
    ["another issuer", (f) => f.sign({ iss: "https://evil.example.com" })],
    ["our issuer with a slash", (f) => f.sign({ iss: "https://id.example.com/" })],
    ["no issuer", (f) => f.sign({ iss: undefined })],
    ["no subject", (f) => f.sign({ sub: undefined })],
    ["an empty subject", (f) => f.sign({ sub: "" })],
    ["a subject with a line break", (f) => f.sign({ sub: "a\nb" })],
    ["alg none", (f) => `${encode({ alg: "none" })}.${encode(f.claims())}.`],
    ["alg NONE with a signature", (f) => `${encode({ alg: "NoNe", kid: "k1" })}.${encode(f.claims())}.AAAA`],
    [
      "HS256 with the public key as the secret",
      async (f) =>
        new SignJWT(f.claims())
          .setProtectedHeader({ alg: "HS256", kid: "k1" })
          .sign(new TextEncoder().encode(await exportSPKI(f.publicKey))),
    ],
    [
      "a key inside the header",
      async (f) => {
        const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
        return new SignJWT(f.claims())
          .setProtectedHeader({ alg: "ES256", jwk: await exportJWK(publicKey) })
          .sign(privateKey);
      },
    ],
    [
      "a key URL in the header",
      async (f) => {
        const { privateKey } = await generateKeyPair("ES256");
        return new SignJWT(f.claims())
          .setProtectedHeader({
            alg: "ES256",
            kid: "k1",
            jku: "https://evil.example.com/jwks",
            x5u: "https://evil.example.com/c",
          } as never)
          .sign(privateKey);
      },
    ],
    ["a kid that is a path", (f) => f.sign({}, { kid: "../../dev/null" })],
    ["a kid that is no text", (f) => f.sign({}, { kid: { $ne: null } as never })],
    [
      "another key's signature under a known kid",
      async (f) => {
        const { privateKey } = await generateKeyPair("ES256");
        return new SignJWT(f.claims()).setProtectedHeader({ alg: "ES256", kid: "k1" }).sign(privateKey);
      },
    ],
    [
      "a signature of zeros",
      async (f) =>
        `${(await f.sign()).split(".").slice(0, 2).join(".")}.${encode(Buffer.alloc(64).toString("latin1"))}`,
    ],
    ["an empty signature", async (f) => `${(await f.sign()).split(".").slice(0, 2).join(".")}.`],
    [
      "a changed payload",
      async (f) => {
        const [head, , tail] = (await f.sign()).split(".");
        return `${head}.${encode({ ...f.claims(), sub: "root", groups: ["ops"] })}.${tail}`;
      },
    ],
    [
      "a crit header",
      (f) => `${encode({ alg: "ES256", kid: "k1", crit: ["exp"], exp: 1 })}.${encode(f.claims())}.AAAA`,
    ],
    [
      "an unencoded payload",
      (f) => `${encode({ alg: "ES256", kid: "k1", b64: false })}.${encode(f.claims())}.AAAA`,
    ],
    ["another type", (f) => f.sign({}, { typ: "secevent+jwt" })],
    [
      "an encrypted one",
      async (f) =>
        new CompactEncrypt(Buffer.from(JSON.stringify(f.claims())))
          .setProtectedHeader({ alg: "dir", enc: "A256GCM" })
          .encrypt(new Uint8Array(32)),
    ],
    ["expiry as text", (f) => f.sign({ exp: "never" as never })],
    ["a payload that is a list", async (f) => `${(await f.sign()).split(".")[0]}.${encode([])}.AAAA`],
    ["three dots and nothing", () => ".."],
    ["garbage", () => "a.b.c"],
    ["a megabyte", () => `${"a".repeat(1_000_000)}.b.c`],
  ];
  test.each(bad)("%s is 401", async (_name, make) => {
    verifies("core.auth.oidc-bad-signature", "core.auth.oidc-wrong-audience", "core.auth.oidc-expired");
    const from = await fakeIssuer();
    expect(await told(verifier(from).verify(await make(from)))).toBe(INVALID);
  });

  test("a symmetric key among the published ones signs for nobody", async () => {
    const from = await fakeIssuer();
    const secret = Buffer.alloc(32, 7);
    from.state.extra.push({ kty: "oct", k: secret.toString("base64url"), kid: "shared", alg: "HS256" });
    const token = await new SignJWT(from.claims())
      .setProtectedHeader({ alg: "HS256", kid: "shared" })
      .sign(secret);
    expect(await told(verifier(from).verify(token))).toBe(INVALID);
  });

  test("URLs in a token are never fetched, and no keys for a token that cannot be ours", async () => {
    const from = await fakeIssuer();
    const check = verifier(from);
    for (const token of [
      "a.b.c",
      await from.sign({ iss: "https://evil.example.com" }),
      `${encode({ alg: "none" })}.${encode(from.claims())}.`,
    ])
      await told(check.verify(token));
    expect(from.state.fetches).toBe(0);
  });
});

describe("with a real issuer, over the egress guard", () => {
  const server = new OAuth2Server();
  const egress = createEgress({ block_private: false });
  let env: FakeEnv;

  beforeAll(async () => {
    await server.issuer.keys.generate("ES256");
    await server.start(0, "127.0.0.1");
    env = fakeEnv({ now: Date.now() });
  });
  afterAll(async () => {
    await server.stop();
    await egress.close();
  });

  const token = (change: (payload: Record<string, unknown>) => void = () => {}) =>
    server.issuer.buildToken({
      scopesOrTransform: (_header, payload) => {
        Object.assign(payload, { aud: "svc", sub: "ann", groups: ["ops"] });
        change(payload as Record<string, unknown>);
      },
    });
  const settings = (): OidcSettings => ({
    issuer: server.issuer.url!,
    audience: ["svc"],
    tenant_map: {},
    role_map: { ops: "admin" },
    groups_claim: "groups",
    max_permissions: null,
  });

  test("discovery, keys and verification work end to end", async () => {
    const oidc = new OidcVerifier(settings(), { egress, env });
    const auth = new RequestAuthenticator({ env, keys: null, oidc });
    expect(await auth.authenticate(`Bearer ${await token()}`)).toMatchObject({
      id: `oidc:${server.issuer.url}#ann`,
      roles: ["admin"],
    });
    expect(
      await told(
        auth.authenticate(
          `Bearer ${await token((p) => {
            p["aud"] = "other";
          })}`,
        ),
      ),
    ).toBe(INVALID);
    expect(
      await told(
        auth.authenticate(
          `Bearer ${await token((p) => {
            p["exp"] = 1;
          })}`,
        ),
      ),
    ).toBe(INVALID);
    expect(
      await told(
        auth.authenticate(
          `Bearer ${await token((p) => {
            p["groups"] = [];
          })}`,
        ),
      ),
    ).toMatch(/^forbidden/);
    expect(await oidc.doctor()).toBeUndefined();
  });

  test("a guard that forbids the issuer's address lets no token in", async () => {
    verifies("contract.oidc.guarded");
    const closed = createEgress({ block_private: true });
    const warnings: string[] = [];
    const oidc = new OidcVerifier(settings(), {
      egress: closed,
      env,
      warn: (message, fields) => warnings.push(`${message}: ${fields?.["problem"]}`),
    });
    expect(await told(oidc.verify(await token()))).toMatch(/^unavailable/);
    expect(warnings[0]).toContain("private address");
    await closed.close();
  });
});
