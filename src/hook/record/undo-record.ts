/** Reads and restores recorded steps for a rollback, on the machine that has their contents. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { ContentStore, recordFolder } from "./content-store.ts";
import { currentStates } from "./current-state.ts";
import type { RecordedFile } from "./path-state.ts";
import { readContent } from "./read-content.ts";
import { type CommandRecord, describeStates, findRecord, type StepState } from "./record-file.ts";
import { type LeftPath, restoreRecord } from "./restore.ts";
import { SafeFolder } from "./safe-folder.ts";

/** A restore that left paths alone. `error` gives the reasons, without a path. */
export interface PartialRestore {
  error: string;
  left: LeftPath[];
}

/** `skip`: full paths of files and directories to leave out. `overwrite`: also restores paths that changed since. */
export interface RestoreDecision {
  skip: readonly string[];
  overwrite: boolean;
}

interface Found {
  store: ContentStore;
  record: CommandRecord;
}

/**
 * `list` equals that of the step's state before or after the call, if the workspace is in that state. `record` has
 * the current states for people.
 */
export function readRecordedState(
  folder: string,
  name: string,
): Pick<StepState, "list" | "whole"> & Partial<StepState> {
  const found = openRecord(folder, name);
  if (found === null) return NOT_READABLE;
  const { store, record } = found;
  const now = currentStates(store, record);
  if (record.lost.length > 0 || now.includes("blocked")) return NOT_READABLE;
  const states = record.changes.map(
    ({ path }, at) => [path, now[at] as Exclude<(typeof now)[number], "blocked">] as const,
  );
  const safe = new SafeFolder(record.root);
  const read = (path: string, { size }: RecordedFile) =>
    safe.at(path, ({ full }) => {
      const content = readContent(full, size);
      return typeof content === "string" ? null : content.bytes;
    });
  return describeStates(store, record, states, [], read);
}

const NOT_READABLE = { list: "", whole: false };

/** Null if the workspace is as before the call. `name`: the record and its machine, as the step's state has it. */
export function undoRecord(
  folder: string,
  name: string,
  { skip, overwrite }: RestoreDecision,
): PartialRestore | null {
  const found = openRecord(folder, name);
  if (found === null) {
    const host = name.slice(name.indexOf("@") + 1);
    const where = host === hostname() ? `no longer in ${recordFolder(folder)}` : `on ${host}`;
    return { error: `the recorded contents are ${where}`, left: [] };
  }
  const { store, record } = found;
  const isSkipped = (path: string) =>
    skip.some((one) => `${join(record.root, path)}/`.startsWith(`${one.replace(/(?<!\/)\/+$/, "")}/`));
  const left = restoreRecord(store, record, { isSkipped, overwrite });
  return left.length === 0 ? null : { error: summarize(left), left };
}

function openRecord(folder: string, name: string): Found | null {
  const own = recordFolder(folder);
  if (!existsSync(join(own, "key"))) return null;
  const store = new ContentStore(own, false);
  const record = findRecord(store, name.slice(0, name.indexOf("@")));
  return record === null ? null : { store, record };
}

const NOT_RECORDED = "not recorded";

/** Each reason once, with the number of files that were not recorded. */
function summarize(left: readonly LeftPath[]): string {
  const reasons = [...new Set(left.map(({ error }) => error))];
  return reasons
    .map((reason) => {
      const n = left.filter(({ error }) => error === reason).length;
      return reason === NOT_RECORDED ? `${reason}: ${n} files` : reason;
    })
    .join("; ");
}
