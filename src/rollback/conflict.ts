/**
 * Whether an undo meets what the call left. What stands between is a foreign write, and that is never overwritten
 * but on a person's word about exactly what is there.
 */
import { stateHash } from "../engine/before.ts";
import type { Json } from "../kernel/json.ts";
import type { RunDoc } from "../model/run.ts";
import type { StateCheck, Undo } from "./classify.ts";
import type { Overwrite, ReadRequest } from "./ports.ts";
import type { StepOutcome } from "./report.ts";

export interface Conflict {
  error: string;
  current_hash: string;
}

type StateSeen = "as_after" | "as_before" | "conflict";

/** The call's own trace counts first: an undo may take back more than the read shows. */
export function compareState({ before_hash, after_hash }: StateCheck, current_hash: string): StateSeen {
  if (current_hash === after_hash) return "as_after";
  return current_hash === before_hash ? "as_before" : "conflict";
}

type Now =
  | { is: "free"; over?: string }
  | { is: "as_before" }
  | { is: "unread"; result: { state: "unread"; read: ReadRequest } }
  | { is: "conflict"; result: { state: "conflict"; conflict: Conflict } };

const NEITHER = "conflict: what is there now is neither what the call left nor what was there before it";
const NOT_KNOWN =
  "conflict: what the call left was not read, and what is there now is not what was there before";
const MOVED = "conflict: what is there now is no longer what the plan showed; look at the plan again";

/** `over`: the reason of a word that lets the undo pass over a conflict. */
export function stateNow(
  { salt }: Pick<RunDoc, "salt">,
  { state }: Undo,
  { current, overwrite }: { current?: Json | undefined; overwrite?: Overwrite | undefined },
): Now {
  if (state === null) return { is: "free" };
  if (current === undefined) return { is: "unread", result: { state: "unread", read: state.read } };
  const current_hash = stateHash(salt, state.declared, current);
  const seen = compareState(state, current_hash);
  if (seen === "as_after") return { is: "free" };
  if (seen === "as_before") return { is: "as_before" };
  if (overwrite?.current_hash === current_hash) return { is: "free", over: overwrite.reason };
  const error = overwrite !== undefined ? MOVED : state.after_hash === undefined ? NOT_KNOWN : NEITHER;
  return { is: "conflict", result: { state: "conflict", conflict: { error, current_hash } } };
}

export function conflictOutcome({ error, current_hash }: Conflict): StepOutcome {
  return { as: "failed", error, conflict: true, current_hash };
}

/** There was no reader, or the look failed: without one nothing is undone. */
export function notChecked(why?: string): StepOutcome {
  return {
    as: "failed",
    error: `conflict: not checked${why === undefined ? "" : ` (${why})`}`,
    conflict: true,
  };
}
