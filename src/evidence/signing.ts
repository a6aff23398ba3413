/**
 * Ed25519 keys and signatures. Signed content begins with a line that names its domain, so a signature on an anchor is
 * never valid for a bundle.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto";
import { isWeakEd25519 } from "../auth/weak-keys.ts";
import { invalidError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { toCanonicalJson } from "../kernel/json/canonical.ts";
import type { JsonValue } from "../kernel/json/json.ts";

const DOMAINS = { bundle: "svc-bundle/v1\n", anchor: "svc-anchor/v1\n" } as const;
export type SignatureDomain = keyof typeof DOMAINS;

export interface PublicKey {
  key: KeyObject;
  key_id: string;
  pem: string;
  /** The raw 32 bytes of the key. */
  raw: Buffer;
}

export interface SigningKey extends PublicKey {
  sign(domain: SignatureDomain, summary: JsonValue): string;
  /** For formats that separate their domains themselves: signed notes and cosignatures. */
  signText(text: string): Buffer;
}

/** Fixed DER prefix of a public Ed25519 key (RFC 8410). The 32 bytes of the key follow. */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const RAW_BYTES = 32;
const PEM = /^-----BEGIN PUBLIC KEY-----\r?\n([A-Za-z0-9+/=\r\n]+?)\r?\n-----END PUBLIC KEY-----\s*$/;

function rawKey(key: KeyObject): Buffer {
  return key.export({ type: "spki", format: "der" }).subarray(SPKI_PREFIX.length);
}

function keyId(raw: Uint8Array): string {
  return sha256Hex(raw).slice(0, 16);
}

/**
 * Parses a PEM file as written by `svc keygen`, more strictly than OpenSSL. The key in a bundle is not signed, so it
 * must have only one spelling.
 */
export function parsePublicKey(pem: string, what: string): PublicKey {
  if (/PRIVATE KEY/.test(pem)) throw invalidError(`${what}: is a private key; give the .pub file`);
  const der = strictBase64(PEM.exec(pem)?.[1]?.replace(/[\r\n]/g, "") ?? "");
  if (der === undefined) throw invalidError(`${what}: is not a PEM public key as svc keygen writes it`);
  if (
    der.length !== SPKI_PREFIX.length + RAW_BYTES ||
    !der.subarray(0, SPKI_PREFIX.length).equals(SPKI_PREFIX)
  ) {
    throw invalidError(`${what}: is ${otherKind(pem)}; an Ed25519 public key is needed`);
  }
  const raw = der.subarray(SPKI_PREFIX.length);
  if (isWeakEd25519(raw))
    throw invalidError(`${what}: is not a usable Ed25519 key: signatures under it prove nothing`);
  return publicKeyOf(raw);
}

function publicKeyOf(raw: Buffer): PublicKey {
  const der = Buffer.concat([SPKI_PREFIX, raw]);
  const key = createPublicKey({ key: der, format: "der", type: "spki" });
  return { key, key_id: keyId(raw), pem: key.export({ type: "spki", format: "pem" }) as string, raw };
}

/** Parses a raw 32-byte key, as used in verifier keys of signed notes. */
export function parseRawKey(raw: Buffer, what: string): PublicKey {
  if (raw.length !== RAW_BYTES || isWeakEd25519(raw))
    throw invalidError(`${what}: is not a usable Ed25519 public key`);
  return publicKeyOf(raw);
}

/** Decodes base64 in its only valid spelling. */
export function strictBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.length > 0 && bytes.toString("base64") === text ? bytes : undefined;
}

function otherKind(pem: string): string {
  try {
    return `a ${createPublicKey(pem).asymmetricKeyType} key`;
  } catch {
    return "a damaged key";
  }
}

export function parseSigningKey(pem: string, what: string): SigningKey {
  if (/ENCRYPTED/.test(pem)) throw invalidError(`${what}: is encrypted; store it unencrypted with mode 0600`);
  if (/PUBLIC KEY/.test(pem)) throw invalidError(`${what}: is a public key; give the .key file`);
  let secret: KeyObject;
  try {
    secret = createPrivateKey(pem);
  } catch {
    throw invalidError(`${what}: is not a PEM private key as svc keygen writes it`);
  }
  if (secret.asymmetricKeyType !== "ed25519") {
    throw invalidError(`${what}: is a ${secret.asymmetricKeyType} key; make an Ed25519 key with svc keygen`);
  }
  return {
    ...publicKeyOf(rawKey(createPublicKey(secret))),
    signText: (text) => signBytes(null, Buffer.from(text, "utf8"), secret),
    sign: (domain, summary) => signBytes(null, message(domain, summary), secret).toString("base64"),
  };
}

export function verifySignature(
  key: PublicKey,
  domain: SignatureDomain,
  summary: JsonValue,
  signature: string,
): boolean {
  // Strict decoding: with a lenient one, the text of a signature could be changed without breaking it.
  const bytes = strictBase64(signature);
  if (bytes?.length !== 64) return false;
  return verifyBytes(null, message(domain, summary), key.key, bytes);
}

function message(domain: SignatureDomain, summary: JsonValue): Buffer {
  return Buffer.from(DOMAINS[domain] + toCanonicalJson(summary), "utf8");
}

export function newKeyPair(): { private_pem: string; public_pem: string; key_id: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    private_pem: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    public_pem: publicKey.export({ type: "spki", format: "pem" }) as string,
    key_id: keyId(rawKey(publicKey)),
  };
}
