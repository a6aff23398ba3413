/**
 * The ring in which a presented key is looked up. Keys are never stored, only their SHA-256, and the
 * lookup is by that hash: it costs the same with one key and with 100,000, and tells nothing about how
 * nearly right a guess was.
 */
import { tryTimestamp } from "../kernel/duration.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { keyId, type Principal } from "../model/roles.ts";
import type { KeyEntry } from "./key-entry.ts";

export type KeyRefusal = "unknown" | "disabled" | "expired" | "not_yet_valid";

export interface FoundKey {
  readonly principal: Principal;
  readonly key_sha256: string;
  readonly expires_ms: number | null;
}

interface Holder {
  readonly principal: Principal;
  readonly not_before_ms: number;
  readonly expires_ms: number | null;
}

export class KeyRing {
  readonly entries: readonly KeyEntry[];
  private readonly byHash = new Map<string, KeyEntry>();
  private readonly holders = new WeakMap<KeyEntry, Holder>();

  constructor(entries: readonly KeyEntry[]) {
    this.entries = entries;
    for (const entry of entries) this.byHash.set(entry.key_sha256, entry);
  }

  get size(): number {
    return this.entries.length;
  }

  find(key: string, now: number): FoundKey | KeyRefusal {
    return this.findHash(sha256Hex(key), now);
  }

  /** By the hash alone, for a session that must not keep the key itself. */
  findHash(hash: string, now: number): FoundKey | KeyRefusal {
    const entry = this.byHash.get(hash);
    if (entry === undefined) return "unknown";
    if (entry.disabled) return "disabled";
    const { principal, not_before_ms, expires_ms } = this.holder(entry);
    if (expires_ms !== null && now >= expires_ms) return "expired";
    if (now < not_before_ms) return "not_yet_valid";
    return { principal, key_sha256: hash, expires_ms };
  }

  /**
   * The principal that a chat user, or another trusted mapping, stands for: any usable key of that name, or the
   * very one whose fingerprint is given.
   */
  findName(name: string, now: number, fingerprint?: string): Principal | undefined {
    for (const entry of this.entries) {
      if (entry.name !== name) continue;
      if (fingerprint !== undefined && fingerprintOf(entry.key_sha256) !== fingerprint) continue;
      const found = this.findHash(entry.key_sha256, now);
      if (typeof found !== "string") return found.principal;
    }
    return undefined;
  }

  /** Made when a key is first used, so that a large ring costs only what is used of it. */
  private holder(entry: KeyEntry): Holder {
    let holder = this.holders.get(entry);
    if (holder === undefined) {
      holder = holderOf(entry);
      this.holders.set(entry, holder);
    }
    return holder;
  }
}

/** A hash of the stored hash: it can be shown and compared, and is not a part of what the file holds. */
export function fingerprintOf(key_sha256: string): string {
  return sha256Hex(`svc-key-fingerprint\n${key_sha256}`).slice(0, 16);
}

function holderOf(entry: KeyEntry): Holder {
  return {
    principal: Object.freeze({
      id: keyId(entry.name),
      name: entry.name,
      roles: entry.roles,
      groups: entry.groups,
      tenant: entry.tenant,
      ...(entry.tenant_only ? { tenant_only: true } : {}),
      max_permissions: entry.max_permissions,
      allow_observe: entry.allow_observe,
      ...(entry.self_rollback ? { self_rollback: true } : {}),
      credential: fingerprintOf(entry.key_sha256),
    }),
    not_before_ms: entry.not_before === null ? Number.NEGATIVE_INFINITY : tryTimestamp(entry.not_before)!,
    expires_ms: entry.expires_at === null ? null : tryTimestamp(entry.expires_at)!,
  };
}
