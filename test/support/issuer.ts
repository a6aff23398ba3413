/** An OpenID Connect issuer in memory: it signs any claims, and counts the requests to it. */
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import type { EgressClient, EgressRequest, EgressResponse } from "../../src/egress/egress.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { fakeEnv } from "./env.ts";

export async function fakeIssuer(options: { alg?: string } = {}) {
  const alg = options.alg ?? "ES256";
  const url = "https://id.example.com";
  const pairs = new Map<string, CryptoKey>();
  const published: object[] = [];
  const state = {
    fetches: 0,
    down: false,
    discovery: { issuer: url, jwks_uri: `${url}/jwks` } as object,
    extra: [] as object[],
  };
  const rotate = async (kid: string, keep = false) => {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    if (!keep) published.length = 0;
    published.push({ ...(await exportJWK(publicKey)), kid, alg, use: "sig" });
    pairs.set(kid, privateKey);
    return publicKey;
  };
  const publicKey = await rotate("k1");
  const egress: Pick<EgressClient, "request"> = {
    request: async (target: string, _request?: EgressRequest): Promise<EgressResponse> => {
      if (target.endsWith("/jwks")) state.fetches++;
      if (state.down) throw new SvcError("delivery_failed", "cannot reach id.example.com: ECONNREFUSED");
      const body = target.endsWith("/jwks") ? { keys: [...published, ...state.extra] } : state.discovery;
      return { status: 200, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) };
    },
  };
  const env = fakeEnv();
  const claims = (): JWTPayload => ({
    iss: url,
    aud: "svc",
    sub: "ann",
    groups: ["ops"],
    iat: Math.floor(env.now() / 1_000),
    exp: Math.floor(env.now() / 1_000) + 300,
  });
  const sign = async (
    change: Readonly<Record<string, unknown>> = {},
    header: Record<string, unknown> = {},
    kid = "k1",
  ) => {
    const payload = Object.fromEntries(
      Object.entries({ ...claims(), ...change }).filter(([, value]) => value !== undefined),
    );
    return new SignJWT(payload).setProtectedHeader({ alg, kid, ...header }).sign(pairs.get(kid)!);
  };
  return { url, env, egress, state, sign, claims, rotate, publicKey, pairs };
}
export type FakeIssuer = Awaited<ReturnType<typeof fakeIssuer>>;
