/**
 * The record of one call: the difference that it made, in a file of the service's directory. Contents are kept
 * separately, by their hash. The server gets the list without contents.
 */
import { readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { makeOwnFolder } from "../own-folder.ts";
import { nodeCrypto, nodeZlib } from "./builtin-modules.ts";
import type { ContentStore } from "./content-store.ts";
import type { PathChange } from "./difference.ts";
import { type MaybePathState, type RecordedFile, shownPath, shownState } from "./path-state.ts";

const RECORD_ID = /^rec_[0-9a-f]{32}$/;
/** Longest list of paths that travels with the step. The list in the file is always whole. */
const SHOWN_BYTES = 200_000;

export interface RecordedChange extends PathChange {
  /** Another process may have written it, so it is not undone. */
  contested?: boolean;
  /** Other names of the file before the command. */
  peers?: string[];
}

export interface CommandRecord {
  v: 1;
  id: string;
  run: string;
  root: string;
  host: string;
  changes: RecordedChange[];
  /** Paths whose change could not be recorded. */
  lost: string[];
  /** An edit, whose text plans show. */
  edit?: true;
}

/**
 * The `before` or `after` of a step that was recorded. `list` is a keyed hash over every path and state. `whole` is
 * false if a part could not be recorded. No reading equals it then.
 */
export interface StepState {
  list: string;
  whole: boolean;
  record: {
    /** The record and the machine that has it. */
    name: string;
    root: string;
    files: Record<string, unknown>;
    /** For an edit, its files' compressed contents, as far as there is room. */
    content?: Record<string, string>;
    /** Paths that did not fit into `files`. */
    more: number;
    left_out: string[];
  };
}

/** A record of files anywhere has the root of the file system as its directory. Its paths are shown in full. */
export const placeName = ({ root }: Pick<CommandRecord, "root">, path: string): string =>
  `${isFileSystemRoot(root) ? root : ""}${shownPath(path)}`;

const isFileSystemRoot = (root: string): boolean => /[\\/]$/.test(root);

export const newRecordId = (): string => `rec_${nodeCrypto().randomBytes(16).toString("hex")}`;

/** One directory for each run. */
const runFolder = (store: ContentStore, run: string): string =>
  join(store.folder, "records", Buffer.from(run).toString("base64url"));

export function writeRecord(store: ContentStore, record: CommandRecord): void {
  const folder = runFolder(store, record.run);
  makeOwnFolder(folder);
  store.write(join(folder, record.id), nodeZlib().deflateRawSync(JSON.stringify(record), { level: 1 }));
}

/** Null if this machine has no such record. */
export function findRecord(store: ContentStore, id: string): CommandRecord | null {
  if (!RECORD_ID.test(id)) return null;
  for (const { run } of recordedRuns(store)) {
    const path = join(runFolder(store, run), id);
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return readRecord(path);
  }
  return null;
}

export const readRecord = (path: string): CommandRecord =>
  JSON.parse(nodeZlib().inflateRawSync(readFileSync(path)).toString("utf8")) as CommandRecord;

export function recordedRuns(store: ContentStore): { run: string; paths: string[] }[] {
  const top = join(store.folder, "records");
  return readdirSync(top).map((name) => ({
    run: Buffer.from(name, "base64url").toString("utf8"),
    paths: readdirSync(join(top, name))
      .filter((id) => RECORD_ID.test(id))
      .map((id) => join(top, name, id)),
  }));
}

/** Bytes on disk that each run's records need. A content that two runs share counts for both. */
export function recordedBytes(store: ContentStore): Map<string, number> {
  const bytes = new Map<string, number>();
  for (const { run, paths } of recordedRuns(store)) {
    const contents = new Set(paths.flatMap((path) => contentsOf(readRecord(path))));
    const own = paths.reduce((sum, path) => sum + statSync(path).size, 0);
    bytes.set(
      run,
      [...contents].reduce((sum, hash) => sum + store.sizeOf(hash), own),
    );
  }
  return bytes;
}

export const removeRecords = (store: ContentStore, run: string): void =>
  rmSync(runFolder(store, run), { recursive: true, force: true });

/** Every content that an undo of the record needs. */
export const contentsOf = ({ changes }: CommandRecord): string[] =>
  changes.flatMap(({ before }) => (before?.kind === "file" && before.hash !== null ? [before.hash] : []));

/** The step's state on one side of the command. */
export function stepState(
  store: ContentStore,
  record: CommandRecord,
  side: "before" | "after",
  left_out: readonly string[],
): StepState {
  return describeStates(
    store,
    record,
    record.changes.map((change) => [change.path, change[side]] as const),
    left_out,
  );
}

type ContentReader = (path: string, file: RecordedFile) => Buffer | null;

/** `states` has one entry for each change of the record. */
export function describeStates(
  store: ContentStore,
  record: CommandRecord,
  states: readonly (readonly [string, MaybePathState])[],
  left_out: readonly string[],
  read: ContentReader = (path, { hash }) => (hash === null ? null : store.get(path, hash)),
): StepState {
  const files: Record<string, unknown> = {};
  let bytes = 0;
  let shown = 0;
  for (const [path, state] of states) {
    const name = placeName(record, path);
    const one = shownState(state);
    bytes += Buffer.byteLength(name) + JSON.stringify(one).length + 8;
    if (bytes > SHOWN_BYTES) break;
    files[name] = one;
    shown++;
  }
  const { id, host, root } = record;
  return {
    list: listHash(store, states),
    whole: record.lost.length === 0,
    record: {
      name: `${id}@${host}`,
      root: shownPath(root),
      files,
      ...(record.edit ? { content: textsOf(record, states, read) } : {}),
      more: states.length - shown,
      left_out: [...left_out],
    },
  };
}

const listHash = (store: ContentStore, states: readonly (readonly [string, MaybePathState])[]): string =>
  store.hmac(JSON.stringify(states.map(([path, state]) => [path, shownState(state)])));

/** Room for all contents together, in the request that carries them. */
const MAX_CONTENT = 700_000;
/** Plans do not show a longer text. */
const MAX_TEXT_BYTES = 1_048_576;

function textsOf(
  record: CommandRecord,
  states: readonly (readonly [string, MaybePathState])[],
  read: ContentReader,
): Record<string, string> {
  const texts: Record<string, string> = {};
  let room = MAX_CONTENT;
  for (const [path, state] of states) {
    if (state?.kind !== "file" || state.size > MAX_TEXT_BYTES) continue;
    const bytes = read(path, state);
    const text = bytes === null ? null : nodeZlib().gzipSync(bytes).toString("base64");
    if (text === null || text.length > room) continue;
    room -= text.length;
    texts[placeName(record, path)] = text;
  }
  return texts;
}
