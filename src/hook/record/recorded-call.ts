/** Records what a call of the hook changes: opens the record before the call, and closes it with the outcome. */
import { join } from "node:path";
import type { CallContext } from "../resident/services.ts";
import type { HookSettings } from "../settings.ts";
import { workspaceOf } from "../workspace/registered.ts";
import type { DifferenceSummary } from "./difference.ts";
import { closeEdit, type EditEnd, type EditWindow, editedFiles, openEdit } from "./edit-record.ts";
import type { RecordedEnd } from "./recorder.ts";

/** Time for the record after a command. No client gives its hook less. */
const AFTER_MS = 25_000;
/** A record that is not ready so long before the limit is given up. */
const MARGIN_MS = 5_000;
/** A carrier is asked to wait only for a record that takes longer. */
const USUAL_MS = 1_000;

export interface CallToOpen {
  session: string;
  cwd: string;
  /** Null for a call that runs no command. */
  command: { cwd: string } | null;
  /** Files of an edit. */
  files: readonly string[];
  tool: string;
  /** When the event arrived, and how long the client waits from then on. */
  arrived_ms: number;
  limit_ms: number;
}

export interface OpenedCall {
  window: string | null;
  /** The paths that an edit may change, with their states. */
  edit: EditWindow | null;
  /** Why the call cannot be undone, or null. */
  problem: string | null;
}

export type RecordPlace = Pick<HookSettings, "folder" | "snapshot">;

export async function openCall(
  context: CallContext,
  place: RecordPlace,
  call: CallToOpen,
): Promise<OpenedCall> {
  const { records } = context;
  const { session, command, tool, arrived_ms, limit_ms } = call;
  if (tool === SHELL_READ) return { ...NOTHING, window: records?.watch(session, place.snapshot) ?? null };
  if (command === null) return openFiles(context, place, call);
  if (records === null)
    return {
      ...NOTHING,
      problem: "only the process that stays between calls records a workspace",
    };
  const wait_ms = arrived_ms + limit_ms - MARGIN_MS - Date.now();
  const begin = await patiently(
    context,
    wait_ms,
    records.begin(session, place.snapshot, {
      does: tool === "code.shell_build" ? "build" : "write",
      wait_ms,
    }),
  );
  return { ...NOTHING, ...begin };
}

const NOTHING: OpenedCall = { window: null, edit: null, problem: null };

/** Its changes are not its own. They are recorded so that the undo lists them. */
const SHELL_READ = "code.shell_read";

function openFiles(
  { records }: CallContext,
  { folder, snapshot }: RecordPlace,
  { cwd, files }: CallToOpen,
): OpenedCall {
  if (files.length === 0) return NOTHING;
  try {
    const edit = openEdit(folder, { root: workspaceOf(cwd), files, max_file: snapshot.max_file });
    return { ...NOTHING, edit, window: records?.enter(editedFiles(edit)) ?? null };
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    return { ...NOTHING, window: records?.enter(files) ?? null, problem };
  }
}

interface CallToClose {
  run: string;
  window?: string | undefined;
  edit?: EditWindow | null | undefined;
}

const holdsAny = (bytes: Buffer | null, texts: readonly string[]): boolean =>
  bytes !== null && texts.some((text) => bytes.includes(text));

/** `written`: texts that an edit writes. Null if the call was not recorded, or its window has been dropped. */
export async function closeCall(
  context: CallContext,
  { folder, snapshot }: RecordPlace,
  { window, run, edit }: CallToClose,
  written: readonly string[] = [],
): Promise<RecordedEnd | EditEnd | null> {
  const { records } = context;
  if (edit) {
    const others = (window === undefined ? null : records?.leave(window)) ?? { all: false, output: false };
    const isOwn = (bytes: Buffer | null) => holdsAny(bytes, written);
    try {
      return closeEdit(folder, edit, { run, max_file: snapshot.max_file, others, isOwn });
    } catch {
      return null;
    }
  }
  if (records === null || window === undefined) return null;
  const wait_ms = AFTER_MS;
  return patiently(context, wait_ms, records.end(window, run, wait_ms));
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
export const changedFiles = (end: RecordedEnd): string[] => inFull(end, changedPaths(end));

export const inFull = ({ before }: RecordedEnd, paths: readonly string[]): string[] =>
  paths.map((path) => join(before.record.root, path));

/** Members of the outcome that the undo needs. */
export const recordedStates = (end: RecordedEnd | null): object =>
  end === null ? {} : { before: end.before, after: end.after };

export const hasEffect = (end: RecordedEnd): boolean => changedPaths(end).length + end.lost.length > 0;
