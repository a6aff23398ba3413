/**
 * A real authorization server on loopback: `oidc-provider`, with dynamic registration, resource indicators and signed
 * access tokens. `signIn` is the person at the browser.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
// @ts-expect-error the package has no types
import Provider from "oidc-provider";
import { afterAll } from "vitest";

export interface AuthorizationServer {
  url: string;
  /** Groups of each person, by the name at the login form. */
  groups: Map<string, string[]>;
  /** The path of every request, in order. */
  asked: string[];
  /** Signs in and consents, and returns the URL that the browser comes back to. */
  signIn(url: string | URL, login?: string): Promise<URL>;
  /** Forgets every grant, so that nothing can be refreshed. */
  revokeAll(): void;
}

export interface AuthorizationServerOptions {
  /** Lifetime of access tokens. */
  ttl_s?: number;
  /** More of the provider's configuration. */
  configuration?: Record<string, unknown>;
  /** Prepares the provider before it serves. */
  // biome-ignore lint/suspicious/noExplicitAny: the package has no types
  prepare?(provider: any, sign: (claims: Record<string, unknown>) => Promise<string>): void;
}

const MAX_HOPS = 20;

export async function authorizationServer(
  options: AuthorizationServerOptions = {},
): Promise<AuthorizationServer> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const groups = new Map<string, string[]>();
  const asked: string[] = [];
  let forgets = false;
  const { privateKey } = await generateKeyPair("RS256", { extractable: true });
  const provider = new Provider(url, {
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: "as-1", alg: "RS256", use: "sig" }] },
    cookies: { keys: ["a cookie key of the tests"] },
    scopes: ["openid", "offline_access", "tools.read", "tools.write"],
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    extraTokenClaims: (_context: unknown, token: { accountId?: string }) => ({
      groups: groups.get(token.accountId ?? "") ?? [],
    }),
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => ({
          scope: "tools.read tools.write",
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: options.ttl_s ?? 600,
        }),
      },
    },
    ...options.configuration,
  });
  options.prepare?.(provider, (claims) =>
    new SignJWT({ iss: url, ...claims })
      .setProtectedHeader({ alg: "RS256", kid: "as-1", typ: "at+jwt" })
      .setIssuedAt()
      .setExpirationTime("5m")
      .sign(privateKey),
  );
  const answer = provider.callback();
  server.on("request", (request, response) => {
    asked.push(request.url!.split("?", 1)[0]!);
    if (forgets && request.url === "/token")
      return void response
        .writeHead(400, { "content-type": "application/json" })
        .end('{"error":"invalid_grant"}');
    answer(request, response);
  });
  afterAll(() => closeServer(server));
  const revokeAll = () => {
    forgets = true;
  };
  return { url, groups, asked, signIn: (from, login = "ann") => walk(url, String(from), login), revokeAll };
}

function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Follows the issuer's pages, fills in its forms, and stops at the first address elsewhere. */
async function walk(issuer: string, start: string, login: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let at = new URL(start);
  let form: URLSearchParams | undefined;
  for (let hop = 0; hop < MAX_HOPS; hop++) {
    if (at.origin !== issuer) return at;
    const response: Response = await fetch(at, {
      redirect: "manual",
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
      ...(form === undefined ? {} : { method: "POST", body: form }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!;
      cookies.set(name!, value!);
    }
    const next = response.headers.get("location");
    form = undefined;
    if (next !== null) {
      at = new URL(next, at);
      continue;
    }
    const page = await response.text();
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
    if (prompt === undefined) throw new Error(`the issuer answered ${response.status}: ${page}`);
    form = new URLSearchParams({ prompt, login, password: "any" });
  }
  throw new Error("the issuer does not come to an end");
}
