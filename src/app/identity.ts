/** Who may come in: the key file and the OIDC issuer that the settings name, watched and reloadable. */
import { Authenticator } from "../auth/authenticate.ts";
import { KeyFile } from "../auth/key-file.ts";
import { KeyManager } from "../auth/manage.ts";
import { OidcVerifier } from "../auth/oidc.ts";
import { keyFileOf, type Settings } from "../config/settings.ts";
import type { Egress } from "../egress/egress.ts";
import type { Env } from "../kernel/env.ts";
import type { Logger } from "../telemetry/log.ts";

export interface Identity {
  auth: Authenticator;
  /** Null where no key file is configured. */
  manager: KeyManager | null;
  close(): void;
}

export interface IdentityDeps {
  settings: Settings;
  env: Env;
  egress: Egress;
  log: Logger;
  /** Counts refused credentials, for the auth_failures alert. */
  failed(): void;
}

export async function openIdentity({ settings, env, egress, log, failed }: IdentityDeps): Promise<Identity> {
  const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
  const path = keyFileOf(settings);
  let opened = false;
  const changed = ({ size }: { size: number }) => {
    if (opened) log.info("the key file was reloaded", { keys: size });
  };
  const keys = path === null ? null : await KeyFile.open(path, { env, warn, changed });
  opened = true;
  keys?.watch();
  const { issuer, audience, role_map, groups_claim, max_permissions } = settings.oidc;
  const oidc =
    issuer === null
      ? null
      : new OidcVerifier(
          { issuer, audience, role_map, groups_claim, max_permissions },
          { egress, env, warn },
        );
  return {
    auth: new Authenticator({ env, keys, oidc, failed }),
    manager: keys === null ? null : new KeyManager(keys.path, { env, live: keys }),
    close: () => keys?.close(),
  };
}
