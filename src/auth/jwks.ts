/**
 * The issuer's signing keys: found by discovery and cached. An unknown key id causes at most one fetch per minute,
 * regardless of the number of bad tokens. After a failed fetch the old keys stay in use.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { EgressClient } from "../egress/egress.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, parseJsonBytes } from "../kernel/json/json.ts";

const REFETCH_MS = 60_000;
const FRESH_MS = 600_000;
/** Time between attempts while there are no keys at all: the issuer may be starting at the same time. */
const RETRY_MS = 5_000;
const MAX_BYTES = 1_048_576;
const MAX_KEYS = 200;

export interface JwksDeps {
  readonly egress: Pick<EgressClient, "request">;
  readonly env: RuntimeEnv;
  readonly warn?: (message: string, fields?: Record<string, unknown>) => void;
}

type KeySet = JWTVerifyGetKey;

export class IssuerKeys {
  private readonly issuer: string;
  private readonly parts: JwksDeps;
  private readonly jwks_url: string | null;
  private keys: KeySet | undefined;
  private discovered: JsonObject | undefined;
  private fetchedAt = Number.NEGATIVE_INFINITY;
  private triedAt = Number.NEGATIVE_INFINITY;
  private refetchedAt = Number.NEGATIVE_INFINITY;
  /** A token was verified since the first fetch: the issuer works, so an unknown key may be a new one. */
  private confirmed = false;
  private running: Promise<void> | undefined;

  /** `jwks_url` replaces discovery. */
  constructor(issuer: string, parts: JwksDeps, jwks_url: string | null = null) {
    this.issuer = issuer;
    this.parts = parts;
    this.jwks_url = jwks_url;
  }

  /** Returns the key for a token's header, for jose's `jwtVerify`. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    await this.ready();
    try {
      return await this.keys!(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await this.refetched())) throw error;
      return this.keys!(header, token);
    }
  };

  /** Returns the issuer's discovery document, as fresh as the keys. Frequent calls cause no further fetches. */
  async document(): Promise<JsonObject> {
    await this.ready();
    return this.discovered!;
  }

  confirm(): void {
    this.confirmed = true;
  }

  /** Returns a problem with discovery or the keys for svc doctor, or undefined. */
  async check(): Promise<string | undefined> {
    try {
      await this.fetchKeys();
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }

  private async ready(): Promise<void> {
    const { env } = this.parts;
    if (this.keys === undefined) {
      if (env.elapsed() - this.triedAt >= RETRY_MS || this.running) await this.refresh();
      if (this.keys === undefined)
        throw new SvcError("unavailable", "the token's issuer cannot be reached to check it; try again");
    } else if (env.elapsed() - this.fetchedAt >= FRESH_MS && env.elapsed() - this.triedAt >= REFETCH_MS) {
      await this.refresh();
    }
  }

  /**
   * Returns whether newer keys were fetched, for an unknown key id. Until the first valid token, the initial fetch
   * counts, too, so that many bad tokens on a cold start cause one fetch instead of two.
   */
  private async refetched(): Promise<boolean> {
    const before = this.keys;
    if (this.running === undefined) {
      const now = this.parts.env.elapsed();
      if (now - this.refetchedAt < REFETCH_MS || (!this.confirmed && now - this.triedAt < REFETCH_MS))
        return false;
      this.refetchedAt = now;
    }
    await this.refresh();
    return this.keys !== before;
  }

  /** Runs one fetch at a time. Concurrent callers wait for it. */
  private refresh(): Promise<void> {
    this.running ??= this.attempt().finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  private async attempt(): Promise<void> {
    this.triedAt = this.parts.env.elapsed();
    try {
      this.keys = createLocalJWKSet(await this.fetchKeys());
      this.fetchedAt = this.parts.env.elapsed();
    } catch (error) {
      this.parts.warn?.("the token issuer's keys could not be fetched", { problem: messageOf(error) });
    }
  }

  private async fetchKeys(): Promise<JSONWebKeySet> {
    const uri = this.jwks_url ?? (await this.discover());
    const { keys } = await this.get(uri);
    if (!Array.isArray(keys) || keys.length > MAX_KEYS)
      throw new SvcError("invalid", "the issuer's key set is not a list of keys");
    // Drops symmetric keys: every reader of the public document could sign with them.
    return {
      keys: keys.filter((key) => isJsonObject(key) && key["kty"] !== "oct"),
    } as JSONWebKeySet;
  }

  /** Fetches the discovery document and returns the URL of the keys. */
  private async discover(): Promise<string> {
    const discovery = await this.get(
      `${this.issuer.replace(/(?<!\/)\/+$/, "")}/.well-known/openid-configuration`,
    );
    if (discovery["issuer"] !== this.issuer)
      throw new SvcError("invalid", "the issuer's discovery document names another issuer");
    const uri = discovery["jwks_uri"];
    if (typeof uri !== "string")
      throw new SvcError("invalid", "the issuer's discovery document has no jwks_uri");
    if (this.issuer.startsWith("https:") && !uri.startsWith("https:")) {
      throw new SvcError("invalid", "the issuer's keys are not served over https");
    }
    this.discovered = discovery;
    return uri;
  }

  private async get(url: string): Promise<JsonObject> {
    const { status, body } = await this.parts.egress.request(url, {
      headers: { accept: "application/json" },
      max_bytes: MAX_BYTES,
    });
    if (status !== 200) throw new SvcError("delivery_failed", `${new URL(url).host} answered ${status}`);
    const value = parseJsonBytes(body);
    if (!isJsonObject(value))
      throw new SvcError("invalid", `${new URL(url).host} did not answer with a JSON object`);
    return value;
  }
}
