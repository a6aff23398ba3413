/**
 * Ed25519 keys and signatures. What is signed begins with a line that names its domain, so that a
 * signature on an anchor can never pass for one on a bundle.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signBytes,
  verify as verifyBytes,
} from "node:crypto";
import { canonical } from "../kernel/canonical.ts";
import { invalid } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { Json } from "../kernel/json.ts";

export const DOMAINS = { bundle: "svc-bundle/v1\n", anchor: "svc-anchor/v1\n" } as const;
export type Domain = keyof typeof DOMAINS;

export interface PublicKey {
  key: KeyObject;
  key_id: string;
  pem: string;
}

export interface SigningKey extends PublicKey {
  sign(domain: Domain, summary: Json): string;
}

const ED25519_SPKI_PREFIX_BYTES = 12;

function keyId(key: KeyObject): string {
  const spki = key.export({ type: "spki", format: "der" });
  return sha256Hex(spki.subarray(ED25519_SPKI_PREFIX_BYTES)).slice(0, 16);
}

export function parsePublicKey(pem: string, what: string): PublicKey {
  if (/PRIVATE KEY/.test(pem)) throw invalid(`${what}: is a private key; give the .pub file`);
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch {
    throw invalid(`${what}: is not a PEM public key as svc keygen writes it`);
  }
  if (key.asymmetricKeyType !== "ed25519")
    throw invalid(`${what}: is a ${key.asymmetricKeyType} key; an Ed25519 key is needed`);
  return { key, key_id: keyId(key), pem: key.export({ type: "spki", format: "pem" }) as string };
}

export function parseSigningKey(pem: string, what: string): SigningKey {
  if (/ENCRYPTED/.test(pem)) throw invalid(`${what}: is encrypted; store it unencrypted with mode 0600`);
  if (/PUBLIC KEY/.test(pem)) throw invalid(`${what}: is a public key; give the .key file`);
  let secret: KeyObject;
  try {
    secret = createPrivateKey(pem);
  } catch {
    throw invalid(`${what}: is not a PEM private key as svc keygen writes it`);
  }
  if (secret.asymmetricKeyType !== "ed25519") {
    throw invalid(`${what}: is a ${secret.asymmetricKeyType} key; make an Ed25519 key with svc keygen`);
  }
  const key = createPublicKey(secret);
  return {
    key,
    key_id: keyId(key),
    pem: key.export({ type: "spki", format: "pem" }) as string,
    sign: (domain, summary) => signBytes(null, message(domain, summary), secret).toString("base64"),
  };
}

export function verifySignature(key: PublicKey, domain: Domain, summary: Json, signature: string): boolean {
  const bytes = Buffer.from(signature, "base64");
  // One spelling only: a signature that decodes leniently could be changed without changing it.
  if (bytes.length !== 64 || bytes.toString("base64") !== signature) return false;
  return verifyBytes(null, message(domain, summary), key.key, bytes);
}

function message(domain: Domain, summary: Json): Buffer {
  return Buffer.from(DOMAINS[domain] + canonical(summary), "utf8");
}

export function newKeyPair(): { private_pem: string; public_pem: string; key_id: string } {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return {
    private_pem: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
    public_pem: publicKey.export({ type: "spki", format: "pem" }) as string,
    key_id: keyId(publicKey),
  };
}
