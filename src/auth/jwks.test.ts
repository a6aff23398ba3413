import { describe, expect, test } from "vitest";
import { fakeIssuer } from "../../test/support/issuer.ts";
import { INVALID, told, verifier } from "../../test/support/oidc.ts";
import { verifies } from "../../test/support/verifies.ts";
import type { OidcVerifier } from "./oidc.ts";

describe("the issuer's keys", () => {
  test("are fetched once for many tokens at once", async () => {
    const from = await fakeIssuer();
    const check = verifier(from);
    const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => from.sign({ sub: `u${i}` })));
    await Promise.all(tokens.map((token) => check.verify(token)));
    expect(from.state.fetches).toBe(1);
  });

  test("a flood of unknown key ids causes one fetch in a minute, cold and warm", async () => {
    verifies("contract.oidc.unknown-kid");
    const from = await fakeIssuer();
    const flood = async (check: OidcVerifier) => {
      for (let i = 0; i < 200; i++)
        expect(await told(check.verify(await from.sign({}, { kid: `x${i}` })))).toBe(INVALID);
    };
    const cold = verifier(from);
    await flood(cold);
    expect(from.state.fetches).toBe(1);
    await from.env.advance(60_000);
    await flood(cold);
    expect(from.state.fetches).toBe(2);
    const warm = verifier(from);
    await warm.verify(await from.sign());
    expect(from.state.fetches).toBe(3);
    await flood(warm);
    expect(from.state.fetches).toBe(4);
  });

  test("a rotated key works at once; the withdrawn one stops within a minute of the refetch", async () => {
    const from = await fakeIssuer();
    const check = verifier(from);
    const old = await from.sign();
    await check.verify(old);
    await from.rotate("k2");
    expect(await told(check.verify(await from.sign({}, {}, "k2")))).toBe("accepted");
    await from.env.advance(60_000);
    expect(await told(check.verify(old))).toBe(INVALID);
  });

  test("are looked at again after ten minutes, and the old ones serve while the issuer is away", async () => {
    const from = await fakeIssuer();
    const warnings: string[] = [];
    const check = verifier(from, {}, warnings);
    await check.verify(await from.sign());
    await from.env.advance(600_000);
    from.state.down = true;
    expect(await told(check.verify(await from.sign()))).toBe("accepted");
    expect([from.state.fetches, warnings.length]).toEqual([1, 1]);
    await from.env.advance(59_000);
    await check.verify(await from.sign({ sub: "bob" }));
    expect(warnings).toHaveLength(1);
  });

  test("out of reach from the start: 503, tried again after a while, recovers on its own", async () => {
    const from = await fakeIssuer();
    const warnings: string[] = [];
    const check = verifier(from, {}, warnings);
    from.state.down = true;
    const away = "unavailable: the token's issuer cannot be reached to check it; try again";
    for (let i = 0; i < 20; i++) expect(await told(check.verify(await from.sign()))).toBe(away);
    expect(warnings).toHaveLength(1);
    from.state.down = false;
    await from.env.advance(5_000);
    expect(await told(check.verify(await from.sign()))).toBe("accepted");
  });

  test.each([
    ["names another issuer", { issuer: "https://evil.example.com", jwks_uri: "https://id.example.com/jwks" }],
    ["has no keys", { issuer: "https://id.example.com" }],
    [
      "leads from https to http",
      { issuer: "https://id.example.com", jwks_uri: "http://id.example.com/jwks" },
    ],
    ["is no object", []],
  ])("a discovery document that %s is not believed", async (_name, discovery) => {
    const from = await fakeIssuer();
    from.state.discovery = discovery;
    const check = verifier(from);
    expect(await told(check.verify(await from.sign()))).toMatch(/^unavailable/);
    expect(await check.doctor()).toBeTypeOf("string");
  });

  test("an expired token is refused also while it is remembered", async () => {
    const from = await fakeIssuer();
    const check = verifier(from);
    const token = await from.sign({ exp: Math.floor(from.env.now() / 1_000) + 10 });
    expect(await told(check.verify(token))).toBe("accepted");
    await from.env.advance(9_000);
    expect(await told(check.verify(token))).toBe("accepted");
    await from.env.advance(1_000);
    expect(await told(check.verify(token))).toBe(INVALID);
  });
});
