/**
 * The gateway's endpoints as OAuth resources. Their metadata names the issuer to MCP clients (RFC 9728). A header points
 * refused clients to the metadata (RFC 6750).
 */
import type { FastifyInstance } from "fastify";
import { isLoopbackHost } from "../../config/loopback.ts";
import { SvcError } from "../../kernel/errors.ts";

/** An endpoint of the gateway. Tokens can be issued for its URL. */
export interface ProtectedResource {
  readonly url: string;
  readonly metadata_url: string;
  readonly issuer: string;
  /** What clients ask the issuer for. */
  readonly scopes: readonly string[];
}

const WELL_KNOWN = "/.well-known/oauth-protected-resource";

/** The endpoint below the gateway's URL, or null without an issuer. */
export function protectedResource(
  { issuer, scopes }: { issuer: string | null; scopes: readonly string[] },
  base: string,
  path: string,
): ProtectedResource | null {
  if (issuer === null) return null;
  return { url: `${base}${path}`, metadata_url: `${base}${WELL_KNOWN}${path}`, issuer, scopes };
}

/**
 * The listening address under the name that a client on this machine uses, such as `localhost`. Other names, and
 * other ports, are not this server's.
 */
export function addressAs(host: string | undefined, address: string): string {
  const asked = `http://${host ?? ""}`;
  if (!URL.canParse(asked) || !URL.canParse(address)) return address;
  const [named, own] = [new URL(asked), new URL(address)];
  const bare = (hostname: string) => hostname.replace(/^\[|\]$/g, "");
  const isOwn =
    named.port === own.port && isLoopbackHost(bare(named.hostname)) && isLoopbackHost(bare(own.hostname));
  return isOwn ? named.origin : address;
}

/** Serves the metadata of each endpoint without authentication. */
export function mountResourceMetadata(
  server: FastifyInstance,
  path: string,
  resource: (host: string | undefined) => ProtectedResource | null,
): void {
  server.get(`${WELL_KNOWN}${path}`, async (request) => {
    const known = resource(request.headers.host);
    if (known === null)
      throw new SvcError(
        "not_enabled",
        "signing in by OAuth is not enabled on this gateway: set oidc.issuer",
      );
    return {
      resource: known.url,
      authorization_servers: [known.issuer],
      bearer_methods_supported: ["header"],
      ...(known.scopes.length === 0 ? {} : { scopes_supported: known.scopes }),
    };
  });
}

/** Runs a check of a credential. A refusal gets the header that points to the resource's metadata. */
export async function withChallenge<T>(
  resource: ProtectedResource | null,
  hasCredential: boolean,
  check: () => T | Promise<T>,
): Promise<T> {
  try {
    return await check();
  } catch (error) {
    if (resource === null || !(error instanceof SvcError)) throw error;
    const challenge = challengeOf(error, resource, hasCredential);
    if (challenge === undefined) throw error;
    const { code, message, cause_code, extra } = error;
    throw new SvcError(code, message, {
      cause: error.cause,
      cause_code,
      challenge,
      ...(extra === undefined ? {} : { extra }),
    });
  }
}

function challengeOf(
  { code }: SvcError,
  { metadata_url }: ProtectedResource,
  hasCredential: boolean,
): string | undefined {
  const pointer = `resource_metadata="${metadata_url}"`;
  if (code === "unauthenticated")
    return hasCredential ? `Bearer ${pointer}, error="invalid_token"` : `Bearer ${pointer}`;
  return code === "forbidden" ? `Bearer error="insufficient_scope", ${pointer}` : undefined;
}
