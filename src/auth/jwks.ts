/**
 * The issuer's signing keys: found by discovery, cached, and fetched anew for an unknown key id at
 * most once a minute, however many bad tokens arrive. A fetch that fails leaves the old keys in use.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import type { Egress } from "../egress/egress.ts";
import type { Env } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, parseJsonBytes } from "../kernel/json.ts";

const REFETCH_MS = 60_000;
const FRESH_MS = 600_000;
/** Between attempts while there are no keys at all: the issuer may be starting up beside us. */
const RETRY_MS = 5_000;
const MAX_BYTES = 1_048_576;
const MAX_KEYS = 200;

export interface JwksParts {
  readonly egress: Pick<Egress, "request">;
  readonly env: Env;
  readonly warn?: (message: string, fields?: Record<string, unknown>) => void;
}

type KeySet = JWTVerifyGetKey;

export class IssuerKeys {
  private readonly issuer: string;
  private readonly parts: JwksParts;
  private keys: KeySet | undefined;
  private discovered: JsonObject | undefined;
  private fetchedAt = Number.NEGATIVE_INFINITY;
  private triedAt = Number.NEGATIVE_INFINITY;
  private refetchedAt = Number.NEGATIVE_INFINITY;
  /** A token was verified since the keys were first fetched: the issuer works, so an unknown key may be a new one. */
  private confirmed = false;
  private running: Promise<void> | undefined;

  constructor(issuer: string, parts: JwksParts) {
    this.issuer = issuer;
    this.parts = parts;
  }

  /** The key for a token's header; for jose's `jwtVerify`. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    await this.ready();
    try {
      return await this.keys!(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !(await this.refetched())) throw error;
      return this.keys!(header, token);
    }
  };

  /** The issuer's discovery document, as fresh as the keys: asking for it often fetches nothing more. */
  async document(): Promise<JsonObject> {
    await this.ready();
    return this.discovered!;
  }

  confirm(): void {
    this.confirmed = true;
  }

  /** What is wrong with discovery or the keys, for svc doctor; undefined where all is well. */
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
   * For an unknown key id: true when newer keys were fetched. Before any token proved good, the first fetch
   * counts too, so that a flood of bad tokens on a cold start causes one fetch and not two.
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

  /** One fetch at a time: whoever comes meanwhile waits for it. */
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
    const discovery = await this.get(`${this.issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`);
    if (discovery["issuer"] !== this.issuer)
      throw new SvcError("invalid", "the issuer's discovery document names another issuer");
    const uri = discovery["jwks_uri"];
    if (typeof uri !== "string")
      throw new SvcError("invalid", "the issuer's discovery document has no jwks_uri");
    if (this.issuer.startsWith("https:") && !uri.startsWith("https:")) {
      throw new SvcError("invalid", "the issuer's keys are not served over https");
    }
    const { keys } = await this.get(uri);
    if (!Array.isArray(keys) || keys.length > MAX_KEYS)
      throw new SvcError("invalid", "the issuer's key set is not a list of keys");
    this.discovered = discovery;
    // A symmetric key in a public document could be signed with by whoever reads it.
    return {
      keys: keys.filter((key) => isJsonObject(key) && key["kty"] !== "oct"),
    } as unknown as JSONWebKeySet;
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
