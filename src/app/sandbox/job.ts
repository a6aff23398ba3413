/** What a sandbox thread is asked, and what it says back. */
import type { ErrorCode } from "../../kernel/errors.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { PolicyDoc } from "../../model/policy/schema.ts";
import type { Change } from "../../sandbox/changes.ts";
import type { PastCall } from "../../sandbox/past-call.ts";
import type { Plan } from "../../sandbox/speculate.ts";

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
}

export type Task =
  | { kind: "simulate" }
  | { kind: "replay"; run_id: string; changes: readonly Change[] }
  | { kind: "speculate"; plans: readonly Plan[]; actor: string };

/** From the thread: it wants the next page of history, or it is done. The report travels as JSON text. */
export type Message =
  | { say: "next" }
  | { say: "done"; report: string }
  | { say: "failed"; code: ErrorCode; message: string; problems: readonly string[] | null }
  | { say: "broken"; message: string };

/** To the thread: a page of history; null behind the last. */
export type Page = readonly PastCall[] | null;
