/**
 * Uses a verified signature inside a unit: the challenge is used up, the payload must still be current, and the passkey
 * must still be active. So nothing that changed between the verification and the unit goes unseen.
 */
import { conflictError, forbiddenError, type SvcError } from "../../kernel/errors.ts";
import type { ApprovalDoc, ApprovalVoter } from "../approvals/approval.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import type { CallerPrincipal } from "../roles.ts";
import { useChallenge } from "./challenge.ts";
import { holderToday, ownerKey, passkeyOwner, type StoredPasskey } from "./passkey.ts";
import { isSamePayload, type PasskeyAssertion, type SignedPayload, type StoredSignature } from "./payload.ts";

/** A signature whose assertion was verified with this passkey. */
export interface CheckedSignature {
  payload: SignedPayload;
  assertion: PasskeyAssertion;
  passkey_id: string;
  counter: number;
}

export const passkeyRequired = (): SvcError => forbiddenError("a passkey is required", "passkey_required");

/**
 * Counts the signature. `current` builds the payload as it would be signed now; a difference is a conflict. Returns what
 * to store with the decision.
 */
export function useSignature(
  core: EngineCore,
  tx: StoreTx,
  principal: CallerPrincipal,
  { payload, assertion, passkey_id, counter }: CheckedSignature,
  current: (nonce: string, signed: SignedPayload) => SignedPayload,
): StoredSignature {
  const owner = passkeyOwner(principal);
  if (owner === null) throw passkeyRequired();
  const challenge = useChallenge(core, tx, payload.nonce, owner);
  if (challenge.payload === null || !isSamePayload(challenge.payload, payload)) throw stale();
  if (!isSamePayload(current(payload.nonce, payload), payload)) throw stale();
  const person = tx.get("passkeys", ownerKey(owner));
  const passkey = person?.passkeys.find(({ id }) => id === passkey_id);
  if (person === undefined || passkey?.status !== "active" || holderToday(person, core.today) === null)
    throw forbiddenError("the passkey is not active", "passkey_required");
  if (!isCounterGrown(passkey, counter))
    throw forbiddenError("the passkey's counter did not grow; it may be a copy", "passkey_required");
  const passkeys = person.passkeys.map((one) => (one === passkey ? { ...one, counter } : one));
  tx.put("passkeys", ownerKey(owner), { ...person, passkeys });
  return { payload, assertion, key: passkey.key };
}

/** Some passkeys keep no counter and always send 0. */
const isCounterGrown = ({ counter: before }: Pick<StoredPasskey, "counter">, counter: number): boolean =>
  counter > before || (counter === 0 && before === 0);

const stale = (): SvcError =>
  conflictError(
    "signature_stale",
    "the content changed since you signed it; review it again, then sign a new challenge",
  );

/** Time to live of a new approval: the signed end, if there is one, so that approval and signature end together. */
export function ttlOf(given: CheckedSignature | undefined, ttl_ms: number, now: number): number {
  const end = given?.payload.expires_ms;
  if (end === undefined) return ttl_ms;
  if (end <= now) throw stale();
  return end - now;
}

/** The first voter of a new approval, with the signature. */
export const signedVoter = (
  voter: ApprovalVoter,
  signature: StoredSignature | null,
): Pick<ApprovalDoc["internal"], "voters" | "signatures"> =>
  signature === null
    ? { voters: [voter] }
    : { voters: [{ ...voter, signed: signature.payload.policy_hash }], signatures: [signature] };
