/**
 * Checks a signature and determines whose key made it. A key id is a short name, not a proof. If trusted keys are
 * given, the signature must verify with the complete trusted key, and a key inside the evidence must equal it.
 */
import { messageOf } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { TrustedKeys } from "./key-files.ts";
import { type PublicKey, parsePublicKey, type SignatureDomain, verifySignature } from "./signing.ts";

export interface SignedSummary {
  domain: SignatureDomain;
  summary: JsonValue;
  key_id: JsonValue | undefined;
  public_key: JsonValue | undefined;
  signature: JsonValue | undefined;
}

/**
 * `trusted`: by a key that the caller trusts. `self`: by the key inside the evidence. `unchecked`: no key was
 * available.
 */
export type KeyTrust = "trusted" | "self" | "unchecked";
type SignatureCheck =
  | { trust: Exclude<KeyTrust, "unchecked">; key: PublicKey }
  | { trust: "unchecked" }
  | { problem: string };

export function checkSignature(signed: SignedSummary, trusted: TrustedKeys): SignatureCheck {
  const { key_id, public_key, signature } = signed;
  if (typeof key_id !== "string" || !/^[0-9a-f]{16}$/.test(key_id))
    return { problem: "its key_id is not 16 hex digits" };
  if (typeof signature !== "string" || !/^[A-Za-z0-9+/]{86}==$/.test(signature)) {
    return { problem: "its signature is not 64 bytes in base64" };
  }
  const came = cameAlong(public_key, key_id);
  if (typeof came === "string") return { problem: came };
  const key = trusted.size === 0 ? came : trusted.get(key_id);
  if (trusted.size > 0) {
    if (key === undefined) return { problem: `it is signed with key ${key_id}, which is not a trusted key` };
    if (came !== undefined && came.pem !== key.pem)
      return { problem: "its public_key is not the trusted key of that id" };
  }
  if (key === undefined) return { trust: "unchecked" };
  if (!verifySignature(key, signed.domain, signed.summary, signature)) {
    return { problem: "the signature does not match: what was signed is not what is here" };
  }
  return { trust: trusted.size > 0 ? "trusted" : "self", key };
}

/** The key inside the evidence, or the problem with it. */
function cameAlong(public_key: JsonValue | undefined, key_id: string): PublicKey | string | undefined {
  if (public_key === undefined || public_key === null) return undefined;
  if (typeof public_key !== "string") return "its public_key is not a PEM public key";
  try {
    const key = parsePublicKey(public_key, "its public_key");
    return key.key_id === key_id ? key : "its key_id does not belong to its public_key";
  } catch (error) {
    return messageOf(error);
  }
}
