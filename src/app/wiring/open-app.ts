/**
 * Opening the app on a store, without a listener or credentials: what the command line and the library run on, and
 * what a service starts from.
 */
import { readTextFileSync } from "../../config/files.ts";
import type { Settings } from "../../config/settings.ts";
import { createEgress } from "../../egress/egress.ts";
import { type Core, type Listeners, silentListeners } from "../../engine/core.ts";
import { parseSigningKey, type SigningKey } from "../../evidence/signing.ts";
import { atMost } from "../../kernel/deadline.ts";
import type { Env } from "../../kernel/env.ts";
import { SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { Lru } from "../../kernel/lru.ts";
import { SilenceWatch } from "../../kernel/silence.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import { keyId } from "../../model/roles.ts";
import type { Store } from "../../port/store.ts";
import { registryRules } from "../../registry/rules.ts";
import { openStore, type StoreKind } from "../../store/open.ts";
import { type StoreWatch, watched } from "../../store/watched.ts";
import { createLogger, type Logger } from "../../telemetry/log.ts";
import type { App } from "../app.ts";
import { Background, timeLeft } from "../background/background.ts";
import { FORGET_VALUES_MS, ForgottenValues } from "../background/forget-values.ts";
import { refuse } from "../operations/reload.ts";
import { killSwitch } from "./kill-switch.ts";
import { openRules, type RulesSource } from "./rules-source.ts";
import { VERSION } from "./version.ts";

/** A disk that does not answer holds no stop up. */
const CLEAR_MS = 1_500;
const KNOWN_RUNS = 20_000;
const STORE_KEY = "store_key";

export interface AppOptions {
  listeners?: Listeners;
  log?: Logger;
  /** A store of the caller's own, instead of the one that the settings name. */
  store?: Store;
  /** Told of the store's commits and failures. */
  watch?: StoreWatch;
}

export async function openApp(settings: Settings, env: Env, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLogger(settings.log, { redact: redactSecrets });
  for (const warning of settings.meta.warnings) log.warn(warning);
  const signing = openSigningKey(settings.signing_key);
  const egress = createEgress(settings.egress, { log });
  const rules = await openRules({ settings, egress, log, registry: registryRules(settings.registry) });
  const opened = options.store ?? (await namedStore(settings, log));
  const store = options.watch === undefined ? opened : watched(opened, options.watch);
  const core = await coreOn(store, rules, { settings, env, listeners: options.listeners });
  const background = new Background(log);
  const values = new ForgottenValues(store);
  await values.open();
  background.every(FORGET_VALUES_MS, "clearing values of ended requests", () => values.tidy());
  return {
    version: VERSION,
    settings,
    core,
    rules,
    egress,
    log,
    signing,
    runFacts: new Lru(KNOWN_RUNS),
    started_ms: env.now(),
    background,
    jobTools: null,
    keys: null,
    today: () => null,
    principalNamed: keyId,
    notifier: null,
    async reload() {
      const { manifests, policy } = await rules.reload().catch(refuse);
      return { manifests: manifests.all.length, policy: policy.hash, keys: 0 };
    },
    async close(until = performance.now() + LIMITS.stop_ms) {
      await background.stop(timeLeft(until));
      await atMost(values.close(), CLEAR_MS, { env });
      await store.close();
      await egress.close();
    },
  };
}

export function openSigningKey(file: string | null): SigningKey | null {
  return file === null ? null : parseSigningKey(readTextFileSync(file), file);
}

function namedStore(settings: Settings, log: Logger): Promise<Store> {
  const { data, database_url, database_read_url, max_lag_ms } = settings;
  return openStore({
    store: settings.store as StoreKind,
    data,
    database_url,
    replica: database_read_url === null ? undefined : { url: database_read_url, max_lag_ms },
    warn: (message, fields) => log.warn(message, fields),
  });
}

async function coreOn(
  store: Store,
  rules: RulesSource,
  { settings, env, listeners }: { settings: Settings; env: Env; listeners: Listeners | undefined },
): Promise<Core> {
  try {
    return {
      store,
      env,
      rules: () => rules.current(),
      environment: settings.environment,
      killSwitch: killSwitch(settings.kill_file),
      storeKey: await storeKey(store, env),
      leases: new SilenceWatch(),
      redact: redactSecrets,
      listeners: listeners ?? { ...silentListeners },
      awaited: store.kind === "postgres" ? new Lru(KNOWN_RUNS) : undefined,
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
