/**
 * Bearer tokens of an OpenID Connect issuer. A token is valid only if the issuer's public key signed it for this
 * server's audience, and it has not expired. Header fields that select algorithms, embedded keys or key URLs are
 * ignored. The principal's identity includes the issuer, so it cannot collide with an API key.
 */

import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from "jose";
import { isExpired } from "../govern/expiry.ts";
import {
  actingTokenId,
  type CallerPrincipal,
  type PrincipalRole,
  principalName,
  RESERVED_NAMES,
  tokenId,
} from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { forbiddenError, SvcError } from "../kernel/errors.ts";
import { sameSecret, sha256Hex } from "../kernel/hash.ts";
import { isJsonObject, type JsonObject } from "../kernel/json/json.ts";
import { LruMap } from "../kernel/lru.ts";
import { IssuerKeys, type JwksDeps } from "./jwks.ts";

/** Asymmetric algorithms only: with a shared secret, every verifier could also sign. */
export const SIGNING_ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
const TYPES = new Set(["jwt", "at+jwt", "application/jwt", "application/at+jwt"]);
const MAX_CHARS = 16_384;
const SUBJECT_CHARS = 256;
const MAX_ACTORS = 10;
/** For `nbf` and `iat`, if the issuer's clock is slightly ahead. Expiry has no tolerance. */
const CLOCK_TOLERANCE_S = 5;
/**
 * How long a verified token is trusted before its signature is checked again, so that a withdrawn key stops working.
 */
const TRUST_MS = 60_000;
const TRUSTED_TOKENS = 10_000;

export interface OidcSettings {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly role_map: Readonly<Record<string, PrincipalRole>>;
  readonly tenant_map: Readonly<Record<string, string>>;
  readonly groups_claim: string;
  readonly max_permissions: Readonly<Record<string, readonly string[]>> | null;
}

export interface VerifiedToken {
  readonly principal: CallerPrincipal;
  readonly expires_ms: number;
}

interface Trusted extends VerifiedToken {
  readonly until: number;
}

const refused = () => new SvcError("unauthenticated", "invalid credential");

/** Checks for three parts of base64url. Anything else needs no further check. */
export function looksLikeToken(text: string): boolean {
  return text.length <= MAX_CHARS && /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

export class OidcVerifier {
  private readonly settings: OidcSettings;
  private readonly env: RuntimeEnv;
  private readonly keys: IssuerKeys;
  private readonly trusted = new LruMap<string, Trusted>(TRUSTED_TOKENS);

  constructor(settings: OidcSettings, parts: JwksDeps) {
    this.settings = settings;
    this.env = parts.env;
    this.keys = new IssuerKeys(settings.issuer, parts);
  }

  /**
   * Verifies a token for this server's audience or for `resource`. Throws 401 for an invalid token, 403 for a holder
   * without a role, and 503 while the token cannot be checked.
   */
  async verify(token: string, resource?: string): Promise<VerifiedToken> {
    const hash = sha256Hex(resource === undefined ? token : `${token} ${resource}`);
    const known = this.trusted.get(hash);
    if (known !== undefined && this.env.elapsed() < known.until) {
      if (!isExpired(known, this.env.now())) return known;
      throw refused();
    }
    const { audience } = this.settings;
    const accepted = resource === undefined ? audience : [...audience, resource];
    const verified = this.verified(await this.check(token, accepted));
    this.trusted.set(hash, { ...verified, until: this.env.elapsed() + TRUST_MS });
    return verified;
  }

  /**
   * Verifies the id token of a sign-in: for this client, and for the sign-in with this nonce. The token is not cached,
   * so it is not a credential anywhere else.
   */
  async verifySignIn(token: string, client_id: string, nonce: string): Promise<VerifiedToken> {
    const payload = await this.check(token, [client_id]);
    if ((payload["azp"] ?? client_id) !== client_id) throw refused();
    if (typeof payload["nonce"] !== "string" || !sameSecret(payload["nonce"], nonce)) throw refused();
    return this.verified(payload);
  }

  /** Returns the issuer's discovery document, with its sign-in endpoints. */
  document(): Promise<JsonObject> {
    return this.keys.document();
  }

  /** Returns a problem with the issuer for svc doctor, or undefined. */
  doctor(): Promise<string | undefined> {
    return this.keys.check();
  }

  private verified(payload: JWTPayload): VerifiedToken {
    const expires_ms = payload.exp! * 1_000;
    if (isExpired({ expires_ms }, this.env.now())) throw refused();
    return { principal: this.principal(payload), expires_ms };
  }

  private async check(token: string, audience: readonly string[]): Promise<JWTPayload> {
    if (!looksLikeToken(token) || !this.worthChecking(token)) throw refused();
    try {
      const { payload } = await jwtVerify(token, this.keys.find, {
        issuer: this.settings.issuer,
        audience: [...audience],
        algorithms: SIGNING_ALGORITHMS,
        requiredClaims: ["exp", "sub", "iss", "aud"],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: new Date(this.env.now()),
      });
      this.keys.confirm();
      return payload;
    } catch (error) {
      // A SvcError means that the issuer is unreachable. Any other error means that the token is invalid.
      if (error instanceof SvcError) throw error;
      throw refused();
    }
  }

  /** Checks the claims of the token before this process fetches anything for it. */
  private worthChecking(token: string): boolean {
    try {
      const { alg, crit, b64, typ } = decodeProtectedHeader(token) as Record<string, unknown>;
      if (
        typeof alg !== "string" ||
        !SIGNING_ALGORITHMS.includes(alg) ||
        crit !== undefined ||
        b64 !== undefined
      )
        return false;
      if (typ !== undefined && (typeof typ !== "string" || !TYPES.has(typ.toLowerCase()))) return false;
      return decodeJwt(token).iss === this.settings.issuer;
    } catch {
      return false;
    }
  }

  /**
   * Returns the holder of such a token under the current settings, or null if they give it no role or name another
   * issuer.
   */
  holder(id: string, groups: readonly string[]): CallerPrincipal | null {
    const { kind, issuer, name } = principalName(id);
    if ((kind !== "oidc" && kind !== "act") || issuer !== this.settings.issuer) return null;
    if (this.tenantsOf(groups).length > 1) return null;
    const [sub, ...acting] = kind === "oidc" ? [name] : (JSON.parse(name) as [string, ...string[]]);
    const principal = this.principalOf(sub, groups, acting);
    return principal.roles.length === 0 ? null : principal;
  }

  private principal(payload: JWTPayload): CallerPrincipal {
    const sub = subjectOf(payload);
    const acting = actorsOf(payload);
    if ([sub, ...acting].some((name) => RESERVED_NAMES.has(name)))
      throw forbiddenError("the token's subject is a name of the service itself");
    const groups = groupsOf(payload, this.settings.groups_claim);
    if (this.tenantsOf(groups).length > 1)
      throw forbiddenError("this token's groups are bound to more than one tenant");
    const principal = this.principalOf(sub, groups, acting);
    if (principal.roles.length === 0) throw forbiddenError("no role is mapped to this token's groups");
    return principal;
  }

  private tenantsOf(groups: readonly string[]): string[] {
    const { tenant_map } = this.settings;
    return [
      ...new Set(groups.flatMap((group) => (Object.hasOwn(tenant_map, group) ? [tenant_map[group]!] : []))),
    ];
  }

  private principalOf(sub: string, groups: readonly string[], acting: readonly string[]): CallerPrincipal {
    const { role_map, max_permissions: caps, issuer } = this.settings;
    const mapped = [
      ...new Set(groups.flatMap((group) => (Object.hasOwn(role_map, group) ? [role_map[group]!] : []))),
    ];
    const isActing = acting.length > 0;
    const roles: PrincipalRole[] = isActing && mapped.length > 0 ? ["agent"] : mapped;
    const [tenant] = this.tenantsOf(groups);
    return Object.freeze({
      id: isActing ? actingTokenId(issuer, sub, acting) : tokenId(issuer, sub),
      name: sub,
      roles,
      groups,
      tenant: tenant ?? null,
      ...(tenant === undefined ? {} : { tenant_only: true }),
      max_permissions:
        caps === null
          ? null
          : [...new Set(groups.flatMap((group) => (Object.hasOwn(caps, group) ? caps[group]! : [])))],
      allow_observe: false,
      ...(isActing ? { acting: Object.freeze([...acting]) } : {}),
    });
  }
}

/** The subject of a token, or of one of its actors. */
function subjectOf({ sub }: { readonly sub?: unknown }): string {
  if (typeof sub !== "string" || sub === "" || sub.length > SUBJECT_CHARS || /[\p{C}\u2028\u2029]/u.test(sub))
    throw refused();
  return sub;
}

/** The subjects of the nested claim `act` (RFC 8693), outermost first. A claim that cannot be read is refused. */
function actorsOf(payload: JWTPayload): string[] {
  const found: string[] = [];
  let claim: unknown = payload["act"];
  while (claim !== undefined) {
    if (!isJsonObject(claim) || found.length === MAX_ACTORS) throw refused();
    found.push(subjectOf(claim));
    claim = claim["act"];
  }
  return found;
}

/** Reads the claim by its full name, else as a dotted path. A single text counts as a list of one. */
function groupsOf(payload: JWTPayload, claim: string): string[] {
  const value = Object.hasOwn(payload, claim)
    ? payload[claim]
    : claim.split(".").reduce<unknown>(member, payload);
  const list = Array.isArray(value) ? value : [value];
  return [...new Set(list.filter((group): group is string => typeof group === "string" && group !== ""))];
}

function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}
