/** What a sandbox thread is asked, and what it says back. */
import type { HeldGrants } from "../../engine/grants/hand.ts";
import type { ErrorCode } from "../../kernel/errors.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { PolicyDoc } from "../../model/policy/schema.ts";
import type { DrillDoc } from "../../model/proof.ts";
import type { Change } from "../../sandbox/changes.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import type { Plan } from "../../sandbox/speculate.ts";
import type { Reading } from "./readings.ts";

/** A policy as somebody wrote it; it is read in the thread, since reading it may take long. */
export interface PolicyText {
  text: string;
  /** How problems name it. */
  file: string;
}

export interface Job {
  task: Task;
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

export type Task =
  | { kind: "simulate" }
  | { kind: "replay"; run_id: string; changes: readonly Change[] }
  | { kind: "speculate"; plans: readonly Plan[]; actor: string };

export type Page = readonly PastCall[];

/** To the thread: what to do, and then a page of history each time it asks; null behind the last. */
export type Order = { job: Job | Reading } | { page: Page | null };

/** From the thread: it has started; it wants the next page; it is done. The report travels as JSON text. */
export type Message =
  | { say: "ready" }
  | { say: "next" }
  | { say: "done"; report: string }
  | { say: "failed"; code: ErrorCode; message: string; problems: readonly string[] | null }
  | { say: "broken"; message: string };
