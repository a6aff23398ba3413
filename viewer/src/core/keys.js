// Public keys and signatures as text. A key id is a short name for a key, never a proof of it: where a trusted key is
// given, the signature is checked with that whole key.

import { keyPoint, verifyEd25519 } from "./ed25519.js";
import { Finding } from "./finding.js";
import { brief } from "./json.js";
import { sha256, toHex } from "./sha256.js";

// An Ed25519 SubjectPublicKeyInfo is these twelve bytes and then the key (RFC 8410).
const SPKI_PREFIX = "302a300506032b6570032100";
const PEM = /^-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END PUBLIC KEY-----\s*$/;

/** Bytes of the one canonical base64 spelling, else null. */
export function strictBase64(text) {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  let binary;
  try {
    binary = atob(text);
  } catch {
    return null;
  }
  return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
}

/** `{raw, keyId}` of a PEM public key as `svc keygen` writes it. */
export function parsePublicKey(text) {
  if (typeof text !== "string") throw new Finding("is not a PEM public key");
  if (text.includes("PRIVATE KEY"))
    throw new Finding("is a private key: keep it private, and give the .pub file");
  const pem = PEM.exec(text);
  if (pem === null) throw new Finding("is not a PEM public key");
  const der = strictBase64(pem[1].replace(/[\r\n]/g, ""));
  if (der === null) throw new Finding("is a damaged PEM file");
  if (der.length !== 44 || !toHex(der).startsWith(SPKI_PREFIX))
    throw new Finding("is not an Ed25519 public key");
  const raw = der.slice(12);
  if (keyPoint(raw) === null) throw new Finding("is not a usable Ed25519 key");
  return { raw, keyId: toHex(sha256(raw)).slice(0, 16) };
}

function parseSignature(value) {
  const bytes = typeof value === "string" ? strictBase64(value) : null;
  if (bytes !== null && bytes.length === 64) return bytes;
  throw new Finding("its signature is not 64 bytes of base64");
}

/** The key to check with: the trusted one of that id, else the one that came along, else null. */
export function chooseKey(keyId, embedded, trusted) {
  if (typeof keyId !== "string" || !/^[0-9a-f]{16}$/.test(keyId)) {
    throw new Finding("its key_id is not 16 lowercase hex digits");
  }
  let cameAlong = null;
  if (embedded !== undefined && embedded !== null) {
    try {
      cameAlong = parsePublicKey(embedded);
    } catch (error) {
      throw error instanceof Finding ? new Finding(`its public_key ${error.problem}`) : error;
    }
    if (cameAlong.keyId !== keyId) throw new Finding("its key_id does not belong to its public_key");
  }
  if (trusted.length === 0) return cameAlong;
  const key = trusted.find((candidate) => candidate.keyId === keyId);
  if (key === undefined)
    throw new Finding(`it is signed with key ${brief(keyId)}, which is not a trusted key`);
  if (cameAlong !== null && toHex(cameAlong.raw) !== toHex(key.raw)) {
    throw new Finding("its public_key is not the trusted key of that id");
  }
  return key;
}

/**
 * Checks a signature over the domain line and one of the equal spellings of a summary. Returns "trusted",
 * "self-consistent" (with the key that came along) or "unchecked" (there was no key); throws where it is wrong.
 */
export async function checkSignature({ keyId, publicKey, signature, domain, spellings, trusted, native }) {
  const key = chooseKey(keyId, publicKey, trusted);
  const signed = parseSignature(signature);
  if (key === null) return "unchecked";
  for (const summary of new Set(spellings)) {
    const message = new TextEncoder().encode(domain + summary);
    if (await verifyEd25519(key.raw, message, signed, { native }))
      return trusted.length > 0 ? "trusted" : "self-consistent";
  }
  throw new Finding("the signature does not match: what was signed is not what is here");
}
