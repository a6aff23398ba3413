/** Records the workspace around a call of the hook: opens the window before it, and closes it with the outcome. */
import { join } from "node:path";
import type { CallContext } from "../resident/services.ts";
import type { DifferenceSummary } from "./difference.ts";
import type { SnapshotSettings } from "./record-scope.ts";
import type { RecordedEnd } from "./recorder.ts";

/** Time for the record after a command. No client gives its hook less. */
const AFTER_MS = 25_000;
/** A record that is not ready so long before the limit is given up. */
const MARGIN_MS = 5_000;
/** A carrier is asked to wait only for a record that takes longer. */
const USUAL_MS = 1_000;

interface CallToOpen {
  session: string;
  /** Null for a call that runs no command. */
  command: { cwd: string } | null;
  files: readonly string[];
  /** When the event arrived, and how long the client waits from then on. */
  arrived_ms: number;
  limit_ms: number;
}

export interface OpenedCall {
  window: string | null;
  /** Why the command cannot be undone, or null. */
  problem: string | null;
}

export async function openCall(
  context: CallContext,
  settings: SnapshotSettings,
  { session, command, files, arrived_ms, limit_ms }: CallToOpen,
): Promise<OpenedCall> {
  const { records } = context;
  if (command === null) {
    const window = records !== null && files.length > 0 ? records.enter(session) : null;
    return { window, problem: null };
  }
  if (records === null)
    return { window: null, problem: "only the process that stays between calls records a workspace" };
  const wait_ms = arrived_ms + limit_ms - MARGIN_MS - Date.now();
  const begin = await patiently(context, wait_ms, records.begin(session, settings, wait_ms));
  return "window" in begin
    ? { window: begin.window, problem: null }
    : { window: null, problem: begin.problem };
}

/** Null if the call was not recorded, or its window is not known any more. */
export async function closeCall(
  context: CallContext,
  { window, run, tool }: { window?: string | undefined; run: string; tool: string },
): Promise<RecordedEnd | null> {
  const { records } = context;
  if (records === null || window === undefined) return null;
  const wait_ms = AFTER_MS;
  const build = tool === "code.shell_build";
  return patiently(context, wait_ms, records.end(window, { run, build }, wait_ms));
}

/** Asks the carrier to wait longer if the work takes long. */
async function patiently<T>(context: CallContext, wait_ms: number, work: Promise<T>): Promise<T> {
  const timer = setTimeout(() => context.extend(Math.max(0, wait_ms - USUAL_MS)), USUAL_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

/** All paths that the command changed. */
export function changedPaths({ summary }: RecordedEnd): string[] {
  const { renamed, ...lists } = summary satisfies DifferenceSummary;
  const moved = renamed.flatMap(({ from, to }) => [from, to]);
  return [...Object.values(lists).flat(), ...moved].sort();
}

/** The same paths in full, for the list of files that decide what later commands run. */
export const changedFiles = (end: RecordedEnd): string[] =>
  changedPaths(end).map((path) => join(end.before.record.root, path));

/** Members of the outcome that the undo needs. */
export const recordedStates = (end: RecordedEnd | null): object =>
  end === null ? {} : { before: end.before, after: end.after };

export const hasEffect = (end: RecordedEnd): boolean => changedPaths(end).length + end.lost.length > 0;
