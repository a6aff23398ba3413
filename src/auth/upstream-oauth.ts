/**
 * OAuth client for upstreams: discovery (RFC 9728, 8414), registration (RFC 7591 or a metadata document), code with
 * PKCE and resource indicators, refresh, revocation (RFC 7009) and token exchange (RFC 8693). Every URL passes the
 * egress guard. No redirect is followed, and no answer or token appears in an error.
 */
import type { AuthorizationServerMetadata, FetchLike, OAuthTokens } from "@modelcontextprotocol/client";
import { isLoopbackHost } from "../config/loopback.ts";
import type { UrlUpstream } from "../config/sections/gateway.ts";
import type { UpstreamAuth } from "../config/sections/upstream-auth.ts";
import type { EgressClient } from "../egress/egress.ts";
import { SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import {
  assertPkce,
  assertSecureEndpoint,
  guardedSender,
  oauthRefused,
  plainOAuthError,
  postAsClient,
  readOAuthAnswer,
  registersNobody,
  revocationEndpoint,
} from "./oauth-requests.ts";
import { toShownErrorCode } from "./sign-in.ts";
import {
  ConsentEndedError,
  codedError,
  splitScopes,
  tokenSet,
  type UpstreamClient,
  type UpstreamTokenSet,
} from "./upstream-tokens.ts";

const CLIENT_NAME = "Takeback gateway";
const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";

/** The SDK is large, and most commands need none of it. */
const loadSdk = () => import("@modelcontextprotocol/client");

/** The authorization server of an upstream, as discovered. */
export interface UpstreamIssuer {
  issuer: string;
  metadata: AuthorizationServerMetadata;
  /** The resource that tokens are for. */
  resource: string;
  scopes: string[];
}

/** A sign-in, from the redirect to the issuer until its response. */
export interface UpstreamSignIn {
  found: UpstreamIssuer;
  client: UpstreamClient;
  verifier: string;
  redirect_uri: string;
  scopes: string[];
}

/** How one upstream is signed in to. */
export class UpstreamOAuth {
  private readonly spec: UrlUpstream;
  private readonly auth: UpstreamAuth;
  private readonly egress: EgressClient;
  private readonly strict: EgressClient;
  private readonly local: boolean;

  /** `strict` refuses private addresses, which the documents of a public upstream must not name. */
  constructor(spec: UrlUpstream & { auth: UpstreamAuth }, egress: EgressClient, strict: EgressClient) {
    this.spec = spec;
    this.auth = spec.auth;
    this.egress = egress;
    this.strict = strict;
    this.local = isLoopbackHost(new URL(spec.url).hostname);
  }

  private async sender(): Promise<FetchLike> {
    const isPublic = (await this.strict.check(this.spec.url)) === null;
    return guardedSender(isPublic ? this.strict : this.egress, this.local);
  }

  /** Finds the upstream's authorization server and the scopes to ask for. */
  async discover(): Promise<UpstreamIssuer> {
    const sdk = await loadSdk();
    const send = await this.sender();
    try {
      const { resourceMetadataUrl, scope } = sdk.extractWWWAuthenticateParams(await this.challenge(send));
      const found = await sdk
        .discoverOAuthProtectedResourceMetadata(
          this.spec.url,
          resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl },
          send,
        )
        .catch((error: unknown) => {
          // An older server names no resource. Its own host is the authorization server then.
          if (!(error instanceof SvcError) && /does not implement/.test(String(error))) return undefined;
          throw error;
        });
      if (found !== undefined) this.assertResource(sdk, found.resource);
      const named = found?.authorization_servers ?? [new URL(this.spec.url).origin];
      const issuer = this.auth.issuer ?? named[0];
      if (issuer === undefined || (found !== undefined && !named.includes(issuer)))
        throw oauthRefused("the upstream does not name the expected issuer");
      const metadata = await this.serverMetadata(issuer, send);
      const resource = found?.resource ?? sdk.resourceUrlFromServerUrl(this.spec.url).href;
      const wanted = this.auth.scopes ?? (scope === undefined ? found?.scopes_supported : splitScopes(scope));
      return { issuer, metadata, resource, scopes: withOffline(wanted ?? [], metadata) };
    } catch (error) {
      throw plainOAuthError(error, `the sign-in of upstream ${this.spec.name} cannot be discovered`);
    }
  }

  private assertResource(sdk: Awaited<ReturnType<typeof loadSdk>>, configuredResource: string): void {
    const requestedResource = sdk.resourceUrlFromServerUrl(this.spec.url);
    if (
      !URL.canParse(configuredResource) ||
      !sdk.checkResourceAllowed({ requestedResource, configuredResource })
    )
      throw oauthRefused("the upstream's metadata is for another resource");
  }

  /** The upstream's refusal of a request without a token. Some servers refuse only what follows `initialize`. */
  private async challenge(send: FetchLike): Promise<Response> {
    const params = {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: CLIENT_NAME, version: "1" },
    };
    const ask = (method: string, given: object) =>
      send(this.spec.url, {
        method: "POST",
        headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 0, method, params: given }),
      });
    const first = await ask("initialize", params);
    return first.status === 401 ? first : ask("tools/list", {});
  }

  private async serverMetadata(
    issuer: string,
    fetchFn: FetchLike,
    local = this.local,
  ): Promise<AuthorizationServerMetadata> {
    const sdk = await loadSdk();
    const metadata = await sdk.discoverAuthorizationServerMetadata(issuer, { fetchFn });
    if (metadata === undefined) throw oauthRefused(`the issuer ${new URL(issuer).host} has no metadata`);
    const { authorization_endpoint, token_endpoint, registration_endpoint } = metadata;
    const { url: revocation } = revocationEndpoint(metadata);
    for (const url of [authorization_endpoint, token_endpoint, registration_endpoint, revocation])
      if (url !== undefined) assertSecureEndpoint(new URL(url), local);
    return metadata;
  }

  /** The client at the issuer that needs no registration, or null. */
  async knownClient({ metadata }: UpstreamIssuer, document_url: string): Promise<UpstreamClient | null> {
    const { client_id, client_secret } = this.auth;
    if (client_id !== null)
      return client_secret === null
        ? { client_id, token_endpoint_auth_method: "none" }
        : { client_id, client_secret };
    if (metadata["client_id_metadata_document_supported"] !== true || !document_url.startsWith("https:"))
      return null;
    return { client_id: document_url, token_endpoint_auth_method: "none" };
  }

  async register({ metadata, issuer }: UpstreamIssuer, redirect_uri: string): Promise<UpstreamClient> {
    if (metadata.registration_endpoint === undefined)
      throw registersNobody(issuer, withoutMark(redirect_uri));
    const sdk = await loadSdk();
    const methods = metadata.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
    // In the body first: issuers of the MCP Python SDK refuse a header without `client_id` in the body.
    const method =
      ["client_secret_post", "client_secret_basic"].find((one) => methods.includes(one)) ?? "none";
    try {
      return await sdk.registerClient(issuer, {
        metadata,
        clientMetadata: sdk.resolveClientMetadata({
          redirectUrl: redirect_uri,
          clientMetadata: { ...clientMetadata(redirect_uri), token_endpoint_auth_method: method },
        }),
        fetchFn: await this.sender(),
      });
    } catch (error) {
      throw plainOAuthError(error, `the issuer ${new URL(issuer).host} did not register this gateway`);
    }
  }

  /** The URL at which the person signs in and consents, and the PKCE verifier of this sign-in. */
  async begin(
    sign_in: Omit<UpstreamSignIn, "verifier">,
    state: string,
  ): Promise<{ url: string; verifier: string }> {
    const sdk = await loadSdk();
    const { found, client, redirect_uri, scopes } = sign_in;
    assertPkce(found);
    try {
      const { authorizationUrl, codeVerifier } = await sdk.startAuthorization(found.issuer, {
        metadata: found.metadata,
        clientInformation: client,
        redirectUrl: redirect_uri,
        ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
        state,
        resource: found.resource,
      });
      return { url: authorizationUrl.href, verifier: codeVerifier };
    } catch (error) {
      throw plainOAuthError(error, "the sign-in cannot begin");
    }
  }

  /** Redeems the code of a response. `iss` is the issuer that the response names, if it names one. */
  async redeem(
    { found, client, verifier, redirect_uri, scopes }: UpstreamSignIn,
    { code, iss, now }: { code: string; iss: string | undefined; now: number },
  ): Promise<UpstreamTokenSet> {
    const sdk = await loadSdk();
    const { issuer, metadata, resource } = found;
    try {
      const tokens = await sdk.exchangeAuthorization(issuer, {
        metadata,
        clientInformation: client,
        authorizationCode: code,
        ...(iss === undefined ? {} : { iss }),
        codeVerifier: verifier,
        redirectUri: redirect_uri,
        resource,
        fetchFn: await this.sender(),
      });
      return tokenSet(tokens, { scopes, issuer, metadata, client, resource, now });
    } catch (error) {
      throw codedError(error, "the issuer did not redeem the sign-in");
    }
  }

  async refresh(held: UpstreamTokenSet, now: number): Promise<UpstreamTokenSet> {
    if (held.refresh_token === null) throw new ConsentEndedError();
    const sdk = await loadSdk();
    const { issuer, metadata, client, resource, scopes } = held;
    try {
      const tokens = await sdk.refreshAuthorization(issuer, {
        metadata,
        clientInformation: client,
        refreshToken: held.refresh_token,
        resource,
        fetchFn: await this.sender(),
      });
      return tokenSet(tokens, { scopes, issuer, metadata, client, resource, now });
    } catch (error) {
      throw codedError(error, "the issuer did not refresh the tokens");
    }
  }

  /** Revokes the tokens at their issuer. An issuer without revocation has nothing to revoke. */
  async revoke({ metadata, client, refresh_token, access_token }: UpstreamTokenSet): Promise<void> {
    const { url, supported } = revocationEndpoint(metadata);
    if (url === undefined) return;
    const all = [["refresh_token", refresh_token] as const, ["access_token", access_token] as const];
    for (const [token_type_hint, token] of all) {
      if (token === null) continue;
      const endpoint = { url, client, supported };
      const answer = await postAsClient(await this.sender(), endpoint, { token, token_type_hint });
      if (answer.status === 200) continue;
      const { error } = readOAuthAnswer(new Uint8Array(await answer.arrayBuffer()));
      // Self-contained access tokens cannot be revoked. They expire.
      if (token_type_hint === "access_token" && error === "unsupported_token_type") continue;
      throw oauthRefused(`the issuer did not revoke the tokens (HTTP ${answer.status})`);
    }
  }

  /** Discovers the issuer, and how the gateway is a client there. Throws if people cannot sign in. */
  async checkConsent({
    document_base,
    redirect_uri,
  }: {
    document_base: string;
    redirect_uri: string;
  }): Promise<{ issuer: string; client: string }> {
    const found = await this.discover();
    assertPkce(found);
    const { issuer, metadata } = found;
    const known = await this.knownClient(found, `${document_base}${issuerMark(issuer)}`);
    if (known !== null)
      return { issuer, client: this.auth.client_id === null ? "a metadata document" : "configured" };
    if (metadata.registration_endpoint === undefined) throw registersNobody(issuer, redirect_uri);
    return { issuer, client: "registered at the first sign-in" };
  }

  /** Reads the metadata of the configured issuer. Throws if it does not exchange tokens. */
  async checkExchange(issuer: string): Promise<void> {
    try {
      const { metadata } = await this.exchangeIssuer(issuer);
      if (metadata.grant_types_supported?.includes(EXCHANGE_GRANT) === false)
        throw oauthRefused(`the issuer ${new URL(issuer).host} does not exchange tokens`);
    } catch (error) {
      throw plainOAuthError(error, `the issuer ${new URL(issuer).host} cannot be discovered`);
    }
  }

  /** The issuer is the operator's choice, so it may be in a private network. */
  private async exchangeIssuer(
    issuer: string,
  ): Promise<{ send: FetchLike; metadata: AuthorizationServerMetadata }> {
    const local = isLoopbackHost(new URL(issuer).hostname);
    const send = guardedSender(this.egress, local);
    return { send, metadata: await this.serverMetadata(issuer, send, local) };
  }

  /** Exchanges the caller's token for one of the upstream, at the configured issuer only. */
  async exchange(subject_token: string, issuer: string, now: number): Promise<UpstreamTokenSet> {
    const { client_id, client_secret } = this.auth;
    const client: UpstreamClient =
      client_secret === null ? { client_id: client_id! } : { client_id: client_id!, client_secret };
    try {
      const { send, metadata } = await this.exchangeIssuer(issuer);
      const resource = (await loadSdk()).resourceUrlFromServerUrl(this.spec.url).href;
      const scopes = this.auth.scopes ?? [];
      const supported = metadata.token_endpoint_auth_methods_supported ?? [];
      const answer = await postAsClient(
        send,
        { url: metadata.token_endpoint, client, supported },
        {
          grant_type: EXCHANGE_GRANT,
          subject_token,
          subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
          resource,
          ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
        },
      );
      const said = readOAuthAnswer(new Uint8Array(await answer.arrayBuffer()));
      if (answer.status !== 200 || typeof said["access_token"] !== "string" || said["access_token"] === "")
        throw oauthRefused(
          `the issuer did not exchange the caller's token${toShownErrorCode(said["error"])}`,
        );
      return tokenSet(said as OAuthTokens, { scopes, issuer, metadata, client, resource, now });
    } catch (error) {
      throw plainOAuthError(error, "the issuer did not exchange the caller's token");
    }
  }
}

/** What the gateway says about itself to an issuer. */
export function clientMetadata(redirect_uri: string) {
  return {
    client_name: CLIENT_NAME,
    redirect_uris: [redirect_uri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  };
}

/** The redirect URI of a client that is registered by hand. */
const withoutMark = (redirect_uri: string): string => redirect_uri.replace(/\/[0-9a-f]{16}$/, "");

/** Distinguishes the redirect URIs of different issuers, so that one cannot get the code of another. */
export const issuerMark = (issuer: string): string => sha256Hex(issuer).slice(0, 16);

/** Asks for a refresh token where the issuer has a scope for it. */
function withOffline(scopes: readonly string[], { scopes_supported }: AuthorizationServerMetadata): string[] {
  const offline = scopes_supported?.includes("offline_access") === true ? ["offline_access"] : [];
  return [...new Set([...scopes, ...offline])];
}
