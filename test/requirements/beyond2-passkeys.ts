/** Statements on passkeys, and on approvals that only the approver can make. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Passkeys = section("beyond", "Passkeys", {
  "beyond.passkeys.algorithms": [38, "a passkey signs with ES256, EdDSA or RS256"],
  "beyond.passkeys.options": [38, "a new passkey needs user verification, with attestation `none`"],
  "beyond.passkeys.registration-lies": [38, "a registration for another origin or relying party, without presence or verification, or with an attestation is refused"],
  "beyond.passkeys.challenge-once": [38, "a challenge is good once, for the person who asked for it, for five minutes"],
  "beyond.passkeys.roles": [38, "people with the role approver or higher enrol"],
  "beyond.passkeys.open-console": [38, "the open console cannot enrol: 403"],
  "beyond.passkeys.ten": [38, "a person has at most ten passkeys"],
  "beyond.passkeys.first": [38, "another admin confirms the first passkey with the code: 8 hexadecimal characters of the hash of its public key"],
  "beyond.passkeys.another-admin": [38, "nobody confirms their own passkey with its code"],
  "beyond.passkeys.code": [38, "a wrong code is a 409; five of them, or a day, end the passkey"],
  "beyond.passkeys.further": [38, "an assertion of an active passkey of the same person confirms a further one"],
  "beyond.passkeys.stolen-session": [38, "a stolen session without the device adds no passkey"],
  "beyond.passkeys.counter": [38, "a counter that does not grow is refused, unless both are 0"],
  "beyond.passkeys.self": [38, "`passkeys.enrol: self` makes a passkey active at once; without `console_url` there are no passkeys"],
  "beyond.passkeys.added-record": [38, "`passkey_added` is written when the passkey becomes active, by whoever confirmed it"],
  "beyond.passkeys.list": [38, "people list their own passkeys, admins those of everybody"],
  "beyond.passkeys.revoke": [38, "the person or an admin revokes a passkey; `passkey_revoked` is written"],
  "beyond.passkeys.lost-device": [38, "a revoked passkey signs nothing, not even a challenge that was open"],
  "beyond.passkeys.key-entry": [38, "a passkey belongs to a key entry, not to its name, and is revoked with it"],
  "beyond.passkeys.console": [38, "the console adds, confirms, signs and revokes passkeys in a real browser"],
  "beyond.passkeys.command": [38, "`svc passkeys list` and `revoke` do what the routes do"],
  "beyond.passkeys.tenants": [38, "an admin bound to a tenant sees and confirms the passkeys of that tenant only"],
});
