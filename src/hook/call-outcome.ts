/** The outcome of a call, as the client's event and the record of the workspace tell it. */
import { cutText } from "../kernel/text/truncate.ts";
import type { EndedTask } from "./background-commands.ts";
import type { CallState } from "./call-state.ts";
import type { HookEvent } from "./clients/clients.ts";
import { changedPaths, hasEffect, recordedStates } from "./record/recorded-call.ts";
import type { RecordedEnd } from "./record/recorder.ts";

/** How many changed files a report names. */
export const MAX_NAMED = 20;

/** Whether an edit took place is decided by its files. */
export function editOutcome(event: HookEvent, note: CallState, end: RecordedEnd | null): object {
  const failed = event.moment === "failed";
  if (failed && (end === null || !hasEffect(end))) return failureOf(note, event);
  return { status: "succeeded", ...recordedStates(end) };
}

/** A command that failed but changed the workspace counts as done, so that its changes are undone. */
export function recordedOutcome(event: HookEvent, outcome: object, end: RecordedEnd): object {
  const result = { changed: changedPaths(end).slice(0, MAX_NAMED) };
  const states = recordedStates(end);
  const ended = event.moment === "failed" && !event.interrupted && !event.declined;
  if (!ended || !hasEffect(end)) return { ...outcome, result, ...states };
  return { status: "succeeded", result: { ...result, failed: true }, ...states };
}

export function taskOutcome(note: CallState, { how }: EndedTask): object {
  if (how === "completed") return { status: "succeeded" };
  const known = how === "failed" && HARMLESS.test(note.tool);
  return {
    status: known ? "failed" : "uncertain",
    error: `the client reports the background command as ${how}`,
  };
}

/** Calls without side effects count as failed after an error. The effect of any other failed call is uncertain. */
const HARMLESS = /^code\.(?:read|web|client|shell_read|shell_build)$/;

export function failureOf(note: CallState, { error, interrupted, declined }: HookEvent): object {
  const said = cutText(error ?? "the client reports a failure", 4_000);
  const known = declined || note.edit !== null || (HARMLESS.test(note.tool) && !interrupted);
  return { status: known ? "failed" : "uncertain", error: said };
}

/**
 * Outcome of a call without a later event: its user refused it, it was interrupted, or the client reports no failures.
 */
export function unreportedOutcome(note: CallState, end: RecordedEnd | null): object {
  const states = recordedStates(end);
  if (note.background !== undefined)
    return { status: "uncertain", error: "the session ended before the background command did", ...states };
  const said = "the client reported no outcome";
  if (note.edit !== null && end !== null && hasEffect(end)) return { status: "succeeded", ...states };
  const harmless = HARMLESS.test(note.tool) || note.edit !== null;
  // Another process wrote the files that changed during a read.
  const isRead = note.command === null && note.edit === null;
  const known = harmless && (isRead || end === null || !hasEffect(end));
  return { status: known ? "failed" : "uncertain", error: said, ...states };
}
