/** The running service as the operations see it: the engine's core, and the features around it. */
import type { Core, Listeners } from "../engine/core.ts";
import type { RunFacts } from "../engine/gather.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Settings } from "../config/settings.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Lru } from "../kernel/lru.ts";

export interface App {
  version: string;
  settings: Settings;
  core: Core;
  auth: Authenticator;
  log: Logger;
  metrics: Metrics;
  /** Unchanging facts of runs seen lately: they let a store fetch all of an intent's facts at once. */
  runFacts: Lru<string, RunFacts>;
  started_ms: number;
  /** Reads manifests, policy and keys again; throws and keeps the old ones when they do not load. */
  reload(): Promise<{ manifests: number; policy: string; keys: number }>;
}

/** Tells the side channels what was recorded. They cannot fail the caller. */
export function announce(listeners: Listeners, records: readonly LedgerRecord[]): void {
  if (records.length > 0) listeners.recorded(records);
}
