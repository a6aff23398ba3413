/** The payload that a passkey signs. Its hash is the WebAuthn challenge, so an assertion fits exactly one payload. */
import * as z from "zod";
import { sha256, sha256Hex } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonValue } from "../../kernel/json/json.ts";

/** Kinds of decisions that count as an approval. */
const DECISION_KINDS = [
  "approval",
  "offer",
  "grant",
  "plan",
  "delegation",
  "break_glass",
  "pre_approval",
  "compensation",
] as const;
export type DecisionKind = (typeof DECISION_KINDS)[number];

/** `passkey` confirms a further passkey of the same person. */
export const SIGNED_KINDS = [...DECISION_KINDS, "passkey"] as const;
export type SignedKind = (typeof SIGNED_KINDS)[number];

const text = (description: string) => z.string().max(4_096).exactOptional().meta({ description });

/** A member that does not apply to the kind is absent. */
export const signedPayloadSchema = z
  .strictObject({
    v: z.literal(1).meta({ description: "version of the payload" }),
    ledger: text("`ledger_origin` of the service"),
    kind: z.enum(SIGNED_KINDS).meta({ description: "kind of the decision" }),
    id: text("id of the request, plan, grant, delegation or passkey"),
    decision: z.string().max(64).meta({ description: "the decision" }),
    by: z.string().max(256).meta({ description: "name of the person" }),
    run_id: text("id of the run"),
    actor: text("name of the agent"),
    tenant: text("tenant of the run"),
    environment: text("environment of the run"),
    tool: text("the tool's name"),
    args_hash: text("keyed hash of the arguments"),
    card_hash: text("hash of the card"),
    shown_hash: text("hash of everything that the card draws and marks as signed"),
    subject_hash: text("hash of the grant, delegation, plan or reason"),
    policy_hash: text("hash of the policy"),
    expires_ms: z.int().exactOptional().meta({ description: "expiry of the request, grant or delegation" }),
    nonce: z.string().max(64).meta({ description: "random value, good once" }),
  })
  .meta({ description: "what the passkey signs" });
export type SignedPayload = z.output<typeof signedPayloadSchema>;

const base64url = (max: number, description: string) =>
  z
    .string()
    .max(max)
    .regex(/^[A-Za-z0-9_-]+$/, "must be base64url")
    .refine(
      (value) => Buffer.from(value, "base64url").toString("base64url") === value,
      "must be base64url without leftover bits",
    )
    .meta({ description });

/** The JSON form of a WebAuthn assertion. Members that no verification needs are dropped. */
export const assertionSchema = z
  .object({
    id: base64url(1_400, "the credential id"),
    rawId: base64url(1_400, "the credential id again"),
    type: z.literal("public-key").meta({ description: "type of the credential" }),
    response: z
      .object({
        clientDataJSON: base64url(8_192, "what the browser saw"),
        authenticatorData: base64url(8_192, "what the authenticator saw"),
        signature: base64url(2_048, "signature over both"),
      })
      .meta({ description: "the authenticator's answer" }),
  })
  .meta({ description: "the assertion in the JSON form of WebAuthn" });
export type PasskeyAssertion = z.output<typeof assertionSchema>;

/** Sent with the request that acts. */
export const signatureSchema = z
  .strictObject({ payload: signedPayloadSchema, assertion: assertionSchema })
  .meta({ description: "the challenge's payload, and the passkey's assertion over it" });
export type GivenSignature = z.output<typeof signatureSchema>;

export const PASSKEY_ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const;
export type PasskeyAlgorithm = (typeof PASSKEY_ALGORITHMS)[number];

/** A public key as signatures and approvers files name it. */
export interface PasskeyPublicKey {
  /** The credential id, base64url. */
  id: string;
  /** SubjectPublicKeyInfo, base64. */
  public_key: string;
  alg: PasskeyAlgorithm;
}

/** A verified signature, as it is stored with what it decided. */
export interface StoredSignature {
  payload: SignedPayload;
  assertion: PasskeyAssertion;
  key: PasskeyPublicKey;
}

export const isSamePayload = (a: SignedPayload, b: SignedPayload): boolean =>
  payloadText(a) === payloadText(b);

const payloadText = (payload: SignedPayload): string => toCanonicalJson(payload as JsonValue);

export const payloadDigest = (payload: SignedPayload): Buffer => sha256(payloadText(payload));

/** The hash of an assertion, as records name it. */
export const assertionHash = (assertion: PasskeyAssertion): string =>
  sha256Hex(toCanonicalJson(assertion as JsonValue));

const NAMED = /; signed ([0-9a-f]{64})$/;

/** The hash of the assertion that a record's detail names, or null. */
export const namedAssertion = (detail: string): string | null => NAMED.exec(detail)?.[1] ?? null;

/** A record's detail that names its signature. Text of a person that imitates a signature gets a full stop. */
export function signedDetail(detail: string, signature: StoredSignature | null | undefined): string {
  if (signature != null) return `${detail}; signed ${assertionHash(signature.assertion)}`;
  return namedAssertion(detail) === null ? detail : `${detail}.`;
}

/** The first characters of the hash of the public key, which people compare. */
export const passkeyCode = (spki: Uint8Array): string => sha256Hex(spki).slice(0, 8);
