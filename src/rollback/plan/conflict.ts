/**
 * Detects whether a resource changed between a call and its undo. An external change is overwritten only if an operator
 * approves that for exactly the current state.
 */
import { stateHash } from "../../govern/decide/before-state.ts";
import type { RunDoc, StepDoc } from "../../govern/runs/run.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { OverwriteDecision, ReadRequest } from "../ports.ts";
import type { UndoEnd } from "../undo/complete-undo.ts";
import type { StateCheck, UndoCall } from "./classify.ts";
import type { StepFailure, StepOutcome } from "./report.ts";
import { isLater } from "./steps-by-resource.ts";

export interface StateConflict {
  error: string;
  current_hash: string;
}

type StateSeen = "as_after" | "as_before" | "overlapped" | "conflict";

/** Hashes of the state before and after a call. */
type Trace = Pick<StepDoc, "before_hash" | "after_hash">;

/**
 * Another active step of the run on the same resource, which may have taken effect after the step in question. `later`:
 * it certainly did. Otherwise the two calls overlapped, and `newer` tells whether the other was accepted second.
 */
export type OverlappingStep = Trace & { later: boolean; newer: boolean };

export function overlapOf(doc: StepDoc, other: StepDoc): OverlappingStep {
  const { before_hash, after_hash } = other;
  return { before_hash, after_hash, later: isLater(doc, other), newer: other.step > doc.step };
}

/**
 * Compares the current state with the step's own hashes first, because an undo may change more than the read shows. An
 * overlapping step that started from the same state cannot mislead the comparison. A step that started from another
 * state may have produced a state that looks like this call's result, or like the state before it.
 */
export function compareState(
  own: Trace,
  current_hash: string,
  overlaps: readonly OverlappingStep[] = [],
): StateSeen {
  const others = overlaps.filter((other) => other.before_hash !== own.before_hash);
  if (current_hash === own.after_hash)
    return others.every((other) => isBelow(other, own)) ? "as_after" : "overlapped";
  if (current_hash !== own.before_hash) return "conflict";
  const back = others.some((other) => !other.later || other.after_hash === own.before_hash);
  return back ? "overlapped" : "as_before";
}

/** Whether this step, whose result is the current state, took effect after the other one. */
function isBelow(other: OverlappingStep, { before_hash, after_hash }: Trace): boolean {
  // If both calls left the same state, either one may be the author of it.
  if (other.later || other.after_hash === after_hash) return false;
  // The order of acceptance decides, unless the hashes prove the opposite order.
  return !other.newer || (other.after_hash === before_hash && other.before_hash !== after_hash);
}

type Now =
  | { is: "free"; over?: string; current_hash?: string }
  | { is: "as_before"; current_hash: string }
  | { is: "unread"; result: { state: "unread"; read: ReadRequest } }
  | { is: "conflict"; result: { state: "conflict"; conflict: StateConflict } };

const NEITHER = "conflict: the current state is neither the result of the call nor the state before it";
const NOT_KNOWN =
  "conflict: the state after the call was not read, and the current state differs from the one before it";
const OVERLAPPED =
  "conflict: another step of this run changed the same resource at the same time, so it is unknown which of them produced the current state";
const MOVED = "conflict: the current state has changed since the plan; check the plan again";

/** `over` is the reason given with an approved overwrite. */
export function compareCurrentState(
  { salt }: Pick<RunDoc, "salt">,
  { state }: UndoCall,
  { current, overwrite }: { current?: JsonValue | undefined; overwrite?: OverwriteDecision | undefined },
  overlaps: readonly OverlappingStep[] = [],
): Now {
  if (state === null) return { is: "free" };
  if (current === undefined) return { is: "unread", result: { state: "unread", read: state.read } };
  const current_hash = stateHash(salt, state.declared, current);
  const seen = compareState(state, current_hash, overlaps);
  if (seen === "as_after") return { is: "free", current_hash };
  if (seen === "as_before") return { is: "as_before", current_hash };
  if (overwrite?.current_hash === current_hash) return { is: "free", over: overwrite.reason, current_hash };
  // The compensation checks each part separately.
  if (state.declared.parts && overwrite === undefined) return { is: "free", current_hash };
  const error = overwrite !== undefined ? MOVED : whyNot(state, seen);
  return { is: "conflict", result: { state: "conflict", conflict: { error, current_hash } } };
}

function whyNot({ after_hash }: StateCheck, seen: StateSeen): string {
  if (seen === "overlapped") return OVERLAPPED;
  return after_hash === undefined ? NOT_KNOWN : NEITHER;
}

export function conflictOutcome({ error, current_hash }: StateConflict): StepOutcome {
  return { as: "failed", error, conflict: true, current_hash };
}

/** Report fields of an undo that was given up because the resource changed, and of one that left parts alone. */
export function conflictOf(end: UndoEnd): Omit<StepFailure, "error"> {
  if (end.ok) return {};
  const parts = end.left === undefined ? {} : { parts: end.left };
  return end.conflict === undefined ? parts : { ...parts, conflict: true, ...end.conflict };
}

/**
 * Outcome of a step whose state could not be read, for lack of a reader or because the read failed. It is not undone.
 */
export function notChecked(why?: string): StepOutcome {
  return { as: "failed", error: notCheckedText(why), conflict: true };
}

export const notCheckedText = (why?: string): string =>
  `conflict: not checked${why === undefined ? "" : ` (${why})`}`;
