/** The running service as the operations see it: the engine's core, and the features around it. */
import type { AuthFailureCounter } from "../alerts/auth-failures.ts";
import type { KeyManager } from "../auth/manage.ts";
import type { CaptureRecorder } from "../capture/recorder.ts";
import type { Settings } from "../config/settings.ts";
import type { Egress } from "../egress/egress.ts";
import type { Core, Listeners } from "../engine/core.ts";
import type { RunFacts } from "../engine/gather.ts";
import type { SigningKey } from "../evidence/signing.ts";
import type { Lru } from "../kernel/lru.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Today } from "../model/roles.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { JobTools } from "../rollback/job.ts";
import type { Lookout } from "../rollback/look.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Background } from "./background/background.ts";
import type { OpenRequests } from "./door/open-requests.ts";
import type { Quotas } from "./door/quotas.ts";
import type { DrillTools } from "./operations/drills/ports.ts";
import type { RulesSource } from "./wiring/rules-source.ts";

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
  /** The authority that a kept principal has now; none where this process knows no credentials. */
  today: Today;
  /** Which principal a name means to a caller who may be bound to a tenant, by the keys and the issuer of this process. */
  principalNamed(name: string, kind?: "key" | "oidc", within?: string | null): string;
  /** Manages the key file; null where there is none. */
  keys: KeyManager | null;
  /** Tells people; null where no person is to be told from here. */
  notifier: Notifier | null;
  started_ms: number;
  background: Background;
  /** How this process undoes steps; null where no compensator is configured. */
  jobTools: JobTools | null;
  /** Who looks at what tools show, where that is not the reader command: the upstreams of a gateway. */
  lookout?: Lookout;
  /** Reads manifests, policy and keys again; throws and keeps the old ones when they do not load. */
  reload(): Promise<{ manifests: number; policy: string; keys: number }>;
  /** What this process counted of refused credentials and the shared window does not hold yet. */
  refusedCredentials?: AuthFailureCounter;
  /** What callers may take of this server; absent where nothing bounds them. */
  quotas?: Quotas;
  /** Counts open requests; only where a quota bounds them. */
  openRequests?: OpenRequests;
  /** Writes captured calls; absent or null where this process captures none. */
  capture?: CaptureRecorder | null;
  /** The tool servers behind this process; only a gateway has any. */
  connectors?(): Connector[];
  /** How drills reach an upstream, the only one where none is named; absent where there are none. */
  drills?(upstream?: string): { upstream: string; tools: DrillTools; offers(tool: string): boolean };
  /** Ends before `until`, a time of performance.now, if everything else lets it. */
  close(until?: number): Promise<void>;
}

export interface Connector {
  name: string;
  transport: "stdio" | "http";
  ok: boolean;
  tools: number;
}

/** Tells the side channels what was recorded. They cannot fail the caller. */
export function announce(listeners: Listeners, records: readonly LedgerRecord[], traceparent?: string): void {
  if (records.length > 0) listeners.recorded(records, traceparent);
}
