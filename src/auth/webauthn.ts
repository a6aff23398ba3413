/**
 * WebAuthn, with the library that implements it: creation and request options, new passkeys, and assertions. The library
 * is loaded when a passkey is first used. Keys are kept as SubjectPublicKeyInfo, which every verifier can read.
 */
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import {
  type PasskeyAssertion,
  type PasskeyPublicKey,
  payloadDigest,
  type SignedPayload,
} from "../govern/signing/payload.ts";
import { invalidError, messageOf } from "../kernel/errors.ts";
import { sha256 } from "../kernel/hash.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { fromCose, isStrictDer, PASSKEY_COSE_ALGORITHMS, toCose } from "./passkey-keys.ts";

let library: Promise<typeof import("@simplewebauthn/server")> | undefined;

/** Loads the library once. */
function loadLibrary(): NonNullable<typeof library> {
  library ??= import("@simplewebauthn/server");
  return library;
}

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

const TIMEOUT_MS = SERVICE_LIMITS.challenge_ms;

export async function creationOptions(
  { rp_id }: PasskeyPlace,
  person: { owner: string; name: string },
  challenge: Uint8Array<ArrayBuffer>,
  known: readonly string[],
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await loadLibrary();
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
    supportedAlgorithmIDs: [...PASSKEY_COSE_ALGORITHMS],
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
  const { verifyRegistrationResponse } = await loadLibrary();
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
      supportedAlgorithmIDs: [...PASSKEY_COSE_ALGORITHMS],
    });
    if (!verified || registrationInfo.fmt !== "none") throw new Error("its attestation is not `none`");
    if (isFramed(response.response.clientDataJSON)) throw new Error(FRAMED_PROBLEM);
    const { id, publicKey, counter } = registrationInfo.credential;
    return { challenge, key: { id, ...(await fromCose(publicKey)) }, counter };
  } catch (error) {
    throw invalidError(`response: is not a valid new passkey: ${messageOf(error)}`);
  }
}

export async function requestOptions(
  { rp_id }: PasskeyPlace,
  payload: SignedPayload,
  passkeys: readonly { id: string; transports: string[] }[],
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await loadLibrary();
  return generateAuthenticationOptions({
    rpID: rp_id,
    challenge: new Uint8Array(payloadDigest(payload)),
    allowCredentials: passkeys.map(({ id, transports }) => ({ id, transports })),
    timeout: TIMEOUT_MS,
    userVerification: "required",
  });
}

/** Another site's page can frame ours and cover it, so that the person does not see what they sign. */
function isFramed(clientDataJSON: string): boolean {
  const client: unknown = JSON.parse(Buffer.from(clientDataJSON, "base64url").toString());
  return (client as { crossOrigin?: unknown }).crossOrigin === true;
}

const FRAMED_PROBLEM = "it was made in another site's frame";

interface SignedBy {
  /** A verifier that knows no relying party gives all that the origin permits. */
  place: { rp_id: string | string[]; origins: readonly string[] };
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
  const { verifyAuthenticationResponse } = await loadLibrary();
  if (assertion.id !== key.id) return { problem: "another passkey signed it" };
  if (key.alg === "ES256" && !isStrictDer(Buffer.from(assertion.response.signature, "base64url")))
    return { problem: "the signature is not in the standard encoding" };
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...assertion, clientExtensionResults: {} },
      expectedChallenge: payloadDigest(payload).toString("base64url"),
      expectedOrigin: [...place.origins],
      expectedRPID: place.rp_id,
      credential: { id: key.id, publicKey: await toCose(key), counter },
      requireUserVerification: true,
    });
    if (isFramed(assertion.response.clientDataJSON)) return { problem: FRAMED_PROBLEM };
    return verified ? { counter: authenticationInfo.newCounter } : { problem: "the signature is wrong" };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}
