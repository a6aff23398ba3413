/** The running service as the operations see it: the engine's core, and the features around it. */
import type { Settings } from "../config/settings.ts";
import type { Egress } from "../egress/egress.ts";
import type { Core, Listeners } from "../engine/core.ts";
import type { RunFacts } from "../engine/gather.ts";
import type { SigningKey } from "../evidence/signing.ts";
import type { Lru } from "../kernel/lru.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Background } from "./background.ts";
import type { RulesSource } from "./rules-source.ts";

export interface App {
  version: string;
  settings: Settings;
  core: Core;
  rules: RulesSource;
  egress: Egress;
  log: Logger;
  /** Signs bundles, anchors and archives; null where none is configured. */
  signing: SigningKey | null;
  /** Unchanging facts of runs seen lately: they let a store fetch all of an intent's facts at once. */
  runFacts: Lru<string, RunFacts>;
  started_ms: number;
  background: Background;
  /** Reads manifests, policy and keys again; throws and keeps the old ones when they do not load. */
  reload(): Promise<{ manifests: number; policy: string; keys: number }>;
  close(): Promise<void>;
}

/** Tells the side channels what was recorded. They cannot fail the caller. */
export function announce(listeners: Listeners, records: readonly LedgerRecord[]): void {
  if (records.length > 0) listeners.recorded(records);
}
