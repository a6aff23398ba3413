/** Tokens of a holder at an upstream's issuer, and the ways in which an issuer refuses to give some. */
import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
  OAuthTokens,
} from "@modelcontextprotocol/client";
import { SvcError } from "../kernel/errors.ts";
import { oauthRefused, plainOAuthError } from "./oauth-requests.ts";

const EXPIRY_DEFAULT_MS = 3_600_000;

export type UpstreamClient = OAuthClientInformationMixed;

/** Tokens of one holder, with everything that refreshing and revoking them needs. */
export interface UpstreamTokenSet {
  access_token: string;
  refresh_token: string | null;
  expires_ms: number | null;
  scopes: string[];
  issuer: string;
  metadata: AuthorizationServerMetadata;
  client: UpstreamClient;
  resource: string;
}

/** The issuer no longer accepts the refresh token. */
export class ConsentEndedError extends SvcError {
  constructor() {
    super("unauthenticated", "the issuer no longer accepts the stored consent");
  }
}

/** The client is unknown to the issuer, for example because it was deleted there. */
export class UnknownClientError extends SvcError {
  constructor() {
    super("delivery_failed", "the issuer no longer knows this gateway; try again to register it");
  }
}

export const splitScopes = (text: string | undefined): string[] =>
  (text ?? "").split(" ").filter((one) => one !== "");

/** An error of the token endpoint, by its code. */
export function codedError(error: unknown, what: string): SvcError {
  const { code } = error as { code?: unknown };
  if (code === "invalid_grant") return new ConsentEndedError();
  if (code === "invalid_client" || code === "unauthorized_client") return new UnknownClientError();
  return plainOAuthError(error, what);
}

/** The tokens of an issuer's answer. Throws if it holds no bearer token. */
export function tokenSet(
  { access_token, refresh_token, expires_in, scope, token_type }: OAuthTokens,
  {
    now,
    scopes,
    ...rest
  }: Omit<UpstreamTokenSet, "access_token" | "refresh_token" | "expires_ms"> & { now: number },
): UpstreamTokenSet {
  if (!/^bearer$/i.test(String(token_type)) || !/^[\x21-\x7e]{1,16384}$/.test(access_token))
    throw oauthRefused("the issuer's answer holds no bearer token");
  return {
    ...rest,
    access_token,
    refresh_token: refresh_token ?? null,
    expires_ms: now + (expires_in === undefined ? EXPIRY_DEFAULT_MS : Math.max(0, expires_in) * 1_000),
    scopes: scope === undefined ? scopes : splitScopes(scope),
  };
}
