/** SHA-256 and HMAC in the formats of the interface. */
import * as crypto from "node:crypto";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { toCanonicalJson, toCanonicalJsonInSteps } from "./json/canonical.ts";
import type { JsonValue } from "./json/json.ts";
import { cachedResult, cacheResult, precomputeResult } from "./json/large-value-cache.ts";
import type { PausableWork } from "./pausable-work.ts";

/** The one-shot function takes half the time, but the first Node 20 releases lack it. */
export const sha256Hex: (data: string | Uint8Array) => string =
  typeof crypto.hash === "function"
    ? (data) => crypto.hash("sha256", data, "hex")
    : (data) => createHash("sha256").update(data).digest("hex");

export function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

export function hmacHex(key: string | Uint8Array, data: string | Uint8Array): string {
  if (typeof crypto.hash === "function" && typeof key === "string" && typeof data === "string") {
    // Every call hashes its arguments, and most of that cost is the object behind createHmac.
    if (data.length <= SHORT && Buffer.byteLength(key) <= BLOCK) return hmacOfShort(key, data);
  }
  return createHmac("sha256", key).update(data).digest("hex");
}

const BLOCK = 64;
/** In UTF-16 code units, of at most three bytes each. */
const SHORT = 1_024;
const inner = Buffer.alloc(BLOCK + 3 * SHORT);
const outer = Buffer.alloc(BLOCK + 32);

/**
 * HMAC (RFC 2104) as two one-shot hashes, for keys that fit into one block. Wipes both buffers, because they held the
 * key and the text.
 */
function hmacOfShort(key: string, data: string): string {
  inner.fill(0, 0, BLOCK);
  inner.write(key, 0, BLOCK, "utf8");
  for (let i = 0; i < BLOCK; i++) {
    const byte = inner[i]!;
    inner[i] = byte ^ 0x36;
    outer[i] = byte ^ 0x5c;
  }
  const length = BLOCK + inner.write(data, BLOCK, "utf8");
  outer.write(crypto.hash("sha256", inner.subarray(0, length), "binary"), BLOCK, "latin1");
  const mac = crypto.hash("sha256", outer, "hex");
  inner.fill(0, 0, length);
  outer.fill(0);
  return mac;
}

/**
 * Returns `sha256:<hex>` over canonical JSON, for values that need no protection from guessing (seals, policy hashes).
 */
export function valueHash(value: JsonValue): string {
  return `sha256:${sha256Hex(toCanonicalJson(value))}`;
}

/** Returns `sha256:<hex>` keyed with a salt, for guessable values (arguments, results). */
export function keyedHash(salt: string, value: JsonValue): string {
  return `sha256:${hmacHex(salt, canonicalText(value))}`;
}

/** Pausable form of `keyedHash`. */
export function* keyedHashInSteps(salt: string, value: JsonValue): PausableWork<string> {
  return `sha256:${hmacHex(salt, yield* toCanonicalJsonInSteps(value))}`;
}

/** Returns canonical JSON, from the cache of precomputed large values if present. */
export function canonicalText(value: JsonValue): string {
  return cachedResult<string>(value, toCanonicalJsonInSteps) ?? toCanonicalJson(value);
}

/** Precomputes the canonical text of a large value with pauses, for a later hash. */
export function precomputeCanonical(value: JsonValue): PausableWork<void> {
  return precomputeResult(value, toCanonicalJsonInSteps, () => toCanonicalJsonInSteps(value));
}

/** Caches the canonical text of a large value, which another thread computed. */
export function cacheCanonical(value: JsonValue, text: string): void {
  cacheResult(value, toCanonicalJsonInSteps, text);
}

/** Compares two strings in constant time. */
export function sameSecret(a: string, b: string): boolean {
  const left = sha256(a);
  const right = sha256(b);
  return timingSafeEqual(left, right);
}
