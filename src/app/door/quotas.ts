/**
 * How much of this server each caller may take. A quota counts apart for each tenant that its `match.tenant` fits and
 * each actor that its `match.actor` fits; one that names neither counts everybody together. Where several fit, all of
 * them hold. Whoever is past one is refused before anything is recorded. Requests, waiting and sessions are counted by
 * each server for itself, open requests in the store.
 */
import type { Quota } from "../../config/sections/quotas.ts";
import type { Env } from "../../kernel/env.ts";
import { TooMany } from "../../kernel/errors.ts";
import { globMatches } from "../../kernel/glob.ts";
import { Lru } from "../../kernel/lru.ts";

/** Whom a quota goes by. */
export interface Who {
  tenant: string | null;
  name: string;
}

export interface Counted {
  quota: Quota;
  /** What is counted together. */
  key: string;
}

interface Bucket {
  tokens: number;
  at: number;
}

const KNOWN = 20_000;
/** When to ask again where only another's leaving makes room. */
const AGAIN_S = 1;

export class Quotas {
  private readonly quotas: readonly Quota[];
  private readonly env: Pick<Env, "elapsed">;
  private readonly fitting = new Lru<string, readonly Counted[]>(KNOWN);
  private readonly buckets = new Lru<string, Bucket>(KNOWN);
  private readonly held = { waiting: new Map<string, number>(), sessions: new Map<string, number>() };

  constructor(quotas: readonly Quota[], env: Pick<Env, "elapsed">) {
    this.quotas = quotas;
    this.env = env;
  }

  /** The quotas that hold for the caller. */
  of({ tenant, name }: Who): readonly Counted[] {
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

  /** Counts a request, or refuses it; one that is refused counts nowhere. */
  admit(who: Who): void {
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

  /** Counts a caller that stays for a while, or refuses; what is answered is called once, when that is over. */
  hold(what: "waiting" | "sessions", who: Who): () => void {
    const counts = this.held[what];
    const limited = this.of(who).filter(({ quota }) => quota[what] !== undefined);
    for (const { quota, key } of limited) {
      if ((counts.get(key) ?? 0) >= quota[what]!) throw new TooMany(HOLD_WORDS[what](quota[what]!), AGAIN_S);
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
    `over the quota of ${max} waiting at the same time; ask without waiting, or when one of them was answered`,
  sessions: (max: number) => `over the quota of ${max} open sessions; end one of them first`,
};

function tooManyRequests(rate: number, retry_after_s: number): TooMany {
  return new TooMany(
    `over the quota of ${rate} requests a second; try again in ${retry_after_s} s`,
    retry_after_s,
  );
}

/** A tenant's glob fits no principal without a tenant, as elsewhere. */
function fits(glob: string | undefined, value: string | null): boolean {
  return glob === undefined || (value !== null && globMatches(glob, value));
}
