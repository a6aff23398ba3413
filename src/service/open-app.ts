/**
 * Opens the app on a store, without a listener or credentials. The CLI and the library use it as it is; a service
 * extends it.
 */
import { TokenVault } from "../auth/token-vault.ts";
import { readTextFileSync } from "../config/files.ts";
import type { LoadedSettings } from "../config/settings.ts";
import { createEgress, type EgressClient } from "../egress/egress.ts";
import { parseSigningKey, type SigningKey } from "../evidence/signing.ts";
import { type EngineCore, type EngineListeners, silentListeners } from "../govern/core.ts";
import type { StateStore } from "../govern/port/store.ts";
import { keyId } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { LruMap } from "../kernel/lru.ts";
import { SilenceWatch } from "../kernel/silence-watch.ts";
import { settleWithin } from "../kernel/timeout.ts";
import type { ServiceApp } from "../operations/app.ts";
import { BackgroundTasks, stopTimeLeft } from "../operations/background/background.ts";
import { PURGE_VALUES_INTERVAL_MS, ValuePurger } from "../operations/background/purge-values.ts";
import { openRules, type RulesSource } from "../operations/background/rules-source.ts";
import { throwReloadConflict } from "../operations/reload.ts";
import { registryRules } from "../registry/active-rules.ts";
import { redactSecrets } from "../rules/detect/secrets.ts";
import { instrumentedStore, type StoreWatch } from "../store/instrumented-store.ts";
import { openStore, type StoreKind } from "../store/open.ts";
import { createLogger, type ServiceLogger } from "../telemetry/log.ts";
import { killSwitch } from "./kill-switch.ts";
import { CLOCK_MEASURE_MS, openSharedClock, type SharedClock } from "./shared-clock.ts";
import { PACKAGE_VERSION } from "./version.ts";

/** Time limit for the final purge, so that a hanging disk does not block the shutdown. */
const CLEAR_MS = 1_500;
const KNOWN_RUNS = 20_000;
const STORE_KEY = "store_key";

export interface AppOptions {
  listeners?: EngineListeners;
  log?: ServiceLogger;
  /** The caller's store, instead of the one from the settings. */
  store?: StateStore;
  /** Observes the store's commits and failures. */
  watch?: StoreWatch;
}

export async function openApp(
  settings: LoadedSettings,
  own: RuntimeEnv,
  options: AppOptions = {},
): Promise<ServiceApp> {
  const log = options.log ?? createLogger(settings.log, { redact: redactSecrets });
  for (const warning of settings.meta.warnings) log.warn(warning);
  const signing = openSigningKey(settings.signing_key);
  const { token_key: current, token_key_previous: previous } = settings;
  const vault =
    current === null ? null : new TokenVault({ current, previous }, (length) => env.bytes(length));
  const egress = createEgress(settings.egress, { log });
  const strictEgress = createEgress({ ...settings.egress, block_private: true }, { log });
  const pushEgress = openPushEgress(settings, { log });
  const rules = await openRules({ settings, egress, log, registry: registryRules(settings.registry) });
  const opened = options.store ?? (await namedStore(settings, log));
  const store = options.watch === undefined ? opened : instrumentedStore(opened, options.watch);
  // The owner of a store also owns the time.
  const clock = options.store === undefined ? await clockOf(store, own, log) : null;
  const env = clock?.env ?? own;
  const core = await coreOn(store, rules, { settings, env, listeners: options.listeners });
  const background = new BackgroundTasks(log);
  if (clock !== null)
    background.every(CLOCK_MEASURE_MS, "reading the database's clock", () => clock.measure());
  const values = new ValuePurger(store);
  await values.open();
  background.every(PURGE_VALUES_INTERVAL_MS, "clearing values of ended requests", () => values.tidy());
  return {
    version: PACKAGE_VERSION,
    settings,
    core,
    rules,
    egress,
    pushEgress,
    log,
    signing,
    vault,
    strictEgress,
    runFacts: new LruMap(KNOWN_RUNS),
    clock,
    started_ms: env.now(),
    background,
    jobTools: null,
    keys: null,
    today: () => null,
    principalNamed: keyId,
    notifier: null,
    async reload() {
      const { manifests, policy } = await rules.reload().catch(throwReloadConflict);
      return { manifests: manifests.all.length, policy: policy.hash, keys: 0 };
    },
    async close(until = performance.now() + SERVICE_LIMITS.stop_ms) {
      await background.stop(stopTimeLeft(until));
      await settleWithin(values.close(), CLEAR_MS, { env });
      await store.close();
      await Promise.all([egress, strictEgress, pushEgress].map((one) => one.close()));
    },
  };
}

/** People name the push services, so private addresses are refused even if the egress rules allow them. */
function openPushEgress({ egress, push }: LoadedSettings, parts: { log: ServiceLogger }): EgressClient {
  return createEgress({ ...egress, block_private: egress.block_private || !push.allow_private }, parts);
}

export function openSigningKey(file: string | null): SigningKey | null {
  return file === null ? null : parseSigningKey(readTextFileSync(file), file);
}

function namedStore(settings: LoadedSettings, log: ServiceLogger): Promise<StateStore> {
  const { data, database_url, database_read_url, max_lag_ms } = settings;
  return openStore({
    store: settings.store as StoreKind,
    data,
    database_url,
    replica: database_read_url === null ? undefined : { url: database_read_url, max_lag_ms },
    warn: (message, fields) => log.warn(message, fields),
  });
}

async function clockOf(store: StateStore, env: RuntimeEnv, log: ServiceLogger): Promise<SharedClock | null> {
  try {
    return await openSharedClock(store, env, log);
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function coreOn(
  store: StateStore,
  rules: RulesSource,
  {
    settings,
    env,
    listeners,
  }: { settings: LoadedSettings; env: RuntimeEnv; listeners: EngineListeners | undefined },
): Promise<EngineCore> {
  try {
    return {
      store,
      env,
      rules: () => rules.current(),
      environment: settings.environment,
      ledger: settings.ledger_origin ?? undefined,
      killSwitch: killSwitch(settings.kill_file),
      storeKey: await storeKey(store, env),
      leases: new SilenceWatch(),
      redact: redactSecrets,
      listeners: listeners ?? { ...silentListeners },
      awaited: store.kind === "postgres" ? new LruMap(KNOWN_RUNS) : undefined,
    };
  } catch (error) {
    await store.close();
    throw error;
  }
}

/**
 * Secret of the store, created once by the first process. If the store has lost its documents, a temporary secret is
 * enough: such a store records nothing, so nothing is hashed with it, and the service can start to show what is
 * readable.
 */
async function storeKey(store: StateStore, env: RuntimeEnv): Promise<string> {
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
