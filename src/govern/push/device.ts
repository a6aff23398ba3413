/**
 * Browsers that get a person's push messages. They belong to a key entry, or to an issuer and subject, as passkeys do.
 * A person's devices are one document, so that their number and what each one shows change together.
 */
import { sha256Hex } from "../../kernel/hash.ts";
import type { StoredPrincipal } from "../roles.ts";
import { ownerKey } from "../signing/passkey.ts";

/** Times of a day without messages, in a time zone. `to` is on the next day if it is not after `from`. */
export interface QuietHours {
  from: string;
  to: string;
  zone: string;
}

/** A browser's subscription at its push service. The endpoint is a secret: its holder can send messages there. */
export interface PushTarget {
  endpoint: string;
  p256dh: string;
  auth: string;
}

export interface PushDevice extends PushTarget {
  id: string;
  label: string;
  /** Public key of this service that the browser subscribed with. */
  server_key: string;
  /** The console session in which it was added last; null outside the console. */
  session: string | null;
  quiet: QuietHours | null;
  added_ms: number;
  /** Ids of the subjects of its notifications, oldest first. */
  shown: string[];
  /** A message was withheld in the quiet hours. */
  held: boolean;
  last_ok_ms: number | null;
  last_error: string | null;
}

export interface PersonDevices {
  owner: string;
  name: string;
  tenant: string | null;
  holder: StoredPrincipal;
  devices: PushDevice[];
}

const ID = /^psh_([0-9a-f]{24})\.[0-9a-f]{16}$/;

export const deviceId = (owner: string, endpoint: string): string =>
  `psh_${ownerKey(owner)}.${sha256Hex(endpoint).slice(0, 16)}`;

/** Document key of the person whose device has this id. */
export const deviceOwnerKey = (id: string): string | undefined => ID.exec(id)?.[1];

/** True in the quiet hours. */
export function isQuiet({ from, to, zone }: QuietHours, now: number): boolean {
  const at = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  }).format(now);
  return from < to ? from <= at && at < to : from <= at || at < to;
}

export function isTimeZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat("en-GB", { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
