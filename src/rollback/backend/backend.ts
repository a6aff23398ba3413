/**
 * Port between the rollback executor and the state it works on. One implementation uses this process's store, the other
 * calls a server. Implementations list the steps to undo, start each undo and record its result.
 */
import type { StepDoc } from "../../govern/runs/run.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ReadBackSpec } from "../plan/classify.ts";
import type { StateConflict } from "../plan/conflict.ts";
import type { LedgerPlaced } from "../plan/multi-run.ts";
import type { StepOutcome } from "../plan/report.ts";
import type { CompensationCall, ReadRequest } from "../ports.ts";
import type { UndoEnd } from "../undo/complete-undo.ts";

/** A step that the executor visits. */
export interface StepToUndo {
  step: number;
  tool: string;
  /** Outcome that is known without an undo; null if the undo has to begin. */
  outcome: StepOutcome | null;
  /** True for a step that failed or is already undone. It is reported, and nothing is done. */
  fallen: boolean;
  /** True for a step that this rollback leaves as it is. It is not reported, and blocks the steps it depends on. */
  kept?: true;
  /** State to read before the undo begins, if any. */
  read: ReadRequest | null;
  closes_ms?: number | undefined;
  /** The step's document, for its dependencies. Absent if a server keeps the order. */
  doc?: StepDoc | undefined;
  /** Where the call took effect, for its turn among other runs. Absent if `doc` is known, or only one run is undone. */
  place?: LedgerPlaced | undefined;
}

export interface RollbackSnapshot {
  /** Newest first. */
  visits: readonly StepToUndo[];
  /** Number of steps in the run. */
  known_steps: number;
}

export interface UndoTask {
  call: CompensationCall;
  read_back: ReadBackSpec | null;
  /** State to read before each retry, if any. */
  recheck: PreRetryRead | null;
}

/**
 * Read before a retry: the resource may have changed since the last attempt, or that attempt may have succeeded after
 * all.
 */
export interface PreRetryRead {
  read: ReadRequest;
  judge(current: JsonValue, failed: { attempts: number; error: string }): Promise<BeginRetryResult>;
}

/** `settled`: the step already has its outcome, so no completion is needed. */
export type BeginRetryResult =
  | { state: "go" | "undone" }
  | { state: "conflict"; conflict: StateConflict }
  | { state: "settled"; outcome: StepOutcome };

/**
 * `settled`: the undo did not begin, and `outcome` gives the reason. `stale`: the run has new steps, so the executor
 * must load the plan again. `shared_by`: other steps with the same outcome, when the state from before the run is
 * restored.
 */
export type UndoBeginResult =
  | { state: "begun"; task: UndoTask; shared_by?: readonly number[] }
  | { state: "settled"; outcome: StepOutcome; shared_by?: readonly number[] }
  | { state: "stale" };

export interface RollbackBackend {
  readonly run_id: string;
  plan(): Promise<RollbackSnapshot>;
  /** `current`: result of the visit's read, from just before this call. */
  begin(visit: StepToUndo, look: RollbackSnapshot, current?: JsonValue | undefined): Promise<UndoBeginResult>;
  complete(step: number, end: UndoEnd): Promise<StepOutcome>;
  /** Whether the run has taken further steps since. */
  grew(look: RollbackSnapshot): Promise<boolean>;
  /** Removes values and credentials from a compensator's error message. */
  clean(task: UndoTask, text: string): string;
}
