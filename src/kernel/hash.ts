/** SHA-256 in the spellings that the interface uses. */
import * as crypto from "node:crypto";
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { canonical } from "./canonical.ts";
import type { Json } from "./json.ts";

/** The one-shot function takes half the time, but the first releases of Node 20 do not have it. */
export const sha256Hex: (data: string | Uint8Array) => string =
  typeof crypto.hash === "function"
    ? (data) => crypto.hash("sha256", data, "hex")
    : (data) => createHash("sha256").update(data).digest("hex");

export function sha256(data: string | Uint8Array): Buffer {
  return createHash("sha256").update(data).digest();
}

export function hmacHex(key: string | Uint8Array, data: string | Uint8Array): string {
  return createHmac("sha256", key).update(data).digest("hex");
}

/** `sha256:<hex>` over canonical JSON, for values that need no protection from guessing (seals, policy hashes). */
export function valueHash(value: Json): string {
  return `sha256:${sha256Hex(canonical(value))}`;
}

/** `sha256:<hex>` keyed with a salt, for values that could be guessed (arguments, results). */
export function keyedHash(salt: string, value: Json): string {
  return `sha256:${hmacHex(salt, canonical(value))}`;
}

/** Equality that does not tell by its duration where two strings differ. */
export function sameSecret(a: string, b: string): boolean {
  const left = sha256(a);
  const right = sha256(b);
  return timingSafeEqual(left, right);
}
