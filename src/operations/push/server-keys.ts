/** The pair that signs push messages: from the settings, or made once and kept in the store for all its processes. */
import { createECDH } from "node:crypto";
import { SvcError } from "../../kernel/errors.ts";
import type { ServerKeys } from "../../notify/push/message.ts";
import type { ServiceApp } from "../app.ts";

const KEY = "push_key";
const CURVE = "prime256v1";
const WIDTH = 32;

/** Why this server sends no push messages, or null. */
export const pushOff = ({ settings }: Pick<ServiceApp, "settings">): string | null =>
  contactOf(settings) === null
    ? "push messages need console_url (SVC_CONSOLE_URL) with https, or push.contact"
    : null;

function contactOf({ push, console_url }: ServiceApp["settings"]): string | null {
  return push.contact ?? (console_url?.startsWith("https:") ? console_url : null);
}

export async function serverKeys(app: Pick<ServiceApp, "settings" | "core">): Promise<ServerKeys> {
  const subject = contactOf(app.settings);
  if (subject === null) throw new SvcError("not_enabled", pushOff(app) ?? "");
  const private_key = app.settings.push.key ?? (await storedKey(app));
  const pair = createECDH(CURVE);
  pair.setPrivateKey(Buffer.from(private_key, "base64url"));
  return { private_key, public_key: pair.getPublicKey().toString("base64url"), subject };
}

async function storedKey({ core: { store } }: Pick<ServiceApp, "core">): Promise<string> {
  const known = await store.get("meta", KEY);
  if (typeof known === "string") return known;
  const fresh = freshKey();
  return store.transact({
    needs: [["meta", KEY]],
    run(tx) {
      const found = tx.get("meta", KEY);
      if (typeof found === "string") return found;
      tx.put("meta", KEY, fresh);
      return fresh;
    },
  });
}

function freshKey(): string {
  const pair = createECDH(CURVE);
  pair.generateKeys();
  const bytes = pair.getPrivateKey();
  // The library leaves out leading zeros.
  return Buffer.concat([Buffer.alloc(WIDTH - bytes.length), bytes]).toString("base64url");
}
