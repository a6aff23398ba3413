/**
 * WebAuthn, with the library that implements it: creation and request options, new passkeys, and assertions. The library
 * is loaded when a passkey is first used. Keys are kept as SubjectPublicKeyInfo, which every verifier can read.
 */
import { createPublicKey, type JsonWebKey } from "node:crypto";
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import {
  type PasskeyAlgorithm,
  type PasskeyAssertion,
  type PasskeyPublicKey,
  payloadDigest,
  type SignedPayload,
} from "../govern/signing/payload.ts";
import { invalidError, messageOf } from "../kernel/errors.ts";
import { sha256 } from "../kernel/hash.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";

/** Where passkeys are made and used: the relying party, and the origins of its pages. */
export interface PasskeyPlace {
  rp_id: string;
  origins: readonly string[];
}

interface PlaceSettings {
  readonly console_url: string | null;
  readonly approve_url: string | null;
  readonly passkeys: { readonly rp_id: string | null };
}

/** Null if no page is known on which a person could use a passkey. */
export function passkeyPlace({ console_url, approve_url, passkeys }: PlaceSettings): PasskeyPlace | null {
  if (console_url === null) return null;
  const { hostname, origin } = new URL(console_url);
  const origins = approve_url === null ? [origin] : [origin, new URL(approve_url).origin];
  return { rp_id: passkeys.rp_id ?? hostname, origins };
}

const COSE = { ES256: -7, EdDSA: -8, RS256: -257 } as const satisfies Record<PasskeyAlgorithm, number>;
const ALGORITHMS = Object.values(COSE);
const TIMEOUT_MS = SERVICE_LIMITS.challenge_ms;

export async function creationOptions(
  { rp_id }: PasskeyPlace,
  person: { owner: string; name: string },
  challenge: Uint8Array<ArrayBuffer>,
  known: readonly string[],
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await import("@simplewebauthn/server");
  return generateRegistrationOptions({
    rpName: "svc",
    rpID: rp_id,
    userName: person.name,
    userID: new Uint8Array(sha256(person.owner)),
    challenge,
    timeout: TIMEOUT_MS,
    attestationType: "none",
    excludeCredentials: known.map((id) => ({ id })),
    authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
    supportedAlgorithmIDs: [...ALGORITHMS],
  });
}

/** A registration that was verified, except for its challenge, which the caller uses up. */
export interface VerifiedRegistration {
  challenge: string;
  key: PasskeyPublicKey;
  counter: number;
}

export async function verifyRegistration(
  { rp_id, origins }: PasskeyPlace,
  response: RegistrationResponseJSON,
): Promise<VerifiedRegistration> {
  const { verifyRegistrationResponse } = await import("@simplewebauthn/server");
  let challenge = "";
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response,
      expectedChallenge(given) {
        challenge = given;
        return true;
      },
      expectedOrigin: [...origins],
      expectedRPID: rp_id,
      requireUserVerification: true,
      supportedAlgorithmIDs: [...ALGORITHMS],
    });
    if (!verified || registrationInfo.fmt !== "none") throw new Error("its attestation is not `none`");
    const { id, publicKey, counter } = registrationInfo.credential;
    return { challenge, key: { id, ...(await fromCose(publicKey)) }, counter };
  } catch (error) {
    throw invalidError(`response: is not a valid new passkey: ${messageOf(error)}`);
  }
}

async function fromCose(cose: Uint8Array): Promise<Pick<PasskeyPublicKey, "public_key" | "alg">> {
  const { decodeCredentialPublicKey } = await import("@simplewebauthn/server/helpers");
  const key = decodeCredentialPublicKey(new Uint8Array(cose)) as unknown as Map<number, number | Uint8Array>;
  const alg = (Object.keys(COSE) as PasskeyAlgorithm[]).find((name) => COSE[name] === key.get(3));
  const part = (label: number) => Buffer.from(key.get(label) as Uint8Array).toString("base64url");
  if (alg === undefined) throw new Error("its algorithm is not one of ES256, EdDSA and RS256");
  const jwk: Record<PasskeyAlgorithm, () => JsonWebKey> = {
    ES256: () => ({ kty: "EC", crv: "P-256", x: part(-2), y: part(-3) }),
    EdDSA: () => ({ kty: "OKP", crv: "Ed25519", x: part(-2) }),
    RS256: () => ({ kty: "RSA", n: part(-1), e: part(-2) }),
  };
  const spki = createPublicKey({ key: jwk[alg](), format: "jwk" }).export({ type: "spki", format: "der" });
  return { public_key: spki.toString("base64"), alg };
}

async function toCose({ public_key, alg }: Omit<PasskeyPublicKey, "id">): Promise<Uint8Array<ArrayBuffer>> {
  const { isoCBOR } = await import("@simplewebauthn/server/helpers");
  const key = createPublicKey({ key: Buffer.from(public_key, "base64"), format: "der", type: "spki" });
  const jwk = key.export({ format: "jwk" });
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
  const expected = { ES256: ["EC", "P-256"], EdDSA: ["OKP", "Ed25519"], RS256: ["RSA", undefined] }[alg];
  if (jwk.kty !== expected[0] || jwk.crv !== expected[1]) throw new Error(`the key is not for ${alg}`);
  return new Uint8Array(isoCBOR.encode(new Map(members[alg]())));
}

export async function requestOptions(
  { rp_id }: PasskeyPlace,
  payload: SignedPayload,
  passkeys: readonly { id: string; transports: string[] }[],
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await import("@simplewebauthn/server");
  return generateAuthenticationOptions({
    rpID: rp_id,
    challenge: new Uint8Array(payloadDigest(payload)),
    allowCredentials: passkeys.map(({ id, transports }) => ({ id, transports })),
    timeout: TIMEOUT_MS,
    userVerification: "required",
  });
}

interface SignedBy {
  place: PasskeyPlace;
  key: PasskeyPublicKey;
  /** The counter so far; 0 for a verifier that keeps none. */
  counter: number;
}

/** The assertion's counter, or the reason why the assertion does not sign the payload with this key. */
export async function verifyAssertion(
  payload: SignedPayload,
  assertion: PasskeyAssertion,
  { place, key, counter }: SignedBy,
): Promise<{ counter: number } | { problem: string }> {
  const { verifyAuthenticationResponse } = await import("@simplewebauthn/server");
  if (assertion.id !== key.id) return { problem: "another passkey signed it" };
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...assertion, clientExtensionResults: {} },
      expectedChallenge: payloadDigest(payload).toString("base64url"),
      expectedOrigin: [...place.origins],
      expectedRPID: place.rp_id,
      credential: { id: key.id, publicKey: await toCose(key), counter },
      requireUserVerification: true,
    });
    return verified ? { counter: authenticationInfo.newCounter } : { problem: "the signature is wrong" };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
