/**
 * Per-caller quotas of this server. A quota counts separately for each tenant that matches its `match.tenant` and each
 * actor that matches its `match.actor`; a quota without a match counts all callers together. If several quotas match,
 * all apply. A caller over a quota is rejected before anything is recorded. Each server counts its own requests, waits
 * and sessions; open requests are counted in the store.
 */
import type { CallerQuota } from "../../config/sections/quotas.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { TooManyError } from "../../kernel/errors.ts";
import { LruMap } from "../../kernel/lru.ts";
import { globMatches } from "../../kernel/text/glob.ts";

/** Identity that quotas match. */
export interface QuotaSubject {
  tenant: string | null;
  name: string;
}

export interface QuotaCounter {
  quota: CallerQuota;
  /** Callers with the same key are counted together. */
  key: string;
}

interface Bucket {
  tokens: number;
  at: number;
}

const KNOWN = 20_000;
/** Retry-After value if room appears only when another caller leaves. */
const AGAIN_S = 1;

export class CallerQuotas {
  private readonly quotas: readonly CallerQuota[];
  private readonly env: Pick<RuntimeEnv, "elapsed">;
  private readonly fitting = new LruMap<string, readonly QuotaCounter[]>(KNOWN);
  private readonly buckets = new LruMap<string, Bucket>(KNOWN);
  private readonly held = { waiting: new Map<string, number>(), sessions: new Map<string, number>() };

  constructor(quotas: readonly CallerQuota[], env: Pick<RuntimeEnv, "elapsed">) {
    this.quotas = quotas;
    this.env = env;
  }

  /** Quotas that apply to the caller. */
  of({ tenant, name }: QuotaSubject): readonly QuotaCounter[] {
    const who = JSON.stringify([tenant, name]);
    let found = this.fitting.get(who);
    if (found === undefined) {
      found = this.quotas.flatMap((quota, i) => {
        const { match } = quota;
        if (!fits(match.tenant, tenant) || !fits(match.actor, name)) return [];
        const key = [i, match.tenant === undefined ? null : tenant, match.actor === undefined ? null : name];
        return [{ quota, key: JSON.stringify(key) }];
      });
      this.fitting.set(who, found);
    }
    return found;
  }

  /** Counts a request or rejects it. A rejected request is not counted. */
  admit(who: QuotaSubject): void {
    const now = this.env.elapsed();
    const taken: Bucket[] = [];
    for (const { quota, key } of this.of(who)) {
      const { requests_per_second: rate, burst = Math.max(1, Math.ceil(rate ?? 0)) } = quota;
      if (rate === undefined) continue;
      const bucket = this.buckets.get(key) ?? { tokens: burst, at: now };
      this.buckets.set(key, bucket);
      bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) * rate) / 1_000);
      bucket.at = now;
      if (bucket.tokens < 1) throw tooManyRequests(rate, Math.ceil((1 - bucket.tokens) / rate));
      taken.push(bucket);
    }
    for (const bucket of taken) bucket.tokens--;
  }

  /** Counts a long-lived caller or rejects it. The caller calls the returned function once, when it leaves. */
  hold(what: "waiting" | "sessions", who: QuotaSubject): () => void {
    const counts = this.held[what];
    const limited = this.of(who).filter(({ quota }) => quota[what] !== undefined);
    for (const { quota, key } of limited) {
      if ((counts.get(key) ?? 0) >= quota[what]!)
        throw new TooManyError(HOLD_WORDS[what](quota[what]!), AGAIN_S);
    }
    for (const { key } of limited) counts.set(key, (counts.get(key) ?? 0) + 1);
    return () => {
      for (const { key } of limited) {
        const left = counts.get(key)! - 1;
        if (left === 0) counts.delete(key);
        else counts.set(key, left);
      }
    };
  }
}

const HOLD_WORDS = {
  waiting: (max: number) =>
    `over the quota of ${max} concurrent waits; try again without waiting, or after one of them ends`,
  sessions: (max: number) => `over the quota of ${max} open sessions; end one of them first`,
};

function tooManyRequests(rate: number, retry_after_s: number): TooManyError {
  return new TooManyError(
    `over the quota of ${rate} requests per second; try again in ${retry_after_s} s`,
    retry_after_s,
  );
}

/** A tenant glob never matches a principal without a tenant. */
function fits(glob: string | undefined, value: string | null): boolean {
  return glob === undefined || (value !== null && globMatches(glob, value));
}
