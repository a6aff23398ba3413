/** Messages to a sandbox thread. The thread responds with a report as JSON text. */
import type { MessagePort } from "node:worker_threads";
import type { GrantSnapshot } from "../../govern/grants/resolve.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { PolicyDoc } from "../../rules/policy/schema.ts";
import type { DrillDoc } from "../../rules/undo-proof.ts";
import type { ReplayChange } from "../../simulate/changes.ts";
import type { HistoricCall } from "../../simulate/recorded-call.ts";
import type { SpeculativePlan } from "../../simulate/speculate.ts";

/** A policy as written by its author. The thread parses it, because that may take long. */
export interface PolicyText {
  text: string;
  /** Name of the policy in problems. */
  file: string;
}

export interface SandboxJob {
  task: SandboxTask;
  /** The currently loaded rules. */
  manifests: readonly ToolManifest[];
  active: PolicyDoc;
  /** Replaces the active policy, if given. */
  policy: PolicyText | null;
  now_ms: number;
  environment: string | null;
  storeKey: string;
  /** The last drill of each tool, for policies that require proofs. */
  drills?: readonly DrillDoc[];
  /** Grants for speculation. A simulation uses the recorded grants instead. */
  held?: GrantSnapshot | undefined;
}

export type SandboxTask =
  | { kind: "simulate" }
  | { kind: "replay"; run_id: string; changes: readonly ReplayChange[] }
  | { kind: "speculate"; plans: readonly SpeculativePlan[]; actor: string };

export type PastCalls = readonly HistoricCall[];

/**
 * Task for the thread, and the port on which it requests history. Each message on the port gets a page in return, and
 * null after the last.
 */
export interface SandboxJobMessage {
  /** A `Job` or a `Reading` as JSON: text is far faster to pass to a thread than a structured value. */
  job: string;
  wanted: MessagePort;
}
