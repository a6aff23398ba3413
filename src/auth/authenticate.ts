/**
 * Turns an Authorization header into a principal: an API key, else a token of the issuer. Validity is
 * judged on every call, so that a key that was disabled or has expired stops counting at once.
 */
import type { Env } from "../kernel/env.ts";
import { SvcError } from "../kernel/errors.ts";
import { type KeptPrincipal, type Principal, principalName } from "../model/roles.ts";
import type { KeyFile } from "./key-file.ts";
import type { FoundKey, KeyRefusal } from "./keys.ts";
import { looksLikeToken, type OidcVerifier } from "./oidc.ts";
import type { IssuerSignIn } from "./sign-in.ts";

/** Why a caller was not let in; `token` is any token that proves nothing. */
export type AuthFailure = "missing" | "malformed" | "token" | KeyRefusal;

interface AuthenticatorOptions {
  readonly env: Env;
  /** Null where only tokens are accepted. */
  readonly keys: KeyFile | null;
  readonly oidc: OidcVerifier | null;
  /** Present where people may sign in at the issuer. */
  readonly signIn?: IssuerSignIn | null;
  /** Counts failures, for the auth_failures alert; must not throw. */
  readonly failed?: (failure: AuthFailure) => void;
}

export interface Authenticated {
  readonly principal: Principal;
  readonly kind: "key" | "oidc";
  /** When the credential stops counting, as far as that is known now. */
  readonly expires_ms: number | null;
  /** For a session that must not keep the key: pass it to `holderOf`. Null for a token. */
  readonly key_sha256: string | null;
}

const MAX_CHARS = 16_384;
const BEARER = /^bearer +([\x21-\x7e]+) *$/i;
/** What can be sent as a bearer, and so the only thing that is a credential anywhere: never an empty text. */
const CREDENTIAL = /^[\x21-\x7e]+$/;

export class Authenticator {
  private readonly options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.options = options;
  }

  get signIn(): IssuerSignIn | null {
    return this.options.signIn ?? null;
  }

  /**
   * Throws `unauthenticated` (401), `forbidden` for a token without a role, `unavailable` while the issuer is out of
   * reach.
   */
  async authenticate(authorization: string | undefined): Promise<Principal> {
    return (await this.identify(authorization)).principal;
  }

  /** The holder of an API key, at once; undefined for whatever else is sent, which `authenticate` judges. */
  keyHolder(authorization: string | undefined): Principal | undefined {
    const token = tokenIn(authorization);
    const found = token === undefined ? undefined : this.findKey(token);
    return found === undefined || typeof found === "string" ? undefined : found.principal;
  }

  /** The same, with what a long-lived connection needs to see whether its credential still counts. */
  async identify(authorization: string | undefined): Promise<Authenticated> {
    if (authorization === undefined || authorization === "") {
      throw this.refuse("missing", "missing credential: send Authorization: Bearer <API key or OIDC token>");
    }
    const token = tokenIn(authorization);
    if (token === undefined) throw this.refuse("malformed");
    return this.authenticateToken(token);
  }

  /** The same for a bare credential, as it is pasted into the console's login form. */
  async authenticateToken(token: string): Promise<Authenticated> {
    const { oidc } = this.options;
    if (token === "") throw this.refuse("missing");
    if (token.length > MAX_CHARS || !CREDENTIAL.test(token)) throw this.refuse("malformed");
    const found = this.findKey(token);
    if (typeof found !== "string") {
      const { principal, expires_ms, key_sha256 } = found;
      return { principal, kind: "key", expires_ms, key_sha256 };
    }
    if (found !== "unknown" || oidc === null || !looksLikeToken(token)) throw this.refuse(found);
    try {
      const { principal, expires_ms } = await oidc.verify(token);
      return { principal, kind: "oidc", expires_ms, key_sha256: null };
    } catch (error) {
      if (error instanceof SvcError && error.code === "unauthenticated") throw this.refuse("token");
      throw error;
    }
  }

  /** Who holds the key with this hash now; undefined once it is disabled, expired or gone. */
  holderOf(key_sha256: string): Principal | undefined {
    const found = this.options.keys?.ring.findHash(key_sha256, this.options.env.now()) ?? "unknown";
    return typeof found === "string" ? undefined : found.principal;
  }

  /**
   * Who holds a credential by now; null once it has ended. Settings do not change under a process, so a token's
   * holder stays.
   */
  current({ principal, expires_ms, key_sha256 }: Authenticated): Principal | null {
    if (key_sha256 !== null) return this.holderOf(key_sha256) ?? null;
    return expires_ms !== null && this.options.env.now() >= expires_ms ? null : principal;
  }

  /** Who the key of this name is now, for chat users mapped to key names. */
  named(name: string): Principal | undefined {
    return this.options.keys?.ring.findName(name, this.options.env.now());
  }

  /** Whom a kept principal stands for now, with the roles, groups and caps of today; null once it no longer counts. */
  today({ principal, groups, credential }: KeptPrincipal): Principal | null {
    const { kind, name } = principalName(principal);
    if (kind === "oidc") return this.options.oidc?.holder(principal, groups) ?? null;
    if (kind !== "key") return null;
    return this.options.keys?.ring.findName(name, this.options.env.now(), credential) ?? null;
  }

  /** Reads the key file again; throws and keeps the old keys where it does not load. Answers their number. */
  async reload(): Promise<number> {
    return (await this.options.keys?.reload()) ?? 0;
  }

  private findKey(token: string): FoundKey | KeyRefusal {
    return this.options.keys?.ring.find(token, this.options.env.now()) ?? "unknown";
  }

  /** All reasons are told alike: an outsider does not learn whether a key exists. */
  private refuse(failure: AuthFailure, message = "invalid credential"): SvcError {
    this.options.failed?.(failure);
    return new SvcError("unauthenticated", message);
  }
}

function tokenIn(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > MAX_CHARS) return undefined;
  return BEARER.exec(authorization)?.[1];
}
