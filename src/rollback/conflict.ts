/**
 * Whether an undo meets what the call left. What stands between is a foreign write, and that is never overwritten
 * but on a person's word about exactly what is there.
 */
import { stateHash } from "../engine/before.ts";
import type { Json } from "../kernel/json.ts";
import type { RunDoc, StepDoc } from "../model/run.ts";
import type { StateCheck, UndoCall } from "./classify.ts";
import type { UndoEnd } from "./complete.ts";
import type { Overwrite, ReadRequest } from "./ports.ts";
import type { Failure, StepOutcome } from "./report.ts";
import { isLater } from "./things.ts";

export interface Conflict {
  error: string;
  current_hash: string;
}

type StateSeen = "as_after" | "as_before" | "overlapped" | "conflict";

/** What a call met and what it left. */
type Trace = Pick<StepDoc, "before_hash" | "after_hash">;

/**
 * Another call of the run that stands on the same thing and may have taken effect after the one that is looked at:
 * `later` for sure; otherwise the two overlapped, and `newer` says which of them was accepted first.
 */
export type Beside = Trace & { later: boolean; newer: boolean };

export function besideOf(doc: StepDoc, other: StepDoc): Beside {
  const { before_hash, after_hash } = other;
  return { before_hash, after_hash, later: isLater(doc, other), newer: other.step > doc.step };
}

/**
 * The call's own trace counts first: an undo may take back more than the read shows. Calls on the same thing that met
 * the same state cannot deceive each other; one that met another may have put there what looks like this call's work,
 * or like the state before it.
 */
export function compareState(own: Trace, current_hash: string, beside: readonly Beside[] = []): StateSeen {
  const others = beside.filter((other) => other.before_hash !== own.before_hash);
  if (current_hash === own.after_hash)
    return others.every((other) => isBelow(other, own)) ? "as_after" : "overlapped";
  if (current_hash !== own.before_hash) return "conflict";
  const back = others.some((other) => !other.later || other.after_hash === own.before_hash);
  return back ? "overlapped" : "as_before";
}

/** Whether this call, which left what is there, took effect on top of the other one. */
function isBelow(other: Beside, { before_hash, after_hash }: Trace): boolean {
  // Of two that left the same, either may have read the other's work for its own.
  if (other.later || other.after_hash === after_hash) return false;
  // Undone against the order in which they were accepted, only where what each met says that it is the order.
  return !other.newer || (other.after_hash === before_hash && other.before_hash !== after_hash);
}

type Now =
  | { is: "free"; over?: string; current_hash?: string }
  | { is: "as_before"; current_hash: string }
  | { is: "unread"; result: { state: "unread"; read: ReadRequest } }
  | { is: "conflict"; result: { state: "conflict"; conflict: Conflict } };

const NEITHER = "conflict: what is there now is neither what the call left nor what was there before it";
const NOT_KNOWN =
  "conflict: what the call left was not read, and what is there now is not what was there before";
const OVERLAPPED =
  "conflict: another call of this run on the same thing stands, and which of them left what is there now is not known";
const MOVED = "conflict: what is there now is no longer what the plan showed; look at the plan again";

/** `over`: the reason of a word that lets the undo pass over a conflict. */
export function stateNow(
  { salt }: Pick<RunDoc, "salt">,
  { state }: UndoCall,
  { current, overwrite }: { current?: Json | undefined; overwrite?: Overwrite | undefined },
  beside: readonly Beside[] = [],
): Now {
  if (state === null) return { is: "free" };
  if (current === undefined) return { is: "unread", result: { state: "unread", read: state.read } };
  const current_hash = stateHash(salt, state.declared, current);
  const seen = compareState(state, current_hash, beside);
  if (seen === "as_after") return { is: "free", current_hash };
  if (seen === "as_before") return { is: "as_before", current_hash };
  if (overwrite?.current_hash === current_hash) return { is: "free", over: overwrite.reason, current_hash };
  const error = overwrite !== undefined ? MOVED : whyNot(state, seen);
  return { is: "conflict", result: { state: "conflict", conflict: { error, current_hash } } };
}

function whyNot({ after_hash }: StateCheck, seen: StateSeen): string {
  if (seen === "overlapped") return OVERLAPPED;
  return after_hash === undefined ? NOT_KNOWN : NEITHER;
}

export function conflictOutcome({ error, current_hash }: Conflict): StepOutcome {
  return { as: "failed", error, conflict: true, current_hash };
}

/** What the report of a failed undo says, where it was given up over what another wrote between two attempts. */
export function conflictOf(end: UndoEnd): Omit<Failure, "error"> {
  return end.ok || end.conflict === undefined ? {} : { conflict: true, ...end.conflict };
}

/** There was no reader, or the look failed: without one nothing is undone. */
export function notChecked(why?: string): StepOutcome {
  return { as: "failed", error: notCheckedText(why), conflict: true };
}

export const notCheckedText = (why?: string): string =>
  `conflict: not checked${why === undefined ? "" : ` (${why})`}`;
