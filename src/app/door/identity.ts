/** Who may come in: the key file and the OIDC issuer that the settings name, watched and reloadable. */
import { Authenticator } from "../../auth/authenticate.ts";
import type { KeyEntry } from "../../auth/key-entry.ts";
import { KeyFile } from "../../auth/key-file.ts";
import { KeyManager } from "../../auth/manage.ts";
import { OidcVerifier } from "../../auth/oidc.ts";
import { IssuerSignIn } from "../../auth/sign-in.ts";
import { keyFileOf, type Settings } from "../../config/settings.ts";
import type { Egress } from "../../egress/egress.ts";
import type { Env } from "../../kernel/env.ts";
import { invalid } from "../../kernel/errors.ts";
import {
  boundTo,
  keyId,
  localId,
  localPerson,
  RESERVED_NAMES,
  type Today,
  tokenId,
} from "../../model/roles.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { App } from "../app.ts";

export interface Identity {
  auth: Authenticator;
  /** Null where no key file is configured. */
  manager: KeyManager | null;
  today: Today;
  principalNamed: App["principalNamed"];
  close(): void;
}

interface IdentityParts {
  settings: Settings;
  env: Env;
  egress: Egress;
  log: Logger;
  /** Counts refused credentials, for the auth_failures alert. */
  failed(): void;
}

export async function openIdentity({ settings, env, egress, log, failed }: IdentityParts): Promise<Identity> {
  const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
  const path = keyFileOf(settings);
  let opened = false;
  const changed = ({ size }: { size: number }) => {
    if (opened) log.info("the key file was reloaded", { keys: size });
  };
  const keys = path === null ? null : await KeyFile.open(path, { env, warn, changed });
  opened = true;
  keys?.watch();
  const { issuer, audience, role_map, tenant_map, groups_claim, max_permissions } = settings.oidc;
  const oidc =
    issuer === null
      ? null
      : new OidcVerifier(
          { issuer, audience, role_map, tenant_map, groups_claim, max_permissions },
          { egress, env, warn },
        );
  const { client_id, client_secret } = settings.oidc;
  const signIn =
    oidc === null || issuer === null || client_id === null
      ? null
      : new IssuerSignIn(
          { issuer, client_id, client_secret, groups_claim },
          { egress, verifier: oidc, failed: () => failed() },
        );
  const auth = new Authenticator({ env, keys, oidc, signIn, failed });
  return {
    auth,
    today: (kept) => consolePerson(settings, kept.principal) ?? auth.today(kept),
    principalNamed: (name, kind, within = null) => {
      if (RESERVED_NAMES.has(name)) return localId(name);
      if (kind === "oidc" && issuer === null)
        throw invalid("to_kind: no OIDC issuer is configured on this server");
      // A name that a key has means the key: whoever gets a token of that name gains nothing by it.
      // Whoever is bound to a tenant cannot find out by it which names the keys of another have.
      const isMeant = (entry: KeyEntry) =>
        entry.name === name && (within === null || [null, within].includes(boundTo(entry)));
      const known = keys?.ring.entries.some(isMeant) ?? false;
      const wanted = kind ?? (known || issuer === null ? "key" : "oidc");
      return wanted === "key" ? keyId(name) : tokenId(issuer!, name);
    },
    manager: keys === null ? null : new KeyManager(keys.path, { env, live: keys }),
    close: () => keys?.close(),
  };
}

/** The person at an open console lends and decides only while it is open. */
function consolePerson({ console: { mode, role } }: Settings, id: string) {
  const person = mode === "open" ? localPerson(role) : null;
  return person?.id === id ? person : null;
}
