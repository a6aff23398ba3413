/** Dependencies of engine operations: the store, the environment and the active rules. */
import type { RuntimeEnv } from "../kernel/env.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { LruMap } from "../kernel/lru.ts";
import type { SilenceWatch } from "../kernel/silence-watch.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { ManifestSet, ToolManifest } from "../rules/manifest/types.ts";
import type { CompiledPolicy } from "../rules/policy/compile.ts";
import type { ApprovalDoc } from "./approvals/approval.ts";
import type { IntentDecision } from "./decide/verdict.ts";
import type { PlanDoc } from "./plans/plan.ts";
import type { DocKey, StateStore } from "./port/store.ts";
import type { CallerPrincipal, ResolvePrincipal } from "./roles.ts";
import type { OutcomeStatus, RunDoc, StepDoc } from "./runs/run.ts";

/** Manifests and policy, replaced together on reload so that no decision mixes old and new. */
export interface ActiveRules {
  manifests: ManifestSet;
  policy: CompiledPolicy;
}

export interface EngineCore {
  store: StateStore;
  env: RuntimeEnv;
  rules(): ActiveRules;
  environment: string | null;
  /** Name of the ledger in signed payloads; absent if the settings have none. */
  ledger?: string | undefined;
  /** Reason in the kill-switch file; null if there is no file. */
  killSwitch(): string | null;
  /** Key for hashes that must match across runs. */
  storeKey: string;
  /** How long this process has seen other processes' leases unchanged. */
  leases: SilenceWatch;
  /** Resolves a stored principal to its current authority; absent if this process has no credentials. */
  today?: ResolvePrincipal | undefined;
  /**
   * Throws if the requester cannot open another request; absent if requests are not limited. Can be called repeatedly.
   */
  mayOpen?: ((run: RunDoc, approval_id: string) => void) | undefined;
  /** Removes credentials from free text before it is stored. */
  redact(text: string): string;
  /**
   * Prefetch hints by run: keys that outcomes of its steps will read, noted when steps are accepted, so that a remote
   * store needs one round trip. Absent for stores with cheap reads. Only a guess; missing keys are read on demand.
   */
  awaited?: LruMap<string, readonly DocKey[]> | undefined;
  listeners: EngineListeners;
}

/** Side channels, notified after the fact. They must not throw and change nothing. */
export interface EngineListeners {
  /** `traceparent` is the trace of the caller, if given. */
  recorded(records: readonly LedgerRecord[], traceparent?: string): void;
  approvalRequested(approval: ApprovalDoc): void;
  /** Called for plans that wait for approvers, not for plans without calls that need approval. */
  planProposed(plan: PlanDoc): void;
  intentDecided(call: DecidedCall): void;
  outcomeReported(call: FinishedCall): void;
}

export interface DecidedCall {
  run: RunDoc;
  tool: string;
  args: JsonValue;
  decision: IntentDecision;
  /** True if only a missing approval prevented `allow`. */
  needs_approval: boolean;
  manifest: ToolManifest | null;
  risk_score: number;
  /** Run whose sandbox the call came from; absent outside of `svc run`. */
  sandboxed?: string | undefined;
  depends_on: readonly number[];
  /** Time from the call's arrival until its decision was durable. */
  took_ms: number;
}

export interface FinishedCall {
  run: RunDoc;
  step: StepDoc;
  status: OutcomeStatus;
  result: JsonValue | undefined;
  manifest: ToolManifest | null;
}

export const silentListeners: EngineListeners = {
  recorded: () => {},
  approvalRequested: () => {},
  planProposed: () => {},
  intentDecided: () => {},
  outcomeReported: () => {},
};

/** Actor in ledger records of the service itself. */
export const ENGINE_ACTOR = "engine";

/** Caller of an operation. `tenant` determines the share of a batch that the operation counts for. */
export type OperationCaller = Pick<CallerPrincipal, "id" | "name"> & Partial<Pick<CallerPrincipal, "tenant">>;

/** Caller of an intent, with the credential's current limits. They can be narrower than when the run was opened. */
export type IntentCaller = OperationCaller & Pick<CallerPrincipal, "max_permissions" | "allow_observe">;
