/** Opening the engine on a store: what the server, the gateway, the command line and the library share. */
import type { Settings } from "../../config/settings.ts";
import { createEgress, type Egress } from "../../egress/egress.ts";
import { type Core, type Listeners, silentListeners } from "../../engine/core.ts";
import type { Env } from "../../kernel/env.ts";
import { SvcError } from "../../kernel/errors.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import { registryRules } from "../../registry/rules.ts";
import { openStore, type StoreKind } from "../../store/open.ts";
import type { Store } from "../../store/port.ts";
import { type StoreWatch, watched } from "../../store/watched.ts";
import type { Logger } from "../../telemetry/log.ts";
import { killSwitch } from "./kill-switch.ts";
import { openRules, type RulesSource } from "./rules-source.ts";

export interface OpenedCore {
  core: Core;
  rules: RulesSource;
  egress: Egress;
  close(): Promise<void>;
}

export interface OpenCoreOptions {
  settings: Settings;
  env: Env;
  log: Logger;
  listeners?: Listeners;
  /** A store of the caller's own, instead of the one that the settings name. */
  store?: Store;
  /** Told of the store's commits and failures. */
  watch?: StoreWatch;
}

const STORE_KEY = "store_key";

export async function openCore({ settings, env, log, ...options }: OpenCoreOptions): Promise<OpenedCore> {
  const egress = createEgress(settings.egress, { log });
  const rules = await openRules({ settings, egress, log, registry: registryRules(settings.registry) });
  const opened =
    options.store ??
    (await openStore({
      store: settings.store as StoreKind,
      data: settings.data,
      database_url: settings.database_url,
      replica:
        settings.database_read_url === null
          ? undefined
          : { url: settings.database_read_url, max_lag_ms: settings.max_lag_ms },
      warn: (message, fields) => log.warn(message, fields),
    }));
  const store = options.watch === undefined ? opened : watched(opened, options.watch);
  try {
    const core: Core = {
      store,
      env,
      rules: () => rules.current(),
      environment: settings.environment,
      killSwitch: killSwitch(settings.kill_file),
      storeKey: await storeKey(store, env),
      redact: redactSecrets,
      listeners: options.listeners ?? silentListeners,
    };
    return {
      core,
      rules,
      egress,
      async close() {
        await store.close();
        await egress.close();
      },
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * The store's own secret, made once by whichever process comes first. A store that has lost its documents records
 * nothing any more, so nothing is hashed with a secret that stands in: the service starts, to show what can be shown.
 */
async function storeKey(store: Store, env: Env): Promise<string> {
  const fresh = Buffer.from(env.bytes(32)).toString("hex");
  const known = await store.get("meta", STORE_KEY).catch((error: unknown) => {
    if (error instanceof SvcError && error.code === "corrupt") return fresh;
    throw error;
  });
  if (typeof known === "string") return known;
  return store.transact({
    needs: [["meta", STORE_KEY]],
    run(tx) {
      const found = tx.get("meta", STORE_KEY);
      if (typeof found === "string") return found;
      tx.put("meta", STORE_KEY, fresh);
      return fresh;
    },
  });
}
