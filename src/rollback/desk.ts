/**
 * Where a rollback is kept: who says what stands, lets an undo begin, and records how it ended. The executor
 * works over this port; one desk is the store of this process, the other a server somewhere else.
 */
import type { Json } from "../kernel/json.ts";
import type { StepDoc } from "../model/run.ts";
import type { ReadBackSpec } from "./classify.ts";
import type { UndoEnd } from "./complete.ts";
import type { Conflict } from "./conflict.ts";
import type { CompensationCall, ReadRequest } from "./ports.ts";
import type { StepOutcome } from "./report.ts";

/** A step as the executor comes to it. */
export interface Visit {
  step: number;
  tool: string;
  /** What is known of it without beginning anything; null where its undo has to be begun. */
  outcome: StepOutcome | null;
  /** Does not stand any more: it is told of, and nothing is done. */
  fallen: boolean;
  /** What is read before its undo begins; null where nothing is. */
  read: ReadRequest | null;
  closes_ms?: number | undefined;
  /** What it depends on, where this process keeps the order; a server keeps its own. */
  doc?: StepDoc | undefined;
}

export interface Look {
  /** Newest first. */
  visits: readonly Visit[];
  /** How many steps the run had. */
  known_steps: number;
}

export interface UndoTask {
  call: CompensationCall;
  read_back: ReadBackSpec | null;
  /** What is read again before each further attempt; null where nothing is. */
  recheck: Recheck | null;
}

/** A look before a further attempt: another may have written since the last one, or that one took effect after all. */
export interface Recheck {
  read: ReadRequest;
  judge(current: Json, failed: { attempts: number; error: string }): Promise<Again>;
}

/** `settled`: the step has its outcome already, and nothing is left to be completed. */
export type Again =
  | { state: "go" | "undone" }
  | { state: "conflict"; conflict: Conflict }
  | { state: "settled"; outcome: StepOutcome };

/**
 * `settled`: nothing was begun, and this is why. `stale`: steps came meanwhile, and one must look again. `shared_by`: other
 * steps that have the same outcome, where what was there before the run is restored.
 */
export type Begun =
  | { state: "begun"; task: UndoTask; shared_by?: readonly number[] }
  | { state: "settled"; outcome: StepOutcome; shared_by?: readonly number[] }
  | { state: "stale" };

export interface Desk {
  readonly run_id: string;
  plan(): Promise<Look>;
  /** `current`: what the visit's read showed just now. */
  begin(visit: Visit, look: Look, current?: Json | undefined): Promise<Begun>;
  complete(step: number, end: UndoEnd): Promise<StepOutcome>;
  /** Whether the run took further steps since. */
  grew(look: Look): Promise<boolean>;
  /** What a compensator said of its failure, as it may be told. */
  clean(task: UndoTask, text: string): string;
}
