/**
 * Requests to issuers and tool servers during a sign-in: guarded, bounded, without redirects. No error quotes an answer,
 * because answers hold tokens.
 */
import type {
  AuthorizationServerMetadata,
  FetchLike,
  OAuthClientInformationMixed,
} from "@modelcontextprotocol/client";
import { isLoopbackHost } from "../config/loopback.ts";
import type { EgressClient } from "../egress/egress.ts";
import { SvcError } from "../kernel/errors.ts";
import { isJsonObject, parseJsonBytes } from "../kernel/json/json.ts";
import { toShownErrorCode } from "./sign-in.ts";

const MAX_BYTES = 262_144;
const TIMEOUT_MS = 10_000;
const FORM = "application/x-www-form-urlencoded";

export const oauthRefused = (message: string): SvcError => new SvcError("delivery_failed", message);

/** Sends bounded requests without redirects, to https or, for a local upstream, to this machine. */
export function guardedSender(egress: Pick<EgressClient, "request">, local: boolean): FetchLike {
  return async (input, init) => {
    const url = new URL(String(input));
    assertSecureEndpoint(url, local);
    const { body } = init ?? {};
    const answer = await egress.request(url.href, {
      method: init?.method ?? "GET",
      headers: Object.fromEntries(new Headers(init?.headers)),
      ...(body === undefined || body === null ? {} : { body: String(body) }),
      follow_redirects: false,
      max_bytes: MAX_BYTES,
      timeout_ms: TIMEOUT_MS,
    });
    const { status } = answer;
    if (status >= 300 && status < 400)
      throw oauthRefused(`${url.host} answers with a redirect, which is not followed`);
    const kept = ["content-type", "www-authenticate"].flatMap((name) => {
      const value = answer.headers[name];
      return value === undefined ? [] : [[name, value] as [string, string]];
    });
    const bytes = answer.body.length === 0 ? null : new Uint8Array(answer.body);
    return new Response(bytes, { status: Math.max(status, 200), headers: kept });
  };
}

export function assertSecureEndpoint(url: URL, local: boolean): void {
  if (url.username !== "" || url.password !== "")
    throw oauthRefused(`${url.host} is named with credentials in its URL`);
  if (url.protocol === "https:" || (url.protocol === "http:" && local && isLoopbackHost(url.hostname)))
    return;
  throw oauthRefused(`${url.host} is not served over https`);
}

export function assertPkce({
  issuer,
  metadata,
}: {
  issuer: string;
  metadata: AuthorizationServerMetadata;
}): void {
  if (metadata.code_challenge_methods_supported?.includes("S256") !== true)
    throw oauthRefused(`the issuer ${new URL(issuer).host} does not support PKCE, which protects the code`);
}

export const registersNobody = (issuer: string, redirect_uri: string): SvcError =>
  oauthRefused(
    `the issuer ${new URL(issuer).host} registers no clients automatically: register this gateway there with the redirect URI ${redirect_uri}, and set auth.issuer, auth.client_id and auth.client_secret of the upstream`,
  );

/** Removes what an error of a library may quote. */
export function plainOAuthError(error: unknown, what: string): SvcError {
  if (error instanceof SvcError) return error;
  const { errorCode, code, name } = error as { errorCode?: unknown; code?: unknown; name?: unknown };
  if (name === "IssuerMismatchError") return oauthRefused(`${what}: the issuer is not the expected one`);
  return oauthRefused(`${what}${toShownErrorCode(errorCode ?? code ?? name)}`);
}

/** The revocation endpoint, and the ways in which a client authenticates there. */
export function revocationEndpoint(metadata: AuthorizationServerMetadata): {
  url: string | undefined;
  supported: string[];
} {
  const { revocation_endpoint: url, revocation_endpoint_auth_methods_supported: methods } =
    metadata as Readonly<Record<string, unknown>>;
  const supported = methods ?? metadata.token_endpoint_auth_methods_supported ?? [];
  return { url: url === undefined ? undefined : String(url), supported: supported as string[] };
}

interface ClientEndpoint {
  url: string;
  client: OAuthClientInformationMixed;
  /** The ways in which the endpoint lets a client authenticate. */
  supported: readonly string[];
}

export async function postAsClient(
  send: FetchLike,
  { url, client, supported }: ClientEndpoint,
  fields: Record<string, string>,
): Promise<Response> {
  const { selectClientAuthMethod } = await import("@modelcontextprotocol/client");
  const method = selectClientAuthMethod(client, [...supported]);
  const { client_id, client_secret = "" } = client as { client_id: string; client_secret?: string };
  const pair = [client_id, client_secret].map(encodeURIComponent).join(":");
  const inBody = method === "client_secret_post" ? { client_id, client_secret } : { client_id };
  const body = new URLSearchParams(method === "client_secret_basic" ? fields : { ...fields, ...inBody });
  const basic = { authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
  const headers = {
    accept: "application/json",
    "content-type": FORM,
    ...(method === "client_secret_basic" ? basic : {}),
  };
  return send(url, { method: "POST", headers, body: body.toString() });
}

/** The answer may hold tokens, so no error quotes it. */
export function readOAuthAnswer(body: Uint8Array): Record<string, unknown> {
  try {
    const value = parseJsonBytes(body);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
