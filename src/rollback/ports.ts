/** What a rollback needs from outside: one function that undoes, one that reads back, one that checks. */
import type { Json } from "../kernel/json.ts";
import type { OverwriteTarget } from "../port/docs.ts";

/** The undo of one step, as every compensator gets it. The key is the same on every try, for ever. */
export interface CompensationCall {
  run_id: string;
  step: number;
  /** The tool that undoes, and what it is called with. */
  tool: string;
  /** The tool whose call is undone. */
  original_tool: string;
  args: Json;
  idempotency_key: string;
}

/**
 * A read of what is there: a read-back after an undo, or a `before` around a call. A list of arguments stands for one
 * read with each of them (`readEach`).
 */
export interface ReadRequest {
  tool: string;
  arguments: Json;
}

/** A person's word to undo a step although what is there is neither what the call left nor what was there before. */
export interface Overwrite {
  step: number;
  reason: string;
  /** What the plan showed: the word is good for that state alone. */
  current_hash: string;
  /** `before_run` also undoes the run's older steps on the same resource; `before_call` unless given. */
  to?: OverwriteTarget | undefined;
}

/** Resolves when the undo took effect, rejects when it did not. What it resolves to is not looked at. */
export type Compensator = (call: CompensationCall, signal: AbortSignal) => Promise<unknown>;

/** Answers what the tool shows; a rejection is a failed read. `run_id` is the run that the read is for. */
export type Reader = (request: ReadRequest, signal: AbortSignal, run_id?: string) => Promise<Json>;

/** A further check of an undo that went well; a rejection makes the compensation fail. */
export type UndoCheck = (call: CompensationCall, signal: AbortSignal) => Promise<unknown>;

/**
 * Why these tools are not to be called as things stand, or null where they may be. Asked before every attempt:
 * an undo that is objected to is not tried, and a person has to settle it first.
 */
export type UndoObjection = (tools: readonly string[]) => Promise<string | null>;
