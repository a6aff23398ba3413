/**
 * Signs people in at the issuer: OpenID Connect authorization code flow with PKCE. This module talks to the issuer; the
 * console checks the browser and that each sign-in counts once. The issuer's tokens never leave this module: they
 * appear in no URL, log or error.
 */
import type { EgressClient } from "../egress/egress.ts";
import { SvcError } from "../kernel/errors.ts";
import { sha256 } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject, parseJsonBytes } from "../kernel/json/json.ts";
import type { OidcVerifier, VerifiedToken } from "./oidc.ts";

const MAX_BYTES = 262_144;
const FORM = "application/x-www-form-urlencoded";

interface SignInSettings {
  readonly issuer: string;
  readonly client_id: string;
  /** Null for a public client. */
  readonly client_secret: string | null;
  readonly groups_claim: string;
}

interface SignInParts {
  readonly egress: Pick<EgressClient, "request">;
  readonly verifier: Pick<OidcVerifier, "document" | "verifySignIn">;
  /** Counts invalid id tokens together with other bad credentials. */
  readonly failed?: () => void;
}

/** The parameters of one sign-in, which also identify its response. */
export interface SignInRequest {
  readonly redirect_uri: string;
  readonly state: string;
  readonly nonce: string;
  /** Sent to the issuer only as a hash until the code is redeemed. */
  readonly verifier: string;
}

export class IssuerSignIn {
  readonly issuer: string;
  private readonly settings: SignInSettings;
  private readonly parts: SignInParts;

  constructor(settings: SignInSettings, parts: SignInParts) {
    this.issuer = settings.issuer;
    this.settings = settings;
    this.parts = parts;
  }

  /** Returns the URL at which the browser signs in. */
  async address({ redirect_uri, state, nonce, verifier }: SignInRequest): Promise<string> {
    const document = await this.parts.verifier.document();
    const url = new URL(this.endpoint(document, "authorization_endpoint"));
    const asked = {
      response_type: "code",
      client_id: this.settings.client_id,
      redirect_uri,
      scope: this.scope(document),
      state,
      nonce,
      code_challenge: sha256(verifier).toString("base64url"),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Redeems the code, verifies the id token and returns the person who signed in. */
  async redeem(code: string, { redirect_uri, verifier, nonce }: SignInRequest): Promise<VerifiedToken> {
    const token = await this.idToken({
      grant_type: "authorization_code",
      code,
      redirect_uri,
      code_verifier: verifier,
    });
    try {
      return await this.parts.verifier.verifySignIn(token, this.settings.client_id, nonce);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "unauthenticated") throw error;
      this.parts.failed?.();
      throw new SvcError("unauthenticated", "the issuer's answer does not prove who you are");
    }
  }

  /** Throws if a problem keeps people from signing in, for svc doctor. */
  async check(): Promise<void> {
    const document = await this.parts.verifier.document();
    this.endpoint(document, "authorization_endpoint");
    this.endpoint(document, "token_endpoint");
  }

  private async idToken(fields: Record<string, string>): Promise<string> {
    const document = await this.parts.verifier.document();
    const { headers, body } = this.asClient(document, fields);
    const answer = await this.parts.egress.request(this.endpoint(document, "token_endpoint"), {
      method: "POST",
      headers: { ...headers, accept: "application/json", "content-type": FORM },
      secret_headers: ["authorization"],
      body: new URLSearchParams(body).toString(),
      max_bytes: MAX_BYTES,
    });
    const said = readObject(answer.body);
    if (answer.status !== 200)
      throw new SvcError(
        "unauthenticated",
        `the issuer did not redeem the sign-in${toShownErrorCode(said["error"])}`,
      );
    const token = said["id_token"];
    if (typeof token !== "string")
      throw new SvcError("unauthenticated", "the issuer's answer holds no id token");
    return token;
  }

  /**
   * Sends the secret in the header, unless the issuer accepts it only in the body. A public client sends only its id.
   */
  private asClient(document: JsonObject, fields: Record<string, string>) {
    const { client_id, client_secret } = this.settings;
    if (client_secret === null) return { headers: {}, body: { ...fields, client_id } };
    const ways = listOf(document["token_endpoint_auth_methods_supported"]);
    if (ways.includes("client_secret_post") && !ways.includes("client_secret_basic"))
      return { headers: {}, body: { ...fields, client_id, client_secret } };
    const pair = [client_id, client_secret].map(formEncoded).join(":");
    return { headers: { authorization: `Basic ${Buffer.from(pair).toString("base64")}` }, body: fields };
  }

  /**
   * Some issuers have a separate scope for groups, others include groups in the profile. Requests only scopes that the
   * issuer offers.
   */
  private scope(document: JsonObject): string {
    const offered = listOf(document["scopes_supported"]);
    const wanted = ["profile", this.settings.groups_claim].filter((scope) => offered.includes(scope));
    return [...new Set(["openid", ...wanted])].join(" ");
  }

  private endpoint(document: JsonObject, name: string): string {
    const value = document[name];
    const protocol = typeof value === "string" && URL.canParse(value) ? new URL(value).protocol : null;
    if (protocol === null)
      throw new SvcError(
        "unavailable",
        `the issuer's discovery document has no ${name}, so nobody can sign in`,
      );
    if (protocol !== "https:" && (protocol !== "http:" || this.issuer.startsWith("https:")))
      throw new SvcError("unavailable", `the issuer's ${name} is not served over https`);
    return value as string;
  }
}

/** Returns an error code of the protocol if it is safe to show. Does not repeat the issuer's free text. */
export function toShownErrorCode(code: unknown): string {
  return typeof code === "string" && /^[\w.-]{1,64}$/.test(code) ? ` (${code})` : "";
}

/** Encodes one half of the client's Basic credentials, so that a colon inside it does not look like the separator. */
function formEncoded(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The response may contain tokens, so the error does not quote it. */
function readObject(body: Uint8Array): JsonObject {
  try {
    const value = parseJsonBytes(body);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}
