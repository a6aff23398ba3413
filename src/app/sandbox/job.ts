/** What a sandbox thread is asked; it answers with a report as JSON text. */
import type { MessagePort } from "node:worker_threads";
import type { HeldGrants } from "../../engine/grants/hand.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { PolicyDoc } from "../../model/policy/schema.ts";
import type { DrillDoc } from "../../model/proof.ts";
import type { ReplayChange } from "../../sandbox/changes.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import type { Plan } from "../../sandbox/speculate.ts";
import type { Reading } from "./readings.ts";

/** A policy as its author wrote it; it is read in the thread, since reading it may take long. */
export interface PolicyText {
  text: string;
  /** How problems name it. */
  file: string;
}

export interface Job {
  task: SandboxTask;
  /** The rules as they are loaded now. */
  manifests: readonly Manifest[];
  active: PolicyDoc;
  /** Instead of the active one, where it is given. */
  policy: PolicyText | null;
  now_ms: number;
  environment: string | null;
  storeKey: string;
  /** The last drill of each tool, where a policy asks for proofs. */
  drills?: readonly DrillDoc[];
  /** Grants that what is speculated on could use; history says itself what was granted. */
  held?: HeldGrants | undefined;
}

export type SandboxTask =
  | { kind: "simulate" }
  | { kind: "replay"; run_id: string; changes: readonly ReplayChange[] }
  | { kind: "speculate"; plans: readonly Plan[]; actor: string };

export type PastCalls = readonly PastCall[];

/**
 * To the thread: what to do, and where it asks for history. Each word there is answered with a page, or null behind
 * the last.
 */
export interface Order {
  job: Job | Reading;
  wanted: MessagePort;
}
