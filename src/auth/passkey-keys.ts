/** Public keys of passkeys, as COSE and as SubjectPublicKeyInfo. Each key and signature has one accepted encoding. */
import { createPublicKey, type JsonWebKey } from "node:crypto";
import type { PasskeyAlgorithm, PasskeyPublicKey } from "../govern/signing/payload.ts";
import { LruMap } from "../kernel/lru.ts";
import { isWeakEd25519 } from "./weak-keys.ts";

const COSE = { ES256: -7, EdDSA: -8, RS256: -257 } as const satisfies Record<PasskeyAlgorithm, number>;
export const PASSKEY_COSE_ALGORITHMS = Object.values(COSE);

/** A key that no verifier doubts: the only encoding of its kind, and for RSA a usual size. */
function readKey({ public_key, alg }: Omit<PasskeyPublicKey, "id">): JsonWebKey {
  const der = Buffer.from(public_key, "base64");
  const jwk = createPublicKey({ key: der, format: "der", type: "spki" }).export({ format: "jwk" });
  const expected = { ES256: ["EC", "P-256"], EdDSA: ["OKP", "Ed25519"], RS256: ["RSA", undefined] }[alg];
  if (jwk.kty !== expected[0] || jwk.crv !== expected[1]) throw new Error(`the key is not for ${alg}`);
  if (toSpki(jwk).toString("base64") !== public_key)
    throw new Error("the key is not in the standard encoding");
  if (alg === "RS256" && !isUsualRsa(jwk)) throw new Error("the RSA key has not 2048 to 8192 bits");
  if (alg === "EdDSA" && isWeakEd25519(Buffer.from(jwk.x ?? "", "base64url")))
    throw new Error("the Ed25519 key proves nothing");
  return jwk;
}

const toSpki = (jwk: JsonWebKey): Buffer =>
  createPublicKey({ key: jwk, format: "jwk" }).export({ type: "spki", format: "der" });

function isUsualRsa({ n = "", e = "" }: JsonWebKey): boolean {
  const bits = 8 * Buffer.from(n, "base64url").length;
  const exponent = Buffer.from(e, "base64url");
  const isOdd = exponent.length <= 8 && (exponent.at(-1)! & 1) === 1;
  // With the exponent 1 every signature holds.
  return bits >= 2_048 && bits <= 8_192 && isOdd && !(exponent.length === 1 && exponent[0] === 1);
}

export async function fromCose(cose: Uint8Array): Promise<Pick<PasskeyPublicKey, "public_key" | "alg">> {
  const { decodeCredentialPublicKey } = await import("@simplewebauthn/server/helpers");
  const key = decodeCredentialPublicKey(new Uint8Array(cose)) as Map<number, number | Uint8Array>;
  const alg = (Object.keys(COSE) as PasskeyAlgorithm[]).find((name) => COSE[name] === key.get(3));
  const part = (label: number) => Buffer.from(key.get(label) as Uint8Array).toString("base64url");
  if (alg === undefined) throw new Error("its algorithm is not one of ES256, EdDSA and RS256");
  const jwk: Record<PasskeyAlgorithm, () => JsonWebKey> = {
    ES256: () => ({ kty: "EC", crv: "P-256", x: part(-2), y: part(-3) }),
    EdDSA: () => ({ kty: "OKP", crv: "Ed25519", x: part(-2) }),
    RS256: () => ({ kty: "RSA", n: part(-1), e: part(-2) }),
  };
  const found = { public_key: toSpki(jwk[alg]()).toString("base64"), alg };
  readKey(found);
  return found;
}

const KEPT_KEYS = 1_000;
const kept = new LruMap<string, Uint8Array<ArrayBuffer>>(KEPT_KEYS);

/** The key as COSE. Conversions are kept, because the same few keys verify every signature. */
export async function toCose(key: Omit<PasskeyPublicKey, "id">): Promise<Uint8Array<ArrayBuffer>> {
  const name = `${key.alg} ${key.public_key}`;
  const known = kept.get(name);
  if (known !== undefined) return known;
  const cose = await convertToCose(key);
  kept.set(name, cose);
  return cose;
}

async function convertToCose(key: Omit<PasskeyPublicKey, "id">): Promise<Uint8Array<ArrayBuffer>> {
  const { isoCBOR } = await import("@simplewebauthn/server/helpers");
  const jwk = readKey(key);
  const bytes = (text: string | undefined) => new Uint8Array(Buffer.from(text ?? "", "base64url"));
  const members: Record<PasskeyAlgorithm, () => [number, number | Uint8Array][]> = {
    ES256: () => [
      [1, 2],
      [3, COSE.ES256],
      [-1, 1],
      [-2, bytes(jwk.x)],
      [-3, bytes(jwk.y)],
    ],
    EdDSA: () => [
      [1, 1],
      [3, COSE.EdDSA],
      [-1, 6],
      [-2, bytes(jwk.x)],
    ],
    RS256: () => [
      [1, 3],
      [3, COSE.RS256],
      [-1, bytes(jwk.n)],
      [-2, bytes(jwk.e)],
    ],
  };
  return new Uint8Array(isoCBOR.encode(new Map(members[key.alg]())));
}

/** Whether the bytes are the only DER form of two positive numbers. */
export function isStrictDer(bytes: Buffer): boolean {
  const first = bytes[3] ?? 0;
  const second = bytes[5 + first] ?? 0;
  const isShape = bytes[0] === 0x30 && bytes[1] === bytes.length - 2 && bytes.length === 6 + first + second;
  const isNumber = (at: number, length: number) =>
    bytes[at - 2] === 2 &&
    length > 0 &&
    bytes[at]! < 0x80 &&
    !(length > 1 && bytes[at] === 0 && bytes[at + 1]! < 0x80);
  return isShape && isNumber(4, first) && isNumber(6 + first, second);
}
