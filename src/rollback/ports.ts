/** External functions of a rollback: one undoes, one reads, one checks. */
import type { OverwriteTarget } from "../govern/port/docs.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { LeftPart } from "./plan/report.ts";

/** The undo of one step, as every compensator gets it. The idempotency key is the same on every attempt. */
export interface CompensationCall {
  run_id: string;
  step: number;
  /** The undo tool and its arguments. */
  tool: string;
  /** The tool whose call is undone. */
  original_tool: string;
  args: JsonValue;
  idempotency_key: string;
  /** Parts to leave alone, as the caller named them. */
  skip?: readonly string[];
  /** An operator decided to undo the call although the resource has changed since. */
  overwrite?: true;
}

/** The undo restored some parts and left others. It is not tried again. The message names no part. */
export class PartialUndoError extends Error {
  readonly left: readonly LeftPart[];
  constructor(message: string, left: readonly LeftPart[]) {
    super(message);
    this.name = "PartialUndo";
    this.left = left;
  }
}

/**
 * A read of the current state: a verification after an undo, or a `before` read around a call. A list of arguments
 * means one read for each (`readEach`).
 */
export interface ReadRequest {
  tool: string;
  arguments: JsonValue;
}

/** An operator's decision to undo a step although the resource has changed since the call. */
export interface OverwriteDecision {
  step: number;
  reason: string;
  /** State hash from the plan. The decision holds for that state only. */
  current_hash: string;
  /** `before_run` also undoes the run's older steps on the same resource. Default: `before_call`. */
  to?: OverwriteTarget | undefined;
}

/** Resolves if the undo took effect and rejects if it did not. The resolved value is ignored. */
export type CompensatorFn = (call: CompensationCall, signal: AbortSignal) => Promise<unknown>;

/** Resolves to the tool's result; a rejection is a failed read. `run_id` is the run that needs the read. */
export type ReaderFn = (request: ReadRequest, signal: AbortSignal, run_id?: string) => Promise<JsonValue>;

/** Extra check after a successful undo. A rejection makes the compensation fail. */
export type UndoCheck = (call: CompensationCall, signal: AbortSignal) => Promise<unknown>;

/**
 * Resolves to the reason not to call these tools now, or null. Called before every attempt. An undo with an objection
 * is not attempted; an operator has to settle it first.
 */
export type UndoObjection = (tools: readonly string[]) => Promise<string | null>;
