/**
 * Whether a signature holds, and under whose key. A key id is a short name and never a proof: where a trusted
 * key is given, the signature is checked with that whole key, and a key that came along must be the same.
 */
import { messageOf } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { TrustedKeys } from "./key-files.ts";
import { type PublicKey, parsePublicKey, type SignatureDomain, verifySignature } from "./signing.ts";

export interface Signed {
  domain: SignatureDomain;
  summary: Json;
  key_id: Json | undefined;
  public_key: Json | undefined;
  signature: Json | undefined;
}

/** `trusted`: by a key the caller trusts. `self`: by the key that came along. `unchecked`: no key was there. */
export type Trust = "trusted" | "self" | "unchecked";
type SignatureCheck =
  | { trust: Exclude<Trust, "unchecked">; key: PublicKey }
  | { trust: "unchecked" }
  | { problem: string };

export function checkSignature(signed: Signed, trusted: TrustedKeys): SignatureCheck {
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

/** The key that travels with the evidence, or what is wrong with it. */
function cameAlong(public_key: Json | undefined, key_id: string): PublicKey | string | undefined {
  if (public_key === undefined || public_key === null) return undefined;
  if (typeof public_key !== "string") return "its public_key is not a PEM public key";
  try {
    const key = parsePublicKey(public_key, "its public_key");
    return key.key_id === key_id ? key : "its key_id does not belong to its public_key";
  } catch (error) {
    return messageOf(error);
  }
}
