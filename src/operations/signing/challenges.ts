/** Challenges: what a person will sign, as it is now. */
import * as z from "zod";
import { requestOptions } from "../../auth/webauthn.ts";
import { storeChallenge } from "../../govern/signing/challenge.ts";
import { activePasskeys, requirePasskeyOwner } from "../../govern/signing/enrol.ts";
import { SIGNED_KINDS, type SignedPayload, signedPayloadSchema } from "../../govern/signing/payload.ts";
import { passkeyRequired } from "../../govern/signing/signature.ts";
import { invalidError } from "../../kernel/errors.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { givenId } from "../schemas.ts";
import { passkeysOf, passkeysOff, requirePlace } from "./check-signature.ts";
import { PAYLOAD_DRAFTERS } from "./drafters.ts";

/** A plain denial needs no signature. */
const CHALLENGE_DECISIONS = ["approve", "offer", "grant", "delegate", "confirm"] as const;

export const openChallenge = defineOperation({
  id: "open_challenge",
  summary: "Get what to sign with a passkey before a decision",
  role: "approver",
  within_tenant: true,
  input: z.strictObject({
    kind: z.enum(SIGNED_KINDS),
    id: givenId("apr_<uuid>").optional(),
    decision: z.enum(CHALLENGE_DECISIONS),
    body: z.unknown().optional(),
  }),
  output: z.strictObject({
    payload: signedPayloadSchema,
    options: z.record(z.string(), z.unknown()).meta({ description: "options for navigator.credentials.get" }),
  }),
  feature: passkeysOff,
  errors: { not_found: "unknown id, or one that you cannot decide", conflict: "already decided" },
  async run(caller, { kind, id, decision, body }) {
    const { app, principal } = caller;
    const owner = requirePasskeyOwner(principal);
    const place = requirePlace(app);
    const draft = await PAYLOAD_DRAFTERS[kind](caller, { id, body });
    const [own] = draft.decision.split(" ", 1);
    if (own !== decision) throw invalidError(`decision: must be ${JSON.stringify(own)} for the kind ${kind}`);
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
