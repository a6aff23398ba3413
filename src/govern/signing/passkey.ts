/**
 * Passkeys of one person. They belong to a key entry, or to an issuer and subject, never to a bare name. A person's
 * passkeys are one document, so that their number, the first one and each counter change together.
 */
import { sha256Hex } from "../../kernel/hash.ts";
import { isExpired } from "../expiry.ts";
import { type CallerPrincipal, hasRole, type ResolvePrincipal, type StoredPrincipal } from "../roles.ts";
import type { PasskeyPublicKey, SignedPayload } from "./payload.ts";

export const PASSKEY_STATUSES = ["pending", "active", "revoked"] as const;
export type PasskeyStatus = (typeof PASSKEY_STATUSES)[number];

export interface StoredPasskey {
  id: string;
  key: PasskeyPublicKey;
  counter: number;
  transports: string[];
  /** What the person's screen shows, and another admin compares. */
  code: string;
  status: PasskeyStatus;
  added_ms: number;
  /** End of the time to confirm it. */
  expires_ms: number;
  /** Wrong codes so far. */
  tries: number;
  confirmed_by: string | null;
  confirmed_ms: number | null;
  revoked_ms: number | null;
}

export interface PersonPasskeys {
  owner: string;
  name: string;
  tenant: string | null;
  holder: StoredPrincipal;
  passkeys: StoredPasskey[];
}

/** A challenge that can be signed once. */
export interface ChallengeDoc {
  owner: string;
  /** Null for the challenge of a new passkey. */
  payload: SignedPayload | null;
  expires_ms: number;
}

/** The credential that a passkey belongs to; null for people without one, such as users of an open console. */
export function passkeyOwner({ id, credential }: Pick<CallerPrincipal, "id" | "credential">): string | null {
  if (id.startsWith("oidc:")) return id;
  return id.startsWith("key:") && credential !== undefined ? keyOwner(credential) : null;
}

/** Owner of the passkeys of a key entry, by its fingerprint. */
export const keyOwner = (fingerprint: string): string => `key:${fingerprint}`;

/** Document key of a person's passkeys. */
export const ownerKey = (owner: string): string => sha256Hex(owner).slice(0, 24);

const ID = /^psk_([0-9a-f]{24})\.[0-9a-f]{16}$/;

export const passkeyId = (owner: string, credential_id: string): string =>
  `psk_${ownerKey(owner)}.${sha256Hex(credential_id).slice(0, 16)}`;

/** Document key of the person whose passkey has this id. */
export const ownerKeyOf = (id: string): string | undefined => ID.exec(id)?.[1];

/** The person as their credential permits now; null if it is gone or no longer decides. */
export function holderToday(
  { holder }: PersonPasskeys,
  today: ResolvePrincipal | undefined,
): CallerPrincipal | null {
  const found = today?.(holder) ?? null;
  return found !== null && hasRole(found, "approver") ? found : null;
}

/**
 * Status now: a pending passkey ends unconfirmed, and every passkey ends with its credential. A process that knows no
 * credentials shows the stored status.
 */
export function statusNow(
  person: PersonPasskeys,
  passkey: StoredPasskey,
  { now, today }: { now: number; today: ResolvePrincipal | undefined },
): PasskeyStatus {
  if (today !== undefined && holderToday(person, today) === null) return "revoked";
  return passkey.status === "pending" && isExpired(passkey, now) ? "revoked" : passkey.status;
}
