/** The rule for expiry: something with an `expires_ms` has expired from exactly that millisecond on. */
import { invalidError } from "../kernel/errors.ts";

/** `null` means that it never expires. */
export interface ExpiringItem {
  readonly expires_ms: number | null;
}

export function isExpired({ expires_ms }: ExpiringItem, now: number): boolean {
  return expires_ms !== null && now >= expires_ms;
}

/** `what` names the item, for the message. */
export function assertExpiryWithin(
  item: { expires_ms: number },
  now: number,
  days: number,
  what: string,
): void {
  if (isExpired(item, now)) throw invalidError("expires_at: is in the past");
  if (item.expires_ms > now + days * 86_400_000)
    throw invalidError(`expires_at: a ${what} lasts at most ${days} days`);
}

/** Something that also ends early if its giver revokes it. */
export function isInForce(item: ExpiringItem & { readonly revoked_ms: number | null }, now: number): boolean {
  return item.revoked_ms === null && !isExpired(item, now);
}
