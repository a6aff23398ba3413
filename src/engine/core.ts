/** What every engine operation is given: the store, the outside world, and the rules in force. */
import type { Env } from "../kernel/env.ts";
import type { Json } from "../kernel/json.ts";
import type { Lru } from "../kernel/lru.ts";
import type { SilenceWatch } from "../kernel/silence.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { ApprovalDoc } from "../model/approval.ts";
import type { Manifest, ManifestSet } from "../model/manifest/types.ts";
import type { PlanDoc } from "../model/plan.ts";
import type { Policy } from "../model/policy/compile.ts";
import type { Principal, Today } from "../model/roles.ts";
import type { OutcomeStatus, RunDoc, StepDoc } from "../model/run.ts";
import type { Key, Store } from "../port/store.ts";
import type { Decision } from "./decide/verdict.ts";

/** The manifests and the policy, swapped whole on reload so that one decision never sees half of each. */
export interface Rules {
  manifests: ManifestSet;
  policy: Policy;
}

export interface Core {
  store: Store;
  env: Env;
  rules(): Rules;
  environment: string | null;
  /** The reason of the kill-switch file while it exists, else null. */
  killSwitch(): string | null;
  /** Keys the hashes that must match across runs. */
  storeKey: string;
  /** Since when this process has seen the leases of others unchanged. */
  leases: SilenceWatch;
  /** The authority that a kept principal has now; absent where this process knows no credentials. */
  today?: Today | undefined;
  /**
   * Throws where whoever asks may have no further request open; absent where requests are not counted. May be asked
   * again.
   */
  mayOpen?: ((run: RunDoc, approval_id: string) => void) | undefined;
  /** Takes credentials out of free text before it is kept anywhere. */
  redact(text: string): string;
  /**
   * What the outcomes of a run's steps will read beside them, by the steps that were accepted here, so that a store over
   * a network is asked once; absent where a look costs nothing. A guess: what is not in it is looked for when it is read.
   */
  awaited?: Lru<string, readonly Key[]> | undefined;
  listeners: Listeners;
}

/** Side channels. They are told after the fact, may not throw, and change nothing. */
export interface Listeners {
  /** `traceparent`: the trace of whoever asked for it, where the caller said so. */
  recorded(records: readonly LedgerRecord[], traceparent?: string): void;
  approvalRequested(approval: ApprovalDoc): void;
  /** It waits for people; one that needs no decision is not told. */
  planProposed(plan: PlanDoc): void;
  intentDecided(call: DecidedCall): void;
  outcomeReported(call: FinishedCall): void;
}

export interface DecidedCall {
  run: RunDoc;
  tool: string;
  args: Json;
  decision: Decision;
  /** Whether only an approval stood between the call and `allow`. */
  needs_approval: boolean;
  manifest: Manifest | null;
  risk_score: number;
  depends_on: readonly number[];
  /** From the call's arrival until its decision was durable. */
  took_ms: number;
}

export interface FinishedCall {
  run: RunDoc;
  step: StepDoc;
  status: OutcomeStatus;
  result: Json | undefined;
  manifest: Manifest | null;
}

export const silentListeners: Listeners = {
  recorded: () => {},
  approvalRequested: () => {},
  planProposed: () => {},
  intentDecided: () => {},
  outcomeReported: () => {},
};

/** Who acts, on the ledger, when it is the service itself. */
export const ENGINE = "engine";

/** `tenant`: whose share of a batch it takes. */
export type Asking = Pick<Principal, "id" | "name"> & Partial<Pick<Principal, "tenant">>;

/** Who asks for a call, with what the credential may ask for now: a run may have been opened when that was more. */
export type IntentCaller = Asking & Pick<Principal, "max_permissions" | "allow_observe">;
