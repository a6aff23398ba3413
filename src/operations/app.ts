/** The running service as operations see it: the engine's core and the features around it. */
import type { AuthFailureCounter } from "../alerts/auth-failures.ts";
import type { KeyManager } from "../auth/key-manager.ts";
import type { TokenVault } from "../auth/token-vault.ts";
import type { CaptureRecorder } from "../capture/recorder.ts";
import type { LoadedSettings } from "../config/settings.ts";
import type { EgressClient } from "../egress/egress.ts";
import type { SigningKey } from "../evidence/signing.ts";
import type { EngineCore, EngineListeners } from "../govern/core.ts";
import type { RunFacts } from "../govern/decide/load-facts.ts";
import type { ResolvePrincipal } from "../govern/roles.ts";
import type { LruMap } from "../kernel/lru.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { EventNotifier } from "../notify/notifier.ts";
import type { JobTools } from "../rollback/job.ts";
import type { StateReader } from "../rollback/plan/current-state.ts";
import type { ServiceLogger } from "../telemetry/log.ts";
import type { BackgroundTasks } from "./background/background.ts";
import type { RulesSource } from "./background/rules-source.ts";
import type { DrillTools } from "./drills/ports.ts";
import type { OpenRequests } from "./pipeline/open-requests.ts";
import type { CallerQuotas } from "./pipeline/quotas.ts";

export interface ServiceApp {
  version: string;
  settings: LoadedSettings;
  core: EngineCore;
  rules: RulesSource;
  egress: EgressClient;
  /** Reaches push services, and no private address unless the settings allow it. */
  pushEgress: EgressClient;
  log: ServiceLogger;
  /** Signs bundles, anchors and archives; null if no signing key is configured. */
  signing: SigningKey | null;
  /** Encrypts tokens of upstreams at rest; null without token_key. */
  vault: TokenVault | null;
  /** Like `egress`, but private addresses are refused. */
  strictEgress: EgressClient;
  /** Cache of immutable run facts. With them, a store fetches all of an intent's facts at once. */
  runFacts: LruMap<string, RunFacts>;
  /** Resolves the current authority of a stored principal; always null if this process knows no credentials. */
  today: ResolvePrincipal;
  /**
   * Resolves a name to a principal id, from this process's keys and issuer. `within` is the caller's tenant, if it is
   * bound.
   */
  principalNamed(name: string, kind?: "key" | "oidc", within?: string | null): string;
  /** Manages the key file, if there is one. */
  keys: KeyManager | null;
  /** Sends notifications; null if this process sends none. */
  notifier: EventNotifier | null;
  /** The clock of a store that several servers share; null if the store is this machine's alone. */
  clock: { readonly offset_ms: number; readonly warning: string | null } | null;
  started_ms: number;
  /** The port this process listens on; absent before it listens. The settings may ask for any free port with 0. */
  bound_port?: number;
  background: BackgroundTasks;
  /** Undoes steps in this process; null if no compensator is configured. */
  jobTools: JobTools | null;
  /** Reads the current state through a gateway's upstreams, instead of the reader command. */
  stateReader?: StateReader;
  /** Reloads manifests, policy and keys. If any of them fails to load, throws and keeps the old ones. */
  reload(): Promise<{ manifests: number; policy: string; keys: number }>;
  /** Refused credentials that this process has not yet added to the shared window. */
  refusedCredentials?: AuthFailureCounter;
  /** Per-caller quotas of this server, if any are configured. */
  quotas?: CallerQuotas;
  /** Counts open requests, if a quota limits them. */
  openRequests?: OpenRequests;
  /** Writes captured calls; absent or null if capture is off. */
  capture?: CaptureRecorder | null;
  /** The tool servers behind this process. Only a gateway has any. */
  connectors?(): ConnectorStatus[];
  /** Tools for drills on the named upstream, or on the only one. Absent if there are no upstreams. */
  drills?(upstream?: string): { upstream: string; tools: DrillTools; offers(tool: string): boolean };
  /** Closes the app, if possible before `until` (a `performance.now` time). */
  close(until?: number): Promise<void>;
}

export interface ConnectorStatus {
  name: string;
  transport: "stdio" | "http";
  ok: boolean;
  tools: number;
}

/** Passes new records to the side channels. Their failures do not reach the caller. */
export function announceRecords(
  listeners: EngineListeners,
  records: readonly LedgerRecord[],
  traceparent?: string,
): void {
  if (records.length > 0) listeners.recorded(records, traceparent);
}
