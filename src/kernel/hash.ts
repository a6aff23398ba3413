/** SHA-256 in the spellings that the interface uses. */
import * as crypto from "node:crypto";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { canonical, canonicalizing } from "./canonical.ts";
import type { Json } from "./json.ts";
import { knownAbout, learningAbout } from "./large-values.ts";
import type { Paced } from "./turns.ts";

/** The one-shot function takes half the time, but the first releases of Node 20 do not have it. */
export const sha256Hex: (data: string | Uint8Array) => string =
  typeof crypto.hash === "function"
    ? (data) => crypto.hash("sha256", data, "hex")
    : (data) => createHash("sha256").update(data).digest("hex");

export function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

export function hmacHex(key: string | Uint8Array, data: string | Uint8Array): string {
  if (typeof crypto.hash === "function" && typeof key === "string" && typeof data === "string") {
    // Every call pays for its arguments' hash, and the object behind createHmac is most of it.
    if (data.length <= SHORT && Buffer.byteLength(key) <= BLOCK) return hmacOfShort(key, data);
  }
  return createHmac("sha256", key).update(data).digest("hex");
}

const BLOCK = 64;
/** In UTF-16 code units, which take three bytes at most. */
const SHORT = 1_024;
const inner = Buffer.alloc(BLOCK + 3 * SHORT);
const outer = Buffer.alloc(BLOCK + 32);

/** RFC 2104 in two one-shot hashes, for a key that fits into a block. Both buffers are wiped: they held the key and the text. */
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

/** `sha256:<hex>` over canonical JSON, for values that need no protection from guessing (seals, policy hashes). */
export function valueHash(value: Json): string {
  return `sha256:${sha256Hex(canonical(value))}`;
}

/** `sha256:<hex>` keyed with a salt, for values that could be guessed (arguments, results). */
export function keyedHash(salt: string, value: Json): string {
  return `sha256:${hmacHex(salt, canonicalText(value))}`;
}

/** The same in turns. */
export function* hashingKeyed(salt: string, value: Json): Paced<string> {
  return `sha256:${hmacHex(salt, yield* canonicalizing(value))}`;
}

/** Canonical JSON, as it was written ahead where the value is large. */
export function canonicalText(value: Json): string {
  return knownAbout<string>(value, canonicalizing) ?? canonical(value);
}

/** Writes a large value in turns; whoever hashes it then finds it written. */
export function learningCanonical(value: Json): Paced<void> {
  return learningAbout(value, canonicalizing, () => canonicalizing(value));
}

/** Equality that does not tell by its duration where two strings differ. */
export function sameSecret(a: string, b: string): boolean {
  const left = sha256(a);
  const right = sha256(b);
  return timingSafeEqual(left, right);
}
