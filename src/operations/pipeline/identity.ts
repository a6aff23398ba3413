/** Authentication sources: the key file and the OIDC issuer from the settings, watched and reloadable. */
import { RequestAuthenticator } from "../../auth/authenticate.ts";
import type { KeyEntry } from "../../auth/key-entry.ts";
import { KeyFile } from "../../auth/key-file.ts";
import { KeyManager } from "../../auth/key-manager.ts";
import { OidcVerifier } from "../../auth/oidc.ts";
import { IssuerSignIn } from "../../auth/sign-in.ts";
import { keyFileOf, type LoadedSettings } from "../../config/settings.ts";
import type { EgressClient } from "../../egress/egress.ts";
import {
  keyId,
  localConsolePrincipal,
  localId,
  RESERVED_NAMES,
  type ResolvePrincipal,
  tenantBinding,
  tokenId,
} from "../../govern/roles.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { invalidError } from "../../kernel/errors.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import type { ServiceApp } from "../app.ts";

export interface IdentitySources {
  auth: RequestAuthenticator;
  /** Null if no key file is configured. */
  manager: KeyManager | null;
  today: ResolvePrincipal;
  principalNamed: ServiceApp["principalNamed"];
  close(): void;
}

interface IdentityParts {
  settings: LoadedSettings;
  env: RuntimeEnv;
  egress: EgressClient;
  log: ServiceLogger;
  /** Counts refused credentials, for the auth_failures alert. */
  failed(): void;
}

export async function openIdentity({
  settings,
  env,
  egress,
  log,
  failed,
}: IdentityParts): Promise<IdentitySources> {
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
  const auth = new RequestAuthenticator({ env, keys, oidc, signIn, failed });
  return {
    auth,
    today: (kept) => consolePerson(settings, kept.principal) ?? auth.today(kept),
    principalNamed: (name, kind, within = null) => {
      if (RESERVED_NAMES.has(name)) return localId(name);
      if (kind === "oidc" && issuer === null)
        throw invalidError("to_kind: no OIDC issuer is configured on this server");
      // A key's name always refers to that key, so a token with the same name gains nothing. A tenant-bound caller
      // cannot use this lookup to discover the names of other tenants' keys.
      const isMeant = (entry: KeyEntry) =>
        entry.name === name && (within === null || [null, within].includes(tenantBinding(entry)));
      const known = keys?.ring.entries.some(isMeant) ?? false;
      const wanted = kind ?? (known || issuer === null ? "key" : "oidc");
      return wanted === "key" ? keyId(name) : tokenId(issuer!, name);
    },
    manager: keys === null ? null : new KeyManager(keys.path, { env, live: keys }),
    close: () => keys?.close(),
  };
}

/** The user of an open console can delegate and approve only while the console is open. */
function consolePerson({ console: { mode, role } }: LoadedSettings, id: string) {
  const person = mode === "open" ? localConsolePrincipal(role) : null;
  return person?.id === id ? person : null;
}
