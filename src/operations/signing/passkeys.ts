/** Passkeys: enrol, confirm, list and revoke. */
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import * as z from "zod";
import { creationOptions, verifyRegistration } from "../../auth/webauthn.ts";
import { type CallerPrincipal, hasRole } from "../../govern/roles.ts";
import { storeChallenge } from "../../govern/signing/challenge.ts";
import {
  addPasskeyUnit,
  confirmPasskeyUnit,
  type PasskeyChange,
  requirePasskeyOwner,
  revokePasskeyUnit,
} from "../../govern/signing/enrol.ts";
import {
  PASSKEY_STATUSES,
  type PersonPasskeys,
  passkeyOwner,
  type StoredPasskey,
  statusNow,
} from "../../govern/signing/passkey.ts";
import { PASSKEY_ALGORITHMS, signatureSchema } from "../../govern/signing/payload.ts";
import { invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenId, noFields } from "../schemas.ts";
import { checkSignature, passkeysOf, passkeysOff, requirePlace } from "./check-signature.ts";

const passkeyShape = z.strictObject({
  id: z.string(),
  name: z.string().meta({ description: "the person" }),
  status: z.enum(PASSKEY_STATUSES),
  code: z.string().meta({ description: "the code to compare" }),
  alg: z.enum(PASSKEY_ALGORITHMS),
  credential_id: z.string().meta({ description: "id for an approvers file, base64url" }),
  public_key: z.string().meta({ description: "SubjectPublicKeyInfo for an approvers file, base64" }),
  added_ms: z.int(),
  confirmed_by: nullableSchema(z.string()),
  confirmed_ms: nullableSchema(z.int()),
  revoked_ms: nullableSchema(z.int()),
  mine: z.boolean().meta({ description: "true for your own passkeys" }),
});
export type PasskeyView = z.output<typeof passkeyShape>;

const passkey_id = givenId("psk_<id>");

function passkeyView(
  { core }: ServiceApp,
  principal: CallerPrincipal,
  person: PersonPasskeys,
  passkey: StoredPasskey,
): PasskeyView {
  const { id, key, code, added_ms, confirmed_by, confirmed_ms, revoked_ms } = passkey;
  return {
    id,
    name: person.name,
    status: statusNow(person, passkey, { now: core.env.now(), today: core.today }),
    code,
    alg: key.alg,
    credential_id: key.id,
    public_key: key.public_key,
    added_ms,
    confirmed_by,
    confirmed_ms,
    revoked_ms,
    mine: passkeyOwner(principal) === person.owner,
  };
}

function announced(app: ServiceApp, principal: CallerPrincipal, change: PasskeyChange): PasskeyView {
  announceRecords(app.core.listeners, change.records);
  if (change.refused !== null) throw change.refused;
  return passkeyView(app, principal, change.person, change.passkey);
}

export const passkeyOptions = defineOperation({
  id: "passkey_options",
  summary: "Get the options to create a passkey",
  role: "approver",
  within_tenant: true,
  input: noFields,
  output: z.record(z.string(), z.unknown()).meta({ description: "options for navigator.credentials.create" }),
  feature: passkeysOff,
  async run({ app, principal }) {
    const owner = requirePasskeyOwner(principal);
    const place = requirePlace(app);
    const known = (await passkeysOf(app, principal))?.passkeys ?? [];
    const challenge = new Uint8Array(app.core.env.bytes(32));
    await storeChallenge(app.core, Buffer.from(challenge).toString("base64url"), { owner, payload: null });
    const ids = known.filter(({ status }) => status !== "revoked").map(({ key }) => key.id);
    return { ...(await creationOptions(place, { owner, name: principal.name }, challenge, ids)) };
  },
});

const bounded = (max: number, description: string) => z.string().max(max).meta({ description });
const registrationSchema = z
  .object({
    id: bounded(1_400, "the credential id"),
    rawId: bounded(1_400, "the credential id again"),
    type: z.literal("public-key").meta({ description: "type of the credential" }),
    response: z
      .object({
        clientDataJSON: bounded(8_192, "what the browser saw"),
        attestationObject: bounded(16_384, "the new public key"),
        transports: z
          .array(z.string().max(32))
          .max(8)
          .optional()
          .meta({ description: "how the device is reached" }),
      })
      .meta({ description: "the authenticator's answer" }),
  })
  .meta({ description: "the new credential in the JSON form of WebAuthn" });

export const addPasskey = defineOperation({
  id: "add_passkey",
  summary: "Add a passkey of yours; it counts once it is confirmed",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ response: registrationSchema }),
  output: passkeyShape,
  feature: passkeysOff,
  errors: { conflict: "the challenge is used or expired, or you have too many passkeys" },
  async run({ app, principal }, { response }) {
    requirePasskeyOwner(principal);
    const { challenge, key, counter } = await verifyRegistration(requirePlace(app), {
      ...response,
      clientExtensionResults: {},
    } as RegistrationResponseJSON);
    const transports = response.response.transports ?? [];
    const given = { challenge, key, counter, transports };
    const alone = app.settings.passkeys.enrol === "self";
    const change = await app.core.store.transact(addPasskeyUnit(app.core, principal, given, alone));
    return announced(app, principal, change);
  },
});

export const confirmPasskey = defineOperation({
  id: "confirm_passkey",
  summary: "Confirm a passkey: with the code on the person's screen, or signed by an active one",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({
    passkey_id,
    code: z
      .string()
      .regex(/^[0-9a-f]{8}$/, "must be the 8 characters that the person's screen shows")
      .optional(),
    signature: signatureSchema.optional(),
  }),
  output: passkeyShape,
  feature: passkeysOff,
  errors: { not_found: "unknown passkey", conflict: "the code differs, or the passkey is not pending" },
  async run({ app, principal }, { passkey_id, code, signature }) {
    if ((code === undefined) === (signature === undefined))
      throw invalidError("send either code or signature");
    const how =
      signature === undefined
        ? { code: code! }
        : { signature: await checkSignature(app, principal, signature) };
    const unit = confirmPasskeyUnit(app.core, principal, passkey_id, how);
    return announced(app, principal, await app.core.store.transact(unit));
  },
});

export const revokePasskey = defineOperation({
  id: "revoke_passkey",
  summary: "Revoke a passkey of yours, or of anybody as an admin",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({ passkey_id }),
  output: passkeyShape,
  errors: { not_found: "unknown passkey", conflict: "already revoked" },
  async run({ app, principal }, { passkey_id }) {
    const unit = revokePasskeyUnit(app.core, principal, passkey_id);
    return announced(app, principal, await app.core.store.transact(unit));
  },
});

export const listPasskeys = defineOperation({
  id: "list_passkeys",
  summary: "List your passkeys; an admin sees those of everybody",
  role: "approver",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({ passkeys: z.array(passkeyShape) }),
  async run({ app, principal }) {
    const passkeys: PasskeyView[] = [];
    for await (const person of peopleSeen(app, principal))
      for (const one of person.passkeys) passkeys.push(passkeyView(app, principal, person, one));
    return { passkeys: passkeys.sort((a, b) => b.added_ms - a.added_ms) };
  },
});

async function* peopleSeen(app: ServiceApp, principal: CallerPrincipal): AsyncGenerator<PersonPasskeys> {
  if (!hasRole(principal, "admin")) {
    const own = await passkeysOf(app, principal);
    if (own !== undefined) yield own;
    return;
  }
  const limit = SERVICE_LIMITS.page_max;
  let after: { sort: number; key: string } | undefined;
  for (;;) {
    const rows = await app.core.store.list("passkeys", { limit, after });
    for (const { doc } of rows) yield doc;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limit) return;
    after = { sort: last.sort, key: last.key };
  }
}
