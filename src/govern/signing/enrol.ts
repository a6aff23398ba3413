/** Adds, confirms and revokes passkeys. A passkey counts from its confirmation on, which is recorded. */
import { conflictError, forbiddenError, notFoundError, type SvcError } from "../../kernel/errors.ts";
import { sameSecret } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { EngineCore } from "../core.ts";
import { isExpired } from "../expiry.ts";
import type { StoreTx, UnitOfWork } from "../port/store.ts";
import { type CallerPrincipal, hasRole, tenantBinding, toStoredPrincipal } from "../roles.ts";
import { useChallenge } from "./challenge.ts";
import {
  holderToday,
  ownerKey,
  ownerKeyOf,
  type PersonPasskeys,
  passkeyId,
  passkeyOwner,
  type StoredPasskey,
  statusNow,
} from "./passkey.ts";
import { type PasskeyPublicKey, passkeyCode } from "./payload.ts";
import { type CheckedSignature, useSignature } from "./signature.ts";

export interface PasskeyChange {
  person: PersonPasskeys;
  passkey: StoredPasskey;
  records: LedgerRecord[];
  refused: SvcError | null;
}

export interface NewPasskey {
  challenge: string;
  key: PasskeyPublicKey;
  counter: number;
  transports: string[];
}

/** Revoked passkeys that are kept for the listing. */
const KEPT = 20;

export const unknownPasskey = (): SvcError => notFoundError("unknown passkey", "unknown_passkey");

/** Owner of the caller's passkeys. Throws for callers who did not sign in. */
export function requirePasskeyOwner(principal: CallerPrincipal): string {
  const owner = passkeyOwner(principal);
  if (owner !== null) return owner;
  throw forbiddenError(
    "a passkey belongs to a person: sign in with your own key, or at the issuer",
    "passkey_needs_person",
  );
}

/** Adds a passkey. `alone` makes it active without confirmation. */
export function addPasskeyUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  given: NewPasskey,
  alone: boolean,
): UnitOfWork<PasskeyChange> {
  const owner = requirePasskeyOwner(principal);
  const key = ownerKey(owner);
  return {
    needs: [
      ["passkeys", key],
      ["challenges", given.challenge],
    ],
    run(tx) {
      const now = core.env.now();
      const { payload } = useChallenge(core, tx, given.challenge, owner);
      if (payload !== null) throw conflictError("challenge_used", "the challenge is not for a new passkey");
      const known = tx.get("passkeys", key)?.passkeys ?? [];
      const live = known.filter((one) => isLive(one, now));
      if (live.length >= SERVICE_LIMITS.passkeys)
        throw conflictError(
          "passkeys_full",
          `you have ${SERVICE_LIMITS.passkeys} passkeys; revoke one before you add another`,
        );
      const id = passkeyId(owner, given.key.id);
      if (known.some((one) => one.id === id))
        throw conflictError("name_taken", "this passkey is known already");
      const passkey: StoredPasskey = {
        id,
        key: given.key,
        counter: given.counter,
        transports: given.transports,
        code: passkeyCode(Buffer.from(given.key.public_key, "base64")),
        status: "pending",
        added_ms: now,
        expires_ms: now + SERVICE_LIMITS.passkey_confirm_ms,
        tries: 0,
        confirmed_by: null,
        confirmed_ms: null,
        revoked_ms: null,
      };
      const ended = known.filter((one) => !isLive(one, now)).slice(-KEPT);
      const person: PersonPasskeys = {
        owner,
        name: principal.name,
        tenant: tenantBinding(principal),
        holder: toStoredPrincipal(principal),
        passkeys: [...ended, ...live, passkey],
      };
      tx.put("passkeys", key, person);
      if (!alone) return { person, passkey, records: [], refused: null };
      return activate(core, tx, { person, passkey, by: principal.name });
    },
  };
}

/** A pending passkey takes a place only until it ends. */
function isLive({ status, ...passkey }: StoredPasskey, now: number): boolean {
  return status === "active" || (status === "pending" && !isExpired(passkey, now));
}

function activate(
  core: EngineCore,
  tx: StoreTx,
  { person, passkey, by }: { person: PersonPasskeys; passkey: StoredPasskey; by: string },
): PasskeyChange {
  const now = core.env.now();
  const active: StoredPasskey = { ...passkey, status: "active", confirmed_by: by, confirmed_ms: now };
  const changed = withPasskey(tx, person, active);
  const detail = `passkey ${passkey.code} of ${person.name}, ${passkey.id}`;
  const record = tx.append({ event: "passkey_added", actor: by, ts_ms: now, detail });
  return { person: changed, passkey: active, records: [record], refused: null };
}

function withPasskey(tx: StoreTx, person: PersonPasskeys, passkey: StoredPasskey): PersonPasskeys {
  const passkeys = person.passkeys.map((one) => (one.id === passkey.id ? passkey : one));
  const changed = { ...person, passkeys };
  tx.put("passkeys", ownerKey(person.owner), changed);
  return changed;
}

function findPasskey(tx: StoreTx, id: string): { person: PersonPasskeys; passkey: StoredPasskey } {
  const key = ownerKeyOf(id);
  const person = key === undefined ? undefined : tx.get("passkeys", key);
  const passkey = person?.passkeys.find((one) => one.id === id);
  if (person === undefined || passkey === undefined) throw unknownPasskey();
  return { person, passkey };
}

/** The passkey, for its person or an admin. For other callers it does not exist. */
function findForCaller(tx: StoreTx, principal: CallerPrincipal, id: string) {
  const found = findPasskey(tx, id);
  const own = passkeyOwner(principal) === found.person.owner;
  if (!own && !hasRole(principal, "admin")) throw unknownPasskey();
  return { ...found, own };
}

/** Either the code that another admin compared, or an assertion of the person's active passkey. */
export type PasskeyConfirmation = { code: string } | { signature: CheckedSignature };

export function confirmPasskeyUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
  how: PasskeyConfirmation,
): UnitOfWork<PasskeyChange> {
  return {
    needs: [["passkeys", ownerKeyOf(id) ?? ""]],
    run(tx) {
      const { person, passkey, own } = findForCaller(tx, principal, id);
      assertPending(core, person, passkey);
      if ("signature" in how) {
        if (!own)
          throw forbiddenError("only the person can sign this; send the code that their screen shows");
        useSignature(core, tx, principal, how.signature, (nonce) => ({
          ...confirmationOf(passkey, principal, how.signature.payload.ledger),
          nonce,
        }));
        // The use of the other passkey changed the document.
        return activate(core, tx, { ...findPasskey(tx, id), by: principal.name });
      }
      if (own || person.name === principal.name)
        throw forbiddenError(
          "another admin confirms your passkey, or an active passkey of yours signs it",
          "own_passkey",
        );
      if (sameSecret(how.code, passkey.code))
        return activate(core, tx, { person, passkey, by: principal.name });
      return wrongCode(tx, person, passkey);
    },
  };
}

/** What the signature of a confirmation says. */
export const confirmationOf = (
  { id, code }: Pick<StoredPasskey, "id" | "code">,
  { name }: Pick<CallerPrincipal, "name">,
  ledger: string | undefined,
) => ({
  v: 1 as const,
  ...(ledger === undefined ? {} : { ledger }),
  kind: "passkey" as const,
  id,
  decision: `confirm ${code}`,
  by: name,
});

function assertPending(core: EngineCore, person: PersonPasskeys, passkey: StoredPasskey): void {
  const status = statusNow(person, passkey, { now: core.env.now(), today: core.today });
  if (status === "pending") return;
  throw conflictError(
    "passkey_not_pending",
    status === "active" ? "the passkey is active already" : "the passkey has ended; add it again",
  );
}

function wrongCode(tx: StoreTx, person: PersonPasskeys, passkey: StoredPasskey): PasskeyChange {
  const tries = passkey.tries + 1;
  const left = SERVICE_LIMITS.passkey_tries - tries;
  const counted: StoredPasskey = { ...passkey, tries, ...(left > 0 ? {} : { status: "revoked" as const }) };
  const refused = conflictError(
    "code_differs",
    left > 0
      ? `the code differs from the passkey's; compare it again (${left} tries left)`
      : "the code differed too often; the person has to add the passkey again",
  );
  return { person: withPasskey(tx, person, counted), passkey: counted, records: [], refused };
}

/** Revokes a passkey, as the person or an admin. */
export function revokePasskeyUnit(
  core: EngineCore,
  principal: CallerPrincipal,
  id: string,
): UnitOfWork<PasskeyChange> {
  return {
    needs: [["passkeys", ownerKeyOf(id) ?? ""]],
    run(tx) {
      const { person, passkey } = findForCaller(tx, principal, id);
      if (passkey.status === "revoked")
        throw conflictError("passkey_revoked", "the passkey is revoked already");
      return revoke(core, tx, { person, passkey, by: principal.name });
    },
  };
}

function revoke(
  core: EngineCore,
  tx: StoreTx,
  { person, passkey, by }: { person: PersonPasskeys; passkey: StoredPasskey; by: string },
): PasskeyChange {
  const now = core.env.now();
  const revoked: StoredPasskey = { ...passkey, status: "revoked", revoked_ms: now };
  const changed = withPasskey(tx, person, revoked);
  if (passkey.status === "pending") return { person: changed, passkey: revoked, records: [], refused: null };
  const detail = `passkey ${passkey.code} of ${person.name}, ${passkey.id}`;
  const record = tx.append({ event: "passkey_revoked", actor: by, ts_ms: now, detail });
  return { person: changed, passkey: revoked, records: [record], refused: null };
}

/** Revokes all passkeys of a credential that was deleted. */
export function revokeAllPasskeys(core: EngineCore, tx: StoreTx, owner: string, by: string): LedgerRecord[] {
  const records: LedgerRecord[] = [];
  for (const { id } of tx.get("passkeys", ownerKey(owner))?.passkeys ?? []) {
    const { person, passkey } = findPasskey(tx, id);
    if (passkey.status !== "revoked") records.push(...revoke(core, tx, { person, passkey, by }).records);
  }
  return records;
}

/** The person's passkeys that can sign now. */
export function activePasskeys(core: EngineCore, person: PersonPasskeys | undefined): StoredPasskey[] {
  if (person === undefined || holderToday(person, core.today) === null) return [];
  return person.passkeys.filter(({ status }) => status === "active");
}
