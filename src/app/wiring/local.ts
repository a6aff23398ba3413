/** The service inside one process, without a listener or credentials: for the command line and the library. */

import { readTextFileSync } from "../../config/files.ts";
import type { Settings } from "../../config/settings.ts";
import { type Listeners, silentListeners } from "../../engine/core.ts";
import { parseSigningKey, type SigningKey } from "../../evidence/signing.ts";
import type { Env } from "../../kernel/env.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { Lru } from "../../kernel/lru.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import { keyId } from "../../model/roles.ts";
import { createLogger, type Logger } from "../../telemetry/log.ts";
import type { App } from "../app.ts";
import { Background, timeLeft } from "../background/background.ts";
import { FORGET_VALUES_MS, ForgottenValues } from "../background/forget-values.ts";
import { refuse } from "../operations/reload.ts";
import { type OpenCoreOptions, openCore } from "./open-core.ts";
import { VERSION } from "./version.ts";

/** A disk that does not answer holds no stop up. */
const CLEAR_MS = 1_500;
const KNOWN_RUNS = 20_000;

export interface LocalOptions {
  listeners?: Listeners;
  log?: Logger;
  store?: OpenCoreOptions["store"];
  watch?: OpenCoreOptions["watch"];
}

export async function openLocalApp(settings: Settings, env: Env, options: LocalOptions = {}): Promise<App> {
  const log = options.log ?? createLogger(settings.log, { redact: redactSecrets });
  for (const warning of settings.meta.warnings) log.warn(warning);
  const signing = openSigningKey(settings.signing_key);
  const opened = await openCore({
    settings,
    env,
    log,
    listeners: options.listeners ?? { ...silentListeners },
    ...(options.store === undefined ? {} : { store: options.store }),
    ...(options.watch === undefined ? {} : { watch: options.watch }),
  });
  const background = new Background(log);
  const values = new ForgottenValues(opened.core.store);
  await values.open();
  background.every(FORGET_VALUES_MS, "clearing values of ended requests", () => values.tidy());
  return {
    version: VERSION,
    settings,
    core: opened.core,
    rules: opened.rules,
    egress: opened.egress,
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
      const { manifests, policy } = await opened.rules.reload().catch(refuse);
      return { manifests: manifests.all.length, policy: policy.hash, keys: 0 };
    },
    async close(until = performance.now() + LIMITS.stop_ms) {
      await background.stop(timeLeft(until));
      const patience = new AbortController();
      await Promise.race([values.close(), env.sleep(CLEAR_MS, patience.signal)]).catch(() => {});
      patience.abort();
      await opened.close();
    },
  };
}

export function openSigningKey(file: string | null): SigningKey | null {
  return file === null ? null : parseSigningKey(readTextFileSync(file), file);
}
