/** Challenges: what a person will sign, as it is now. */
import * as z from "zod";
import { requestOptions } from "../../auth/webauthn.ts";
import { storeChallenge } from "../../govern/signing/challenge.ts";
import {
  activePasskeys,
  confirmationOf,
  requirePasskeyOwner,
  unknownPasskey,
} from "../../govern/signing/enrol.ts";
import { type SignedPayload, signedPayloadSchema } from "../../govern/signing/payload.ts";
import { passkeyRequired } from "../../govern/signing/signature.ts";
import type { ServiceApp } from "../app.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { givenId } from "../schemas.ts";
import { passkeysOf, passkeysOff, requirePlace } from "./check-signature.ts";

interface Asked {
  id: string | undefined;
  decision: string;
  body: unknown;
}

type Draft = Omit<SignedPayload, "nonce">;
type Drafter = (caller: ApiCaller, asked: Asked) => Promise<Draft>;

/** Builds the payload of each kind. Throws if the caller may not do the act. */
const DRAFTERS = { passkey: draftConfirmation } as const satisfies Partial<
  Record<SignedPayload["kind"], Drafter>
>;

type ChallengeKind = keyof typeof DRAFTERS;

async function draftConfirmation({ app, principal }: ApiCaller, { id }: Asked): Promise<Draft> {
  const found = (await passkeysOf(app, principal))?.passkeys.find((one) => one.id === id);
  if (found === undefined) throw unknownPasskey();
  return confirmationOf(found, principal, ledgerName(app));
}

/** Name of the ledger in payloads. */
const ledgerName = ({ settings }: ServiceApp): string | undefined => settings.ledger_origin ?? undefined;

export const openChallenge = defineOperation({
  id: "open_challenge",
  summary: "Get what to sign with a passkey before a decision",
  role: "approver",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({
    kind: z.enum(Object.keys(DRAFTERS) as [ChallengeKind]),
    id: givenId("apr_<uuid>").optional(),
    decision: z.string().max(64),
    body: z.unknown().optional(),
  }),
  output: z.strictObject({
    payload: signedPayloadSchema,
    options: z.record(z.string(), z.unknown()).meta({ description: "options for navigator.credentials.get" }),
  }),
  feature: passkeysOff,
  errors: { not_found: "unknown id, or one that you cannot decide" },
  async run(caller, { kind, id, decision, body }) {
    const { app, principal } = caller;
    const owner = requirePasskeyOwner(principal);
    const place = requirePlace(app);
    const draft = await DRAFTERS[kind](caller, { id, decision, body });
    const passkeys = activePasskeys(app.core, await passkeysOf(app, principal));
    if (passkeys.length === 0) throw passkeyRequired();
    const nonce = Buffer.from(app.core.env.bytes(32)).toString("base64url");
    const payload: SignedPayload = { ...draft, nonce };
    await storeChallenge(app.core, nonce, { owner, payload });
    const keys = passkeys.map(({ key, transports }) => ({ id: key.id, transports }));
    const options = await requestOptions(place, payload, keys);
    return { payload, options: { ...options } };
  },
});
