/**
 * The key ring. Keys are never stored, only their SHA-256 hashes. A lookup is by hash, so it costs the same with one
 * key as with 100,000, and its duration does not reveal how close a guess was.
 */

import { isExpired } from "../govern/expiry.ts";
import { type CallerPrincipal, keyId } from "../govern/roles.ts";
import { tryTimestamp } from "../kernel/duration.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { KeyEntry } from "./key-entry.ts";
import { keyExpiry } from "./key-entry.ts";

export type KeyRefusal = "unknown" | "disabled" | "expired" | "not_yet_valid";

export interface FoundKey {
  readonly principal: CallerPrincipal;
  readonly key_sha256: string;
  readonly expires_ms: number | null;
}

interface Holder {
  readonly principal: CallerPrincipal;
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

  /** Looks a key up by its hash alone, for a session that must not store the key. */
  findHash(hash: string, now: number): FoundKey | KeyRefusal {
    const entry = this.byHash.get(hash);
    if (entry === undefined) return "unknown";
    if (entry.disabled) return "disabled";
    const holder = this.holder(entry);
    const { principal, not_before_ms, expires_ms } = holder;
    if (isExpired(holder, now)) return "expired";
    if (now < not_before_ms) return "not_yet_valid";
    return { principal, key_sha256: hash, expires_ms };
  }

  /**
   * Returns the principal for a chat user or another trusted mapping: any usable key of that name, or the one with the
   * given fingerprint.
   */
  findName(name: string, now: number, fingerprint?: string): CallerPrincipal | undefined {
    for (const entry of this.entries) {
      if (entry.name !== name) continue;
      if (fingerprint !== undefined && fingerprintOf(entry.key_sha256) !== fingerprint) continue;
      const found = this.findHash(entry.key_sha256, now);
      if (typeof found !== "string") return found.principal;
    }
    return undefined;
  }

  /** Whether the entry with this name and fingerprint is disabled or expired. False for an unknown entry. */
  hasEnded(name: string, now: number, fingerprint: string | undefined): boolean {
    const entry = this.entries.find(
      (one) => one.name === name && fingerprintOf(one.key_sha256) === fingerprint,
    );
    const found = entry && this.findHash(entry.key_sha256, now);
    return found === "disabled" || found === "expired";
  }

  /** Built when a key is first used, so that a large ring costs only as much as its used keys. */
  private holder(entry: KeyEntry): Holder {
    let holder = this.holders.get(entry);
    if (holder === undefined) {
      holder = holderOf(entry);
      this.holders.set(entry, holder);
    }
    return holder;
  }
}

/** A hash of the stored hash, so it can be shown and compared without revealing the content of the file. */
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
      ...(entry.may_give ? { may_give: true } : {}),
      ...(entry.may_sandbox ? { may_sandbox: true } : {}),
      credential: fingerprintOf(entry.key_sha256),
    }),
    not_before_ms: entry.not_before === null ? Number.NEGATIVE_INFINITY : tryTimestamp(entry.not_before)!,
    ...keyExpiry(entry),
  };
}
