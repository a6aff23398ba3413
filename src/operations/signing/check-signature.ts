/** Verifies a signature that came with a request, before the unit that counts it. */
import { type PasskeyPlace, passkeyPlace, verifyAssertion } from "../../auth/webauthn.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { activePasskeys } from "../../govern/signing/enrol.ts";
import { ownerKey, type PersonPasskeys, passkeyOwner } from "../../govern/signing/passkey.ts";
import type { GivenSignature } from "../../govern/signing/payload.ts";
import { type CheckedSignature, passkeyRequired } from "../../govern/signing/signature.ts";
import { forbiddenError, SvcError } from "../../kernel/errors.ts";
import type { ServiceApp } from "../app.ts";

/** Why this server has no passkeys, or null. */
export const passkeysOff = ({ settings }: Pick<ServiceApp, "settings">): string | null =>
  passkeyPlace(settings) === null
    ? "passkeys need console_url (SVC_CONSOLE_URL), the URL at which people open the console"
    : null;

export function requirePlace(app: Pick<ServiceApp, "settings">): PasskeyPlace {
  const place = passkeyPlace(app.settings);
  if (place === null) throw new SvcError("not_enabled", passkeysOff(app) ?? "");
  return place;
}

export async function passkeysOf(
  { core }: Pick<ServiceApp, "core">,
  principal: CallerPrincipal,
): Promise<PersonPasskeys | undefined> {
  const owner = passkeyOwner(principal);
  return owner === null ? undefined : core.store.get("passkeys", ownerKey(owner));
}

export async function checkSignature(
  app: ServiceApp,
  principal: CallerPrincipal,
  { payload, assertion }: GivenSignature,
): Promise<CheckedSignature> {
  const place = requirePlace(app);
  const active = activePasskeys(app.core, await passkeysOf(app, principal));
  const passkey = active.find(({ key }) => key.id === assertion.id);
  if (passkey === undefined) throw passkeyRequired();
  const { key, counter } = passkey;
  const found = await verifyAssertion(payload, assertion, { place, key, counter });
  if ("problem" in found)
    throw forbiddenError(`signature: does not hold: ${found.problem}`, "passkey_required");
  return { payload, assertion, passkey_id: passkey.id, counter: found.counter };
}

/** The signature of a request, verified; undefined if it has none. */
export function checkGiven(
  app: ServiceApp,
  principal: CallerPrincipal,
  signature: GivenSignature | undefined,
): Promise<CheckedSignature> | undefined {
  return signature === undefined ? undefined : checkSignature(app, principal, signature);
}

/** Runs a decision. If it needs a passkey, the error names the page to sign at. */
export async function withSigningLink<T>(
  { settings }: Pick<ServiceApp, "settings">,
  page: string,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const base = settings.approve_url ?? settings.console_url;
    if (!(error instanceof SvcError) || error.cause_code !== "passkey_required" || base === null) throw error;
    const extra = { link: `${base}/console/${page}` };
    throw new SvcError(error.code, error.message, { cause: error, cause_code: error.cause_code, extra });
  }
}
