/**
 * Turns an Authorization header into a principal: first as an API key, then as a token of the issuer. Checks validity
 * on every call, so that a disabled or expired key stops working at once.
 */
import { isExpired } from "../govern/expiry.ts";
import { type CallerPrincipal, principalName, type StoredPrincipal } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { SvcError } from "../kernel/errors.ts";
import type { KeyFile } from "./key-file.ts";
import type { FoundKey, KeyRefusal } from "./keys.ts";
import { looksLikeToken, type OidcVerifier } from "./oidc.ts";
import type { IssuerSignIn } from "./sign-in.ts";

/** The reason for a rejected credential. `token` covers every invalid token. */
export type AuthFailure = "missing" | "malformed" | "token" | KeyRefusal;

interface AuthenticatorOptions {
  readonly env: RuntimeEnv;
  /** Null if the server accepts only tokens. */
  readonly keys: KeyFile | null;
  readonly oidc: OidcVerifier | null;
  /** Set if people can sign in at the issuer. */
  readonly signIn?: IssuerSignIn | null;
  /** Counts failures for the auth_failures alert. Must not throw. */
  readonly failed?: (failure: AuthFailure) => void;
}

export interface AuthenticatedCaller {
  readonly principal: CallerPrincipal;
  readonly kind: "key" | "oidc";
  /** When the credential expires, as far as this process knows. */
  readonly expires_ms: number | null;
  /** Lets a session look the key up with `holderOf` without storing it. Null for a token. */
  readonly key_sha256: string | null;
}

const MAX_CHARS = 16_384;
const BEARER = /^bearer +([\x21-\x7e]+) *$/i;
/** The characters of a bearer credential. An empty text is never a credential. */
const CREDENTIAL = /^[\x21-\x7e]+$/;

export class RequestAuthenticator {
  private readonly options: AuthenticatorOptions;

  constructor(options: AuthenticatorOptions) {
    this.options = options;
  }

  get signIn(): IssuerSignIn | null {
    return this.options.signIn ?? null;
  }

  /**
   * Throws `unauthenticated` (401), `forbidden` for a token without a role, or `unavailable` while the issuer is
   * unreachable.
   */
  async authenticate(authorization: string | undefined): Promise<CallerPrincipal> {
    return (await this.identify(authorization)).principal;
  }

  /**
   * Returns the holder of an API key synchronously. Returns undefined for anything else, which needs `authenticate`.
   */
  keyHolder(authorization: string | undefined): CallerPrincipal | undefined {
    const token = tokenIn(authorization);
    const found = token === undefined ? undefined : this.findKey(token);
    return found === undefined || typeof found === "string" ? undefined : found.principal;
  }

  /**
   * Authenticates, and adds the data that a long-lived connection needs to check its credential again. A token for
   * `resource` is valid, too.
   */
  async identify(authorization: string | undefined, resource?: string): Promise<AuthenticatedCaller> {
    if (authorization === undefined || authorization === "") {
      throw this.refuse("missing", "missing credential: send Authorization: Bearer <API key or OIDC token>");
    }
    const token = tokenIn(authorization);
    if (token === undefined) throw this.refuse("malformed");
    return this.authenticateToken(token, resource);
  }

  /** Authenticates a bare credential, also from the console's login form. */
  async authenticateToken(token: string, resource?: string): Promise<AuthenticatedCaller> {
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
      const { principal, expires_ms } = await oidc.verify(token, resource);
      return { principal, kind: "oidc", expires_ms, key_sha256: null };
    } catch (error) {
      if (error instanceof SvcError && error.code === "unauthenticated") throw this.refuse("token");
      throw error;
    }
  }

  /**
   * Returns the current holder of the key with this hash, or undefined once the key is disabled, expired or deleted.
   */
  holderOf(key_sha256: string): CallerPrincipal | undefined {
    const found = this.options.keys?.ring.findHash(key_sha256, this.options.env.now()) ?? "unknown";
    return typeof found === "string" ? undefined : found.principal;
  }

  /**
   * Returns the current holder of a credential, or null once it has expired. A token's holder stays the same, because
   * settings do not change while the process runs.
   */
  current(caller: AuthenticatedCaller): CallerPrincipal | null {
    const { principal, key_sha256 } = caller;
    if (key_sha256 !== null) return this.holderOf(key_sha256) ?? null;
    return isExpired(caller, this.options.env.now()) ? null : principal;
  }

  /** Returns the current holder of the key with this name, for chat users mapped to key names. */
  named(name: string): CallerPrincipal | undefined {
    return this.options.keys?.ring.findName(name, this.options.env.now());
  }

  /**
   * Returns the current principal of a stored one, with its current roles, groups and caps. Null if it is no longer
   * valid.
   */
  today({ principal, groups, credential }: StoredPrincipal): CallerPrincipal | null {
    const { kind, name } = principalName(principal);
    if (kind === "oidc" || kind === "act") return this.options.oidc?.holder(principal, groups) ?? null;
    if (kind !== "key") return null;
    return this.options.keys?.ring.findName(name, this.options.env.now(), credential) ?? null;
  }

  /** Whether a stored principal's key is known here, and disabled or expired. */
  hasEnded({ principal, credential }: StoredPrincipal): boolean {
    const { kind, name } = principalName(principal);
    const { keys, env } = this.options;
    return kind === "key" && keys !== null && keys.ring.hasEnded(name, env.now(), credential);
  }

  /** Reloads the key file and returns the number of keys. If the file does not load, throws and keeps the old keys. */
  async reload(): Promise<number> {
    return (await this.options.keys?.reload()) ?? 0;
  }

  private findKey(token: string): FoundKey | KeyRefusal {
    return this.options.keys?.ring.find(token, this.options.env.now()) ?? "unknown";
  }

  /** Gives all failures the same message, so that an outsider does not learn whether a key exists. */
  private refuse(failure: AuthFailure, message = "invalid credential"): SvcError {
    this.options.failed?.(failure);
    return new SvcError("unauthenticated", message);
  }
}

function tokenIn(authorization: string | undefined): string | undefined {
  if (authorization === undefined || authorization.length > MAX_CHARS) return undefined;
  return BEARER.exec(authorization)?.[1];
}
