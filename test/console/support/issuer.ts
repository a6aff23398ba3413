/** An OpenID Connect issuer on this machine, as small as one can be. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import type { RuntimeEnv } from "../../../src/kernel/env.ts";

export async function localIssuer(env: RuntimeEnv) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const key = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256", use: "sig" };
  const server = createServer((request, response) => {
    const body = request.url === "/jwks" ? { keys: [key] } : { issuer: url, jwks_uri: `${url}/jwks` };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    /** A token for five minutes, of an operator by default. */
    token(claims: Record<string, unknown> = {}): Promise<string> {
      const now = Math.floor(env.now() / 1_000);
      return new SignJWT({
        iss: url,
        aud: "svc",
        sub: "ann",
        groups: ["ops"],
        iat: now,
        exp: now + 300,
        ...claims,
      })
        .setProtectedHeader({ alg: "ES256", kid: "k1" })
        .sign(privateKey);
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
